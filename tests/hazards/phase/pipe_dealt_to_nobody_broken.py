"""Wrong: both replicas skip the first item."""

# expect: M034 14

import warploom as wl


@wl.kernel
def dealt(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    ring = wl.pipe(stages=3, slots=[wl.shared((64, 64), x.dtype)], deliver="one")
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                with ring.put() as tile:
                    wl.copy_async(x[wl.ds(i * 64, 64), wl.ds(0, 64)], tile)
        with wl.role("write", warps=4, replicas=2) as r:
            for i in wl.range(0, STEPS):
                if i % 2 == r and i > 0:
                    with ring.get() as tile:
                        part = tile.load()
                    wl.store(y[r, wl.ds(i * 64, 64), wl.ds(0, 64)], part)
                else:
                    ring.skip(1)


@dealt.example
def _small(make):
    return dealt.launch(1).call(make.randn((384, 64)), make.zeros((2, 384, 64)), STEPS=6)

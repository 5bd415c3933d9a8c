"""Wrong: one of two replicas changes an item that the other one reads, too."""

# expect: R101 21 19

import warploom as wl


@wl.kernel
def scaled(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    ring = wl.pipe(stages=2, slots=[wl.shared((64, 64), x.dtype)])
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(0, STEPS):
                with ring.put() as tile:
                    wl.copy_async(x[wl.ds(i * 64, 64), wl.ds(0, 64)], tile)
        with wl.role("write", warps=4, replicas=2) as r:
            for i in wl.range(0, STEPS):
                with ring.get() as tile:
                    part = tile.load() * 2
                    if r == 0:
                        tile.store(part)
                wl.store(y[r, wl.ds(i * 64, 64), wl.ds(0, 64)], part)


@scaled.example
def _small(make):
    return scaled.launch(1).call(make.randn((192, 64)), make.zeros((2, 192, 64)), STEPS=3)

"""Wrong: the producer of a pipe puts one item less than its consumer takes."""

# expect: D001 18

import warploom as wl


@wl.kernel
def copied(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    ring = wl.pipe(stages=2, slots=[wl.shared((64, 64), x.dtype)])
    with wl.roles():
        with wl.role("load", warps=1):
            for i in wl.range(1, STEPS):
                with ring.put() as tile:
                    wl.copy_async(x[wl.ds(i * 64, 64), wl.ds(0, 64)], tile)
        with wl.role("write", warps=4):
            for i in wl.range(0, STEPS):
                with ring.get() as tile:
                    part = tile.load()
                wl.store(y[wl.ds(i * 64, 64), wl.ds(0, 64)], part)


@copied.example
def _small(make):
    return copied.launch(1).call(make.randn((320, 64)), make.zeros((320, 64)), STEPS=5)

"""Wrong: a barrier of the whole block stands in one role."""

# expect: P028 19

import warploom as wl


@wl.kernel
def summed(x: wl.Tensor, y: wl.Tensor):
    ring = wl.pipe(stages=2, slots=[wl.shared((64, 64), x.dtype)])
    met = wl.named_barrier(256)
    with wl.roles():
        with wl.role("load", warps=4):
            with ring.put() as tile:
                wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], tile)
        with wl.role("sum", warps=4):
            with ring.get() as tile:
                part = tile.load()
            met.sync()
            wl.store(y[wl.ds(0, 64)], wl.sum(part, axis=1))


@summed.example
def _small(make):
    return summed.launch(1).call(make.randn((64, 64)), make.zeros((64,)))

"""Right: the lanes meet between the store and the load: the compiler sees to it."""

import warploom as wl


@wl.kernel
def turned(x: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((16, 16), x.dtype)
    ring = wl.pipe(stages=1, slots=[wl.shared((16, 16), x.dtype)])
    with wl.roles():
        with wl.role("load", warps=1):
            with ring.put() as slot:
                wl.copy_async(x[wl.ds(0, 16), wl.ds(0, 16)], slot)
        with wl.role("turn", warps=1):
            with ring.get() as slot:
                part = slot.load()
            tile.store(part)
            wl.store(y[wl.ds(0, 16), wl.ds(0, 16)], tile.T.load())


@turned.example
def _small(make):
    return turned.launch(1).call(make.randn((16, 16)), make.zeros((16, 16)))

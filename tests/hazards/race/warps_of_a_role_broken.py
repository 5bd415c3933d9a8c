"""Wrong: a warp of a role reads what another warp of it has just stored."""

# expect: R101 20 21
# without: sync.barrier 21

import warploom as wl


@wl.kernel
def turned(x: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((64, 64), x.dtype)
    ring = wl.pipe(stages=1, slots=[wl.shared((64, 64), x.dtype)])
    with wl.roles():
        with wl.role("load", warps=4):
            with ring.put() as slot:
                wl.copy_async(x[wl.ds(0, 64), wl.ds(0, 64)], slot)
        with wl.role("turn", warps=4):
            with ring.get() as slot:
                part = slot.load()
            tile.store(part)
            wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], tile.T.load())


@turned.example
def _small(make):
    return turned.launch(1).call(make.randn((64, 64)), make.zeros((64, 64)))

"""Right: the tile goes through a pipe."""

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, y: wl.Tensor):
    ring = wl.pipe(stages=1, slots=[wl.shared((64, 64), x.dtype)])
    with wl.roles():
        with wl.role("fill", warps=4):
            part = wl.load(x[wl.ds(0, 64), wl.ds(0, 64)])
            with ring.put() as tile:
                tile.store(part)
        with wl.role("read", warps=4):
            with ring.get() as tile:
                part = tile.load()
            wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], part)


@passed.example
def _small(make):
    return passed.launch(1).call(make.randn((64, 64)), make.zeros((64, 64)))

"""Wrong: one role reads a plain shared tile that another role writes."""

# expect: R101 14 16

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((64, 64), x.dtype)
    with wl.roles():
        with wl.role("fill", warps=4):
            part = wl.load(x[wl.ds(0, 64), wl.ds(0, 64)])
            tile.store(part)
        with wl.role("read", warps=4):
            wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], tile.load())


@passed.example
def _small(make):
    return passed.launch(1).call(make.randn((64, 64)), make.zeros((64, 64)))

"""Two roles share one tile by named barriers: one fills it, the other answers in the same place."""

import warploom as wl


@wl.kernel
def two_sides(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    tile = wl.shared((32, 64), x.dtype)
    asked, answered = wl.named_barrier(256), wl.named_barrier(256)
    with wl.roles():
        with wl.role("ask", warps=4):
            for i in wl.range(0, STEPS):
                tile.store(wl.load(x[wl.ds(i * 32, 32), wl.ds(0, 64)]))
                asked.arrive()
                answered.sync()
                wl.store(y[wl.ds(i * 32, 32), wl.ds(0, 64)], tile.load())
        with wl.role("answer", warps=4):
            for i in wl.range(0, STEPS):
                asked.sync()
                part = tile.load()
                tile.store(part * part)
                answered.arrive()


@two_sides.example
def small(make):
    x, y = make.randn((128, 64)), make.zeros((128, 64))
    return two_sides.launch(1).call(x, y, STEPS=4)

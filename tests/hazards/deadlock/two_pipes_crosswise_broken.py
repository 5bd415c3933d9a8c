"""Wrong: each of two roles takes from the other before it gives."""

# expect: D001 16 23

import warploom as wl


@wl.kernel
def talk(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    there = wl.pipe(stages=1, slots=[wl.shared((64, 64), x.dtype)])
    back = wl.pipe(stages=1, slots=[wl.shared((64, 64), x.dtype)])
    with wl.roles():
        with wl.role("ask", warps=4):
            part = wl.load(x[wl.ds(0, 64), wl.ds(0, 64)])
            for i in wl.range(0, STEPS):
                with back.get() as tile:
                    part = tile.load() + 1
                with there.put() as tile:
                    tile.store(part)
            wl.store(y[wl.ds(0, 64), wl.ds(0, 64)], part)
        with wl.role("answer", warps=4):
            for i in wl.range(0, STEPS):
                with there.get() as tile:
                    part = tile.load()
                with back.put() as tile:
                    tile.store(part * 2)


@talk.example
def _small(make):
    return talk.launch(1).call(make.randn((64, 64)), make.zeros((64, 64)), STEPS=3)

"""Three roles hand one tile on by named barriers: one fills, one changes, one writes it out."""

import warploom as wl


@wl.kernel
def three_sides(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    tile = wl.shared((16, 64), x.dtype)
    filled, read = wl.named_barrier(192), wl.named_barrier(128)
    changed, free = wl.named_barrier(128), wl.named_barrier(128)
    with wl.roles():
        with wl.role("fill", warps=2):
            for i in wl.range(0, STEPS):
                part = wl.load(x[wl.ds(i * 16, 16), wl.ds(0, 64)])
                if i > 0:
                    free.sync()
                tile.store(part)
                filled.arrive()
        with wl.role("change", warps=2):
            for i in wl.range(0, STEPS):
                filled.sync()
                part = tile.load()
                read.sync()
                tile.store(part * part)
                changed.arrive()
        with wl.role("out", warps=2):
            for i in wl.range(0, STEPS):
                filled.sync()
                before = tile.load()
                read.arrive()
                changed.sync()
                wl.store(y[wl.ds(i * 16, 16), wl.ds(0, 64)], tile.load() - before)
                if i < STEPS - 1:
                    free.arrive()


@three_sides.example
def small(make):
    return three_sides.launch(1).call(make.randn((80, 64)), make.zeros((80, 64)), STEPS=5)

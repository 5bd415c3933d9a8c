"""Wrong: a role tells another block of a tile before it stores it."""

# expect: R102 21 24

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, held: wl.Tensor, flags: wl.Tensor, y: wl.Tensor):
    ring = wl.pipe(stages=1, slots=[wl.shared((64, 64), x.dtype)])
    here, blocks = wl.program_id(0), wl.num_programs(0)
    other = (here + 1) % blocks
    with wl.roles():
        with wl.role("load", warps=1):
            with ring.put() as tile:
                wl.copy_async(x[wl.ds(here * 64, 64), wl.ds(0, 64)], tile)
        with wl.role("give", warps=4):
            with ring.get() as tile:
                part = tile.load()
            wl.signal(flags[here], 1)
            wl.store(held[here, wl.ds(0, 64), wl.ds(0, 64)], part)
        with wl.role("take", warps=4):
            wl.wait(flags[other], at_least=1)
            part = wl.load(held[other, wl.ds(0, 64), wl.ds(0, 64)])
            wl.store(y[here, wl.ds(0, 64), wl.ds(0, 64)], part)


@passed.example
def _small(make):
    x, held, y = make.randn((192, 64)), make.zeros((3, 64, 64)), make.zeros((3, 64, 64))
    return passed.launch(3, cooperative=True).call(x, held, make.zeros((3,), wl.i32), y)

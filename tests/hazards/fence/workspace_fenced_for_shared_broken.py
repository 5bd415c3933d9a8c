"""Wrong: what another block reads with the copy engine is fenced in shared memory only."""

# expect: M016 16 22

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, held: wl.Tensor, flags: wl.Tensor, y: wl.Tensor):
    ring = wl.pipe(stages=2, slots=[wl.shared((64, 64), x.dtype)])
    here, blocks = wl.program_id(0), wl.num_programs(0)
    other = (here + 1) % blocks
    with wl.roles():
        with wl.role("make", warps=4):
            part = wl.load(x[wl.ds(here * 64, 64), wl.ds(0, 64)])
            wl.store(held[wl.ds(here * 64, 64), wl.ds(0, 64)], part)
            wl.fence_async()
            wl.signal(flags[here], 1)
        with wl.role("load", warps=1):
            wl.wait(flags[other], at_least=1)
            with ring.put() as tile:
                wl.copy_async(held[wl.ds(other * 64, 64), wl.ds(0, 64)], tile)
        with wl.role("write", warps=4):
            with ring.get() as tile:
                wl.store(y[wl.ds(here * 64, 64), wl.ds(0, 64)], tile.load())
            wl.fence_async(space="global")


@passed.example
def _small(make):
    x, held, y = make.randn((192, 64)), make.zeros((192, 64)), make.zeros((192, 64))
    return passed.launch(3, cooperative=True).call(x, held, make.zeros((3,), wl.i32), y)

"""Wrong: a block tells of a copy as soon as it has begun."""

# expect: R102 14 21

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, held: wl.Tensor, flags: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((64, 64), x.dtype)
    here, blocks = wl.program_id(0), wl.num_programs(0)
    tile.store(wl.load(x[wl.ds(here * 64, 64), wl.ds(0, 64)]))
    with wl.one_thread():
        wl.copy_async(tile, held[wl.ds(here * 64, 64), wl.ds(0, 64)])
        wl.copy_commit()
        wl.signal(flags[here], 1)
        wl.copy_wait()
    other = (here + 1) % blocks
    wl.wait(flags[other], at_least=1)
    wl.fence_async(space="global")
    part = wl.load(held[wl.ds(other * 64, 64), wl.ds(0, 64)])
    wl.store(y[wl.ds(here * 64, 64), wl.ds(0, 64)], part)


@passed.example
def _small(make):
    x, held, y = make.randn((192, 64)), make.zeros((192, 64)), make.zeros((192, 64))
    return passed.launch(3, cooperative=True).call(x, held, make.zeros((3,), wl.i32), y)

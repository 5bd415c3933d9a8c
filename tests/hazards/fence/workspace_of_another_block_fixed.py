"""Right: a fence stands between the stores of another block and the copy that reads them."""

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, held: wl.Tensor, flags: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((64, 64), x.dtype)
    full = wl.barrier()
    here, blocks = wl.program_id(0), wl.num_programs(0)
    other = (here + 1) % blocks
    part = wl.load(x[wl.ds(here * 64, 64), wl.ds(0, 64)])
    wl.store(held[wl.ds(here * 64, 64), wl.ds(0, 64)], part)
    wl.signal(flags[here], 1)
    wl.wait(flags[other], at_least=1)
    wl.fence_async(space="global")
    with wl.one_thread():
        full.expect(64 * 64 * 4)
        wl.copy_async(held[wl.ds(other * 64, 64), wl.ds(0, 64)], tile, barrier=full)
    full.wait(0)
    wl.store(y[wl.ds(here * 64, 64), wl.ds(0, 64)], tile.load())


@passed.example
def _small(make):
    x, held, y = make.randn((192, 64)), make.zeros((192, 64)), make.zeros((192, 64))
    return passed.launch(3, cooperative=True).call(x, held, make.zeros((3,), wl.i32), y)

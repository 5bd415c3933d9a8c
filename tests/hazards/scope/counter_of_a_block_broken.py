"""Wrong: blocks count by a signal that reaches the own block only."""

# expect: R103 13 14
# expect: R102 12 15

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, held: wl.Tensor, count: wl.Tensor, y: wl.Tensor):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    wl.store(held[here, wl.ds(0, 64)], wl.load(x[here, wl.ds(0, 64)]))
    wl.signal(count[0], add=1, scope="block")
    wl.wait(count[0], at_least=blocks)
    part = wl.load(held[(here + 1) % blocks, wl.ds(0, 64)])
    wl.store(y[here, wl.ds(0, 64)], part)


@passed.example
def _small(make):
    x, held, y = make.randn((3, 64)), make.zeros((3, 64)), make.zeros((3, 64))
    return passed.launch(3, cooperative=True).call(x, held, make.zeros((1,), wl.i32), y)

"""Wrong: blocks wait for each other in a launch that need not have all of them resident."""

# expect: H040 12

import warploom as wl


@wl.kernel
def passed(x: wl.Tensor, count: wl.Tensor, y: wl.Tensor):
    here, blocks = wl.program_id(0), wl.num_programs(0)
    wl.signal(count[0], add=1)
    wl.wait(count[0], at_least=blocks)
    wl.store(y[here, wl.ds(0, 64)], wl.load(x[here, wl.ds(0, 64)]))


@passed.example
def _small(make):
    x, count, y = make.randn((3, 64)), make.zeros((1,), wl.i32), make.zeros((3, 64))
    return passed.launch(3).call(x, count, y)

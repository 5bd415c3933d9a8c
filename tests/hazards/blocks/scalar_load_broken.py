"""Wrong: each block takes its offset from an element that the block before it writes."""

# expect: R102 11 13

import warploom as wl


@wl.kernel
def placed(x: wl.Tensor, y: wl.Tensor, ends: wl.Tensor):
    i = wl.program_id(0)
    at = wl.load(ends[i])
    wl.store(y[wl.ds(at, 32)], wl.load(x[i, wl.ds(0, 32)]))
    wl.store(ends[wl.ds(i + 1, 1)], wl.full((1,), at + 32, wl.i32))


@placed.example
def _small(make):
    ends = make.arange(5) * 32
    return placed.launch(4).call(make.randn((4, 32)), make.zeros(160), ends)

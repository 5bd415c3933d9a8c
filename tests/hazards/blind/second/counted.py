"""Several blocks of level 1: rows are halved, in windows of their own, and places counted."""

import warploom as wl


@wl.kernel
def counted(x: wl.Tensor, y: wl.Tensor, counts: wl.Tensor, B: wl.const):
    start = wl.program_id(0) * B
    rows = wl.load(x[wl.ds(start, B), wl.ds(0, 64)])
    wl.store(y[wl.ds(start, B), wl.ds(0, 64)], rows * 0.5)
    high = wl.sum((rows > 0.0).cast(wl.i32), axis=0)
    wl.atomic_add(counts[wl.ds(0, 64)], high)


@counted.example
def small(make):
    x, y = make.randn((30, 64)), make.zeros((30, 64))
    return counted.launch(4).call(x, y, make.zeros((64,), wl.i32), B=8)

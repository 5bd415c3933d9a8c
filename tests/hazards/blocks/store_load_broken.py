"""Wrong: a block reads elements of its neighbours, which write them in place."""

# expect: R102 11 12

import warploom as wl


@wl.kernel
def smoothed(x: wl.Tensor, y: wl.Tensor):
    at = wl.program_id(0) * 64
    next = wl.load(x[wl.ds(at + 1, 64)])
    wl.store(y[wl.ds(at, 64)], wl.load(x[wl.ds(at, 64)]) + next)


@smoothed.example
def _small(make):
    x = make.randn(256)
    return smoothed.launch(4).call(x, x)

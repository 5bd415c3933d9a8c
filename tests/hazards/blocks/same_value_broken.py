"""Wrong: every block sets one flag, all to the same value, by ordinary stores."""

# expect: R102 13

import warploom as wl


@wl.kernel
def negative(x: wl.Tensor, found: wl.Tensor):
    at = wl.program_id(0) * 64
    least = wl.scalar(wl.min(wl.load(x[wl.ds(at, 64)]), axis=0))
    if least < 0:
        wl.store(found[0:1], wl.full((1,), 1, wl.i32))


@negative.example
def _small(make):
    return negative.launch(4).call(make.randn(256), make.zeros(1, wl.i32))

"""Right: beside it, every block sets one flag, all to the same value, by ordinary stores."""

import warploom as wl


@wl.kernel
def negative(x: wl.Tensor, found: wl.Tensor):
    at = wl.program_id(0) * 64
    least = wl.scalar(wl.min(wl.load(x[wl.ds(at, 64)]), axis=0))
    if least < 0:
        wl.atomic_or(found[0], 1)


@negative.example
def _small(make):
    return negative.launch(4).call(make.randn(256), make.zeros(1, wl.i32))

"""Wrong: windows of two blocks overlap, and both write there."""

# expect: R102 11

import warploom as wl


@wl.kernel
def copied(x: wl.Tensor, y: wl.Tensor):
    at = wl.program_id(0) * 96
    wl.store(y[wl.ds(at, 128)], wl.load(x[wl.ds(at, 128)]))


@copied.example
def _small(make):
    return copied.launch(3).call(make.randn(384), make.zeros(384))

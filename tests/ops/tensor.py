"""Sub-tensors with run-time ends."""

import numpy as np

import warploom as wl
from tests.ops.trial import DATA, Case, Trial, spread


@wl.kernel
def part(x: wl.Tensor, z: wl.Tensor, lo: wl.i32, hi: wl.i32, M: wl.const, N: wl.const):
    inner = x.rows(lo, hi).rows(1, 100, axis=1)
    wl.store(z[wl.ds(0, M), wl.ds(0, N)], wl.load(inner[wl.ds(1, M), wl.ds(0, N)]))


def rows(dtype, lo, hi):
    """Beyond the end of the sub-tensor reads as zero although the parent has data there."""

    def make(device):
        x = spread(dtype, (9, 20))
        out = device.empty((4, 20), x.dtype)
        expected = np.zeros((4, 20), x.dtype)
        inner = x[lo : max(lo, hi), 1:]
        kept = inner[1:5]
        expected[: len(kept), :19] = kept
        call = part.launch(1).call(device.put(x), out, lo, hi, M=4, N=20)
        return Trial(call, [(out, expected)])

    return Case("tensor.rows", dtype, make, f"{lo},{hi}")


CASES = [rows(dtype, lo, hi) for dtype in DATA for lo, hi in ((0, 9), (3, 6), (5, 5), (7, 4))]

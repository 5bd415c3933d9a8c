"""Prints and assertions that hold. (Those that fail: tests/sim and tests/runtime.)"""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial


@wl.kernel
def speaks(x: wl.Tensor, n: wl.i32, SIZE: wl.const):
    t = wl.load(x[wl.ds(0, SIZE)])
    assert n > 0, "n is not positive"
    assert t >= 0.0, "a negative number"
    print("n", n, n > 3)
    print("t", t)


PRINTED = """\
n 5 True
t [0] 0
t [1] 0.5
t [2] 1e+20
"""


def speaking(device):
    x = np.array([0, 0.5, 1e20], np.float32)
    return Trial(speaks.launch(1).call(device.put(x), 5, SIZE=3), [], printed=PRINTED)


CASES = [
    Case("debug.print", "i32", speaking),
    Case("debug.print_tile", "f32", speaking),
    Case("debug.assert", "bool", speaking),
    Case("tile.print", "f32", speaking),
    Case("tile.assert", "bool", speaking),
]

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


@wl.kernel
def pauses(x: wl.Tensor, z: wl.Tensor, SIZE: wl.const):
    t = wl.load(x[wl.ds(0, SIZE)])
    breakpoint()
    wl.store(z[wl.ds(0, SIZE)], t + 1.0)


def pausing(device):
    """Nobody answers in a test: the launch goes on, as it does on a GPU anyway."""
    x = np.arange(50, dtype=np.float32)
    out = device.empty(50, x.dtype)
    return Trial(pauses.launch(1).call(device.put(x), out, SIZE=50), [(out, x + 1)])


CASES = [
    Case("debug.breakpoint", "f32", pausing),
    Case("debug.print", "i32", speaking),
    Case("debug.print_tile", "f32", speaking),
    Case("debug.assert", "bool", speaking),
    Case("tile.print", "f32", speaking),
    Case("tile.assert", "bool", speaking),
]

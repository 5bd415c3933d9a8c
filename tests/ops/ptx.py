"""Inline PTX on tiles, without and with effects."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread


def sum_and_difference(a, b):
    return a + b, a - b


def nothing(a):
    return ()


def shifted(a, b):
    return a << b


@wl.kernel
def inline(x: wl.Tensor, y: wl.Tensor, n: wl.i32):
    """Two results of one text, a scalar among the inputs, and a fence."""
    i = wl.load(x[wl.ds(0, 100)])
    both = "{ add.s32 %0, %2, %3; sub.s32 %1, %2, %3; }"
    p, m = wl.ptx(both, (wl.i32, wl.i32), (i, i * 3), model=sum_and_difference)
    wl.ptx("membar.gl;", inputs=i, effects="memory", model=nothing)
    q = wl.ptx("shl.b32 %0, %1, %2;", wl.i32, (i, n), effects=("sync",), model=shifted)
    wl.store(y[0, wl.ds(0, 100)], p)
    wl.store(y[1, wl.ds(0, 100)], m)
    wl.store(y[2, wl.ds(0, 100)], q)


def run(op: str) -> Case:
    def make(device):
        x = spread("i32", (100,))
        y = device.empty((3, 100), x.dtype)
        call = inline.launch(1).call(device.put(x), y, 3)
        return Trial(call, [(y, np.stack([x * 4, x * -2, x << 3]))])

    return Case(op, "", make)


CASES = [run(f"ptx.{name}") for name in ("compute", "act", "compute_registers", "act_registers")]

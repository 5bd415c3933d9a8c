"""Layouts that a kernel asks for: tiles that go from one to another and stay what they are."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread

LANES_FIRST = "l32:1*1 w4:0*1 r4:0*4"
ROWS_FIRST = "l16:0*1 l2:1*1 w4:1*2 r4:1*8"


@wl.kernel
def turned(x: wl.Tensor, y: wl.Tensor, FIRST: wl.const, SECOND: wl.const):
    """y is x, through two layouts."""
    at, all = wl.ds(0, 16), wl.ds(0, 32)
    t = wl.pin(wl.load(x[at, all]), FIRST)
    u = wl.pin(t, SECOND)
    wl.assert_layout(u, SECOND)
    back = wl.pin(u, t)
    wl.assert_layout(back, t)
    wl.store(y[at, all], back)


def case(op: str, first: str, second: str, name: str) -> Case:
    def make(device):
        x = spread("f32", (16, 32))
        y = device.empty(x.shape, np.float32)
        call = turned.launch(1).call(device.put(x), y, FIRST=first, SECOND=second)
        return Trial(call, [(y, x)])

    return Case(op, "", make, name)


CASES = [
    case(f"layouts.{op}", *layouts, name)
    for op in ("pin", "like", "same")
    for layouts, name in (
        ((LANES_FIRST, ROWS_FIRST), "turned"),
        ((ROWS_FIRST, ROWS_FIRST), "kept"),
    )
]

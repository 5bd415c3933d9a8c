"""Prints and assertions that hold. (Those that fail: tests/sim and tests/runtime.)"""

from dataclasses import replace

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial
from warploom.base.target import SM_90A
from warploom.ir.printer import print_kernel
from warploom.runtime.compile import machine_kernel
from warploom.runtime.findings import Findings


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


@wl.kernel
def times(x: wl.Tensor, z: wl.Tensor, SIZE: wl.const, UNIT: wl.const):
    start = wl.clock(UNIT)
    total = wl.sum(wl.load(x[wl.ds(0, SIZE)]), 0)
    passed = wl.clock(UNIT) - start
    # The clock goes on, and not by as much as a second (of either unit).
    wl.store(z[wl.ds(0, 1)], wl.full((1,), passed >= 0, wl.boolean))
    wl.store(z[wl.ds(1, 1)], wl.full((1,), passed < 2_000_000_000, wl.boolean))
    wl.store(z[2], total.cast(wl.boolean))


def timing(unit):
    def make(device):
        out = device.empty(3, np.bool_)
        call = times.launch(1).call(device.put(np.ones(50, np.float32)), out, SIZE=50, UNIT=unit)
        return Trial(call, [(out, np.ones(3, np.bool_))])

    return make


@wl.kernel
def turns(x: wl.Tensor, SIZE: wl.const):
    for i in wl.range(0, SIZE):
        wl.store(x[wl.ds(i, 1)], wl.full((1,), 1.0, wl.f32))


class Traced:
    """A call that is made with its events noted; `seen` gets their numbers."""

    def __init__(self, call, seen):
        self.call, self.seen = call, seen

    def text(self, level):
        return print_kernel(machine_kernel(replace(self.call.request, trace=8), SM_90A))

    def run(self):
        names = ("begin", "end", "turn")
        self.seen[:] = [names.index(row.event) for row in self.call.trace(events=8)]

    def check(self):
        self.run()
        return Findings("turns")


def noting(device):
    seen = np.full(5, -1)
    call = turns.launch(1).call(device.empty(3, np.float32), SIZE=3)
    return Trial(Traced(call, seen), [(seen, np.array([0, 2, 2, 2, 1]))])


CASES = [
    Case("debug.clock", "i64", timing("cycles"), "cycles"),
    Case("debug.clock", "i64", timing("ns"), "ns"),
    Case("debug.record", "i64", noting),
    Case("debug.breakpoint", "f32", pausing),
    Case("debug.print", "i32", speaking),
    Case("debug.print_tile", "f32", speaking),
    Case("debug.assert", "bool", speaking),
    Case("tile.print", "f32", speaking),
    Case("tile.assert", "bool", speaking),
]

"""Loops, branches and carried values."""

import numpy as np

import warploom as wl
from tests.ops.trial import DATA, Case, Trial, spread


@wl.kernel
def swaps(x: wl.Tensor, z: wl.Tensor, n: wl.i32, SIZE: wl.const):
    """Two carried tiles change places at each trip; rows take turns in a branch."""
    a, b = wl.load(x[0, wl.ds(0, SIZE)]), wl.load(x[1, wl.ds(0, SIZE)])
    for k in wl.range(n, 0, -2):
        a, b = b, a
        if k % 3 == 0:
            a = wl.load(x[2, wl.ds(0, SIZE)])
        else:
            b = wl.load(x[3, wl.ds(0, SIZE)])
    wl.store(z[0, wl.ds(0, SIZE)], a)
    wl.store(z[1, wl.ds(0, SIZE)], b)


def carried(op, dtype):
    def make(device):
        x = spread(dtype, (4, 50))
        a, b = x[0], x[1]
        for k in range(9, 0, -2):
            a, b = b, a
            if k % 3 == 0:
                a = x[2]
            else:
                b = x[3]
        out = device.empty((2, 50), x.dtype)
        call = swaps.launch(1).call(device.put(x), out, 9, SIZE=50)
        return Trial(call, [(out, np.stack([a, b]))])

    return Case(op, dtype, make)


@wl.kernel
def rotates(x: wl.Tensor, z: wl.Tensor, n: wl.i32, SIZE: wl.const):
    a, b = wl.load(x[0, wl.ds(0, SIZE)]), wl.load(x[1, wl.ds(0, SIZE)])
    c = wl.load(x[2, wl.ds(0, SIZE)])
    for _ in wl.range(0, n):
        a, b, c = b, c, a
    wl.store(z[0, wl.ds(0, SIZE)], a)
    wl.store(z[1, wl.ds(0, SIZE)], b)


def rotated(dtype):
    """A cycle of copies at each trip: one value has to be saved."""

    def make(device):
        x = spread(dtype, (3, 50))
        out = device.empty((2, 50), x.dtype)
        call = rotates.launch(1).call(device.put(x), out, 5, SIZE=50)
        return Trial(call, [(out, x[[2, 0]])])

    return Case("control.duplicate", dtype, make)


@wl.kernel
def collatz(x: wl.Tensor, z: wl.Tensor, n: wl.i32, SIZE: wl.const):
    """As many trips as the data say, blocks apart: rows take turns until the number is 1."""
    row = wl.program_id(0)
    a, b = wl.load(x[row, wl.ds(0, SIZE)]), wl.load(x[row + 1, wl.ds(0, SIZE)])
    left = n + row
    while left != 1:
        left = left // 2 if left % 2 == 0 else 3 * left + 1
        a, b = b, a
    wl.store(z[row, wl.ds(0, SIZE)], a)


def steps_to_one(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def waited(dtype):
    def make(device):
        x = spread(dtype, (6, 50))
        out = device.empty((5, 50), x.dtype)
        expected = np.stack([x[row + steps_to_one(1 + row) % 2] for row in range(5)])
        call = collatz.launch(5).call(device.put(x), out, 1, SIZE=50)
        return Trial(call, [(out, expected)])

    return Case("control.while", dtype, make)


CASES = [rotated(dtype) for dtype in DATA]
CASES += [waited(dtype) for dtype in DATA]
CASES += [
    carried(f"control.{name}", dtype)
    for name in ("assign", "declare", "for", "if", "yield")
    for dtype in (DATA if name != "if" else ("bool",))
]

"""Lane, warp and register numbers: the same in all blocks, so they are made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warploom.base.dtypes import i32
from warploom.ir.ops import index
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.registry import simulates
from warploom.sim.values import Fixed, Index, dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


def _given(slot: int, numbers: np.ndarray) -> Step:
    value = Index(Fixed(numbers.astype(np.int64)), 0, i32)

    def step(s: Slots, m: Batch) -> None:
        s[slot] = value

    return step


@simulates(index.Lane)
def lane(t: Translator, op: index.Lane) -> Step:
    return _given(t.slot(op.result), np.arange(32).reshape((1,) * (op.rank + 2) + (32,)))


@simulates(index.Warp)
def warp(t: Translator, op: index.Warp) -> Step:
    warps = t.warps
    return _given(t.slot(op.result), np.arange(warps).reshape((1,) * (op.rank + 1) + (warps, 1)))


@simulates(index.Constants)
def constants(t: Translator, op: index.Constants) -> Step:
    shape = [1] * (op.rank + 3)
    shape[op.axis] = len(op.numbers)
    return _given(t.slot(op.result), np.array(op.numbers).reshape(shape))


@simulates(index.Digit)
def digit(t: Translator, op: index.Digit) -> Step:
    a, d, divisor, extent = t.slot(op.value), t.slot(op.result), op.divisor, op.extent

    def digits(numbers: np.ndarray) -> np.ndarray:
        high = numbers // divisor
        return high % extent if extent else high

    def step(s: Slots, m: Batch) -> None:
        value = s[a]
        fixed = value.frozen() if type(value) is Index else None
        if fixed is None:
            s[d] = digits(dense(value))
            return
        made = fixed.keep(("digit", divisor, extent), lambda: Fixed(digits(fixed.array)))
        s[d] = Index(made, 0, i32)

    return step

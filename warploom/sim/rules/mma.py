"""Products of single warps. Products of floats are exact and summed in float32 in an order of the
simulator's own, always over the same 8 columns, so that a column does not depend on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warploom.base.dtypes import DType
from warploom.ir.ops import mma
from warploom.ir.ops.registers import regs_of
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.matrix import numbers
from warploom.sim.registry import simulates
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


@simulates(mma.Multiply)
def multiply(t: Translator, op: mma.Multiply) -> Step:
    a, b, acc, d = t.slot(op.a), t.slot(op.b), t.slot(op.acc), t.slot(op.result)
    kinds = regs_of(op.a).dtype, regs_of(op.b).dtype
    at = op.step

    def step(s: Slots, m: Batch) -> None:
        left, right, held = dense(s[a]), dense(s[b]), dense(s[acc])
        outer = np.broadcast_shapes(left.shape[2:], right.shape[2:], held.shape[2:])[:-1]
        rows = left_matrix(_step(left, at, mma.LEFT, outer), kinds[0])
        columns = right_matrix(_step(right, at, mma.RIGHT, outer), kinds[1])
        made = _one_by_one(rows, columns)
        s[d] = held + sum_registers(made)

    return step


def _step(registers: np.ndarray, step: int, count: int, outer: tuple[int, ...]) -> np.ndarray:
    """The elements of one step: [count, blocks, warps, 32]."""
    index = step if registers.shape[0] > 1 else 0
    return np.broadcast_to(registers[index], (count, *outer, 32))


def left_matrix(held: np.ndarray, dtype: DType) -> np.ndarray:
    """A as float32, [blocks, warps, 16, 16]: `ir.ops.mma.left_place` over all elements."""
    blocks, warps = held.shape[1:3]
    # (side, half, low, …, row, pair) to (…, half, row, side, pair, low)
    parts = held.reshape(2, 2, 2, blocks, warps, 8, 4).transpose(3, 4, 1, 5, 0, 6, 2)
    return numbers(np.ascontiguousarray(parts.reshape(blocks, warps, 16, 16)), dtype)


def right_matrix(held: np.ndarray, dtype: DType) -> np.ndarray:
    """Bᵀ as float32, [blocks, warps, 8, 16]: `ir.ops.mma.right_place` over all elements."""
    blocks, warps = held.shape[1:3]
    # (side, low, …, column, pair) to (…, column, side, pair, low)
    parts = held.reshape(2, 2, blocks, warps, 8, 4).transpose(2, 3, 4, 0, 5, 1)
    return numbers(np.ascontiguousarray(parts.reshape(blocks, warps, 8, 16)), dtype)


def sum_registers(sums: np.ndarray) -> np.ndarray:
    """Sums [blocks, warps, 16, 8] as registers [1, 4, blocks, warps, 32]."""
    blocks, warps = sums.shape[:2]
    # (…, half, row, pair, low) to (half, low, …, row, pair)
    parts = sums.reshape(blocks, warps, 2, 8, 4, 2).transpose(2, 5, 0, 1, 3, 4)
    return np.ascontiguousarray(parts).reshape(1, 4, blocks, warps, 32)


def _one_by_one(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """A·B of each warp by itself."""
    with np.errstate(all="ignore"):
        return np.matmul(rows, columns.swapaxes(-1, -2))

"""Uniform scalars: numbers, or arrays over the blocks of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.base.dtypes import DType, Kind
from warploom.ir.ops import scalar
from warploom.ir.types import Tensor
from warploom.sim.arithmetic import scalar_binary, scalar_compare, scalar_unary
from warploom.sim.conversions import conversion, scalar_conversion
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.registry import simulates
from warploom.sim.values import scalar_array, wrap

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


def literal(number: Any, dtype: DType) -> Any:
    """A number as a scalar of a dtype."""
    if dtype.kind is Kind.BOOL:
        return bool(number)
    if dtype.is_int:
        return wrap(int(number), dtype)
    # bf16 literals are rounded once from float64 to float32 and once more, as the emitter prints.
    with np.errstate(all="ignore"):
        wide = np.float64(number)
        return wide if dtype.bits == 64 else conversion(_F64, dtype)(wide)


_F64 = DType("f64", 64, Kind.FLOAT)


def _constant(slot: int, number: Any) -> Step:
    def step(s: Slots, m: Batch) -> None:
        s[slot] = number

    return step


@simulates(scalar.Const)
def const(t: Translator, op: scalar.Const) -> Step:
    return _constant(t.slot(op.result), literal(op.number, op.dtype))


@simulates(scalar.Dim)
def dim(t: Translator, op: scalar.Dim) -> Step:
    tensor, d, axis = t.slot(op.tensor), t.slot(op.result), op.axis

    def step(s: Slots, m: Batch) -> None:
        s[d] = s[tensor].shape[axis]

    return step


@simulates(scalar.Stride)
def stride(t: Translator, op: scalar.Stride) -> Step:
    tensor, d, axis = t.slot(op.tensor), t.slot(op.result), op.axis
    assert isinstance(op.tensor.type, Tensor)
    letter = op.tensor.type.cls.strides[axis]
    if letter != "n":
        return _constant(d, int(letter))

    def step(s: Slots, m: Batch) -> None:
        s[d] = s[tensor].strides[axis]

    return step


@simulates(scalar.BlockId)
def block_id(t: Translator, op: scalar.BlockId) -> Step:
    d, axis = t.slot(op.result), op.axis

    def step(s: Slots, m: Batch) -> None:
        s[d] = m.ids[axis]

    return step


@simulates(scalar.GridDim)
def grid_dim(t: Translator, op: scalar.GridDim) -> Step:
    d, axis = t.slot(op.result), op.axis

    def step(s: Slots, m: Batch) -> None:
        s[d] = m.launch.grid[axis]

    return step


def _dtype(op: Any, operand: str) -> DType:
    return getattr(op, operand).type.dtype


@simulates(scalar.Binary, scalar.Compare)
def binary(t: Translator, op: scalar.Binary | scalar.Compare) -> Step:
    make = scalar_compare if isinstance(op, scalar.Compare) else scalar_binary
    f = make(op.kind, _dtype(op, "lhs"))
    a, b, d = t.slot(op.lhs), t.slot(op.rhs), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = f(s[a], s[b])

    return step


@simulates(scalar.Unary)
def unary(t: Translator, op: scalar.Unary) -> Step:
    f = scalar_unary(op.kind, _dtype(op, "value"))
    a, d = t.slot(op.value), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = f(s[a])

    return step


@simulates(scalar.Select)
def select(t: Translator, op: scalar.Select) -> Step:
    c, yes, no, d = t.slot(op.condition), t.slot(op.yes), t.slot(op.no), t.slot(op.result)
    dtype = _dtype(op, "yes")

    def step(s: Slots, m: Batch) -> None:
        condition = s[c]
        if type(condition) is np.ndarray:
            one, other = scalar_array(s[yes], dtype, 0), scalar_array(s[no], dtype, 0)
            s[d] = np.where(condition, one, other)
        else:
            s[d] = s[yes] if condition else s[no]

    return step


@simulates(scalar.Cast)
def cast(t: Translator, op: scalar.Cast) -> Step:
    f = scalar_conversion(_dtype(op, "value"), op.dtype)
    a, d = t.slot(op.value), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = f(s[a])

    return step

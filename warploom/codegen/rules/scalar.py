"""Uniform scalars: literals and parameters stand where they are used, the rest are variables."""

from __future__ import annotations

from warploom.codegen import expressions
from warploom.codegen.c_types import literal
from warploom.codegen.places import Place
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, dtype_of
from warploom.ir.ops import scalar as ops
from warploom.ir.ops.scalar import tensor_of

_AXIS = "xyz"


@emits(ops.Const)
def const(out: Emitter, op: ops.Const) -> None:
    out.prelude.type(op.dtype)
    out.alias(op.result, Place.expression(literal(op.number, op.dtype)))


@emits(ops.Dim)
def dim(out: Emitter, op: ops.Dim) -> None:
    out.alias(op.result, Place.expression(out.extents[(op.tensor, op.axis)]), "n")


@emits(ops.Stride)
def stride(out: Emitter, op: ops.Stride) -> None:
    letter = tensor_of(op.tensor).cls.strides[op.axis]
    if letter == "n":
        text = out.strides[(op.tensor, op.axis)]
    else:
        text = literal(int(letter), dtype_of(op.result))
    out.alias(op.result, Place.expression(text), "stride")


@emits(ops.BlockId)
def block_id(out: Emitter, op: ops.BlockId) -> None:
    axis = _AXIS[op.axis]
    out.elementwise(op.result, (), lambda: f"(int)blockIdx.{axis}", f"block_{axis}")


@emits(ops.GridDim)
def grid_dim(out: Emitter, op: ops.GridDim) -> None:
    axis = _AXIS[op.axis]
    out.elementwise(op.result, (), lambda: f"(int)gridDim.{axis}", f"blocks_{axis}")


@emits(ops.Binary)
def binary(out: Emitter, op: ops.Binary) -> None:
    dtype = dtype_of(op.lhs)
    out.elementwise(
        op.result,
        (op.lhs, op.rhs),
        lambda a, b: expressions.binary(out.prelude, op.kind, dtype, a, b),
        "s",
    )


@emits(ops.Unary)
def unary(out: Emitter, op: ops.Unary) -> None:
    dtype = dtype_of(op.value)
    out.elementwise(
        op.result, (op.value,), lambda x: expressions.unary(out.prelude, op.kind, dtype, x), "s"
    )


@emits(ops.Compare)
def compare(out: Emitter, op: ops.Compare) -> None:
    dtype = dtype_of(op.lhs)
    out.elementwise(
        op.result,
        (op.lhs, op.rhs),
        lambda a, b: expressions.compare(out.prelude, op.kind, dtype, a, b),
        "b",
    )


@emits(ops.Select)
def select(out: Emitter, op: ops.Select) -> None:
    out.elementwise(op.result, (op.condition, op.yes, op.no), expressions.select, "s")


@emits(ops.Cast)
def cast(out: Emitter, op: ops.Cast) -> None:
    source = dtype_of(op.value)
    out.elementwise(
        op.result, (op.value,), lambda x: expressions.cast(out.prelude, source, op.dtype, x), "s"
    )

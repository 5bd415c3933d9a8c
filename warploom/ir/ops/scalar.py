"""Uniform scalars, legal at every stage: literals, launch geometry, tensor extents, arithmetic."""

from __future__ import annotations

from warploom.base.dtypes import DType, boolean, i32, i64
from warploom.ir.op import (
    Actor,
    Complaint,
    Effect,
    Op,
    Stage,
    Value,
    attribute,
    check,
    op,
    operand,
    operands,
    optional,
)
from warploom.ir.ops.arithmetic import binary_dtype, compare_dtype, unary_dtype
from warploom.ir.types import Scalar, Tensor, Type, Uniformity


def scalar_of(value: Value) -> Scalar:
    """The type of a value that must be a scalar."""
    # The message is made only where it is needed: this runs for every operand of every operation.
    if not isinstance(value.type, Scalar):
        raise Complaint(f"{value} is not a scalar")
    return value.type


def tensor_of(value: Value) -> Tensor:
    """The type of a value that must be a tensor."""
    # The message is made only where it is needed: this runs for every operand of every operation.
    if not isinstance(value.type, Tensor):
        raise Complaint(f"{value} is not a tensor")
    return value.type


def least_uniform(*values: Value) -> Uniformity:
    """Uniformity of what is computed from these scalars."""
    return max((scalar_of(v).uniform for v in values), default=Uniformity.GRID)


@op("scalar.const", executes=Actor.WARP)
class Const(Op):
    """A literal. Floats are held as Python floats and rounded to `dtype` when used."""

    number: int | float | bool = attribute()
    dtype: DType = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Scalar(self.dtype),)


@op("scalar.dim", executes=Actor.WARP)
class Dim(Op):
    """Extent of a tensor argument along an axis: i32, or i64 where the class is wide."""

    tensor: Value = operand()
    axis: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        t = tensor_of(self.tensor)
        check(0 <= self.axis < t.rank, f"axis {self.axis} of a tensor of rank {t.rank}")
        return (Scalar(i64 if t.cls.wide else i32),)


@op("scalar.stride", executes=Actor.WARP)
class Stride(Op):
    """Stride of a tensor argument along an axis, in elements: i32, or i64 where the class is
    wide."""

    tensor: Value = operand()
    axis: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        t = tensor_of(self.tensor)
        check(0 <= self.axis < t.rank, f"axis {self.axis} of a tensor of rank {t.rank}")
        return (Scalar(i64 if t.cls.wide else i32),)


@op("scalar.block_id", executes=Actor.BLOCK)
class BlockId(Op):
    """Index of this block in the grid along axis 0, 1 or 2."""

    axis: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        check(self.axis in (0, 1, 2), f"grid axis {self.axis}")
        return (Scalar(i32, Uniformity.BLOCK),)


@op("scalar.grid_dim", executes=Actor.WARP)
class GridDim(Op):
    """Number of blocks of the grid along axis 0, 1 or 2."""

    axis: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        check(self.axis in (0, 1, 2), f"grid axis {self.axis}")
        return (Scalar(i32),)


@op("scalar.binary", executes=Actor.WARP)
class Binary(Op):
    """Arithmetic of two scalars of one dtype (kinds of `arithmetic.BINARY`)."""

    lhs: Value = operand()
    rhs: Value = operand()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        dtype = binary_dtype(self.kind, scalar_of(self.lhs).dtype, scalar_of(self.rhs).dtype)
        return (Scalar(dtype, least_uniform(self.lhs, self.rhs)),)


@op("scalar.unary", executes=Actor.WARP)
class Unary(Op):
    """Arithmetic of one scalar (kinds of `arithmetic.UNARY`)."""

    value: Value = operand()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        dtype = unary_dtype(self.kind, scalar_of(self.value).dtype)
        return (Scalar(dtype, least_uniform(self.value)),)


@op("scalar.compare", executes=Actor.WARP)
class Compare(Op):
    """Comparison of two scalars of one dtype (kinds of `arithmetic.COMPARE`)."""

    lhs: Value = operand()
    rhs: Value = operand()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        dtype = compare_dtype(self.kind, scalar_of(self.lhs).dtype, scalar_of(self.rhs).dtype)
        return (Scalar(dtype, least_uniform(self.lhs, self.rhs)),)


@op("scalar.select", executes=Actor.WARP)
class Select(Op):
    """`yes` where the condition holds, else `no`."""

    condition: Value = operand()
    yes: Value = operand()
    no: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        check(scalar_of(self.condition).dtype == boolean, "condition is not bool")
        dtype = scalar_of(self.yes).dtype
        check(
            dtype == scalar_of(self.no).dtype,
            f"select between {dtype} and {scalar_of(self.no).dtype}",
        )
        return (Scalar(dtype, least_uniform(self.condition, self.yes, self.no)),)


@op("scalar.cast", executes=Actor.WARP)
class Cast(Op):
    """Conversion to another dtype; float to integer truncates, to bool tests for non-zero."""

    value: Value = operand()
    dtype: DType = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Scalar(self.dtype, least_uniform(self.value)),)


@op(
    "scalar.load",
    stages=Stage.TILE | Stage.ROLES,
    effects=(Effect.READ_GLOBAL,),
    executes=Actor.WARP,
)
class Load(Op):
    """One element of a tensor, the same for the whole block; out of bounds gives `other` or
    zero."""

    tensor: Value = operand()
    indices: tuple[Value, ...] = operands()
    other: Value | None = optional()

    def infer(self) -> tuple[Type, ...]:
        t = tensor_of(self.tensor)
        check(len(self.indices) == t.rank, f"{len(self.indices)} indices for rank {t.rank}")
        # Memory may differ from block to block even where the indices do not.
        return (Scalar(t.dtype, max(Uniformity.BLOCK, least_uniform(*self.indices))),)

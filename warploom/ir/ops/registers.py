"""Register-wise machine operations: each acts on a whole register tile, the same in every thread.

Operands of one operation have one rank; an extent of 1 broadcasts. Nothing here exchanges data
between threads.
"""

from __future__ import annotations

from warploom.base.dtypes import DType, boolean, f32, i32
from warploom.ir.op import (
    Block,
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
    region,
)
from warploom.ir.ops.arithmetic import ARG_FOLD, FOLD, binary_dtype, compare_dtype, unary_dtype
from warploom.ir.ops.scalar import scalar_of
from warploom.ir.types import Regs, Scalar, Type, Uniformity, broadcast


def regs_of(value: Value) -> Regs:
    """The type of a value that must be a register tile."""
    if not isinstance(value.type, Regs):
        raise Complaint(f"{value} is not in registers")
    return value.type


def _extents(*values: Value) -> tuple[int, ...]:
    common = broadcast(*(regs_of(v).extents for v in values))
    if common is None:
        given = ", ".join(str(regs_of(v).extents) for v in values)
        raise Complaint(f"extents {given} do not fit")
    return common


@op("registers.splat", stages=Stage.MACHINE)
class Splat(Op):
    """A scalar as a register tile of rank `rank`, extents 1."""

    value: Value = operand()
    rank: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Regs(scalar_of(self.value).dtype, (1,) * self.rank),)


@op("registers.spread", stages=Stage.MACHINE)
class Spread(Op):
    """Repeat along axes of extent 1."""

    value: Value = operand()
    extents: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        r = regs_of(self.value)
        check(
            broadcast(r.extents, self.extents) == self.extents,
            f"{r.extents} does not spread to {self.extents}",
        )
        return (Regs(r.dtype, self.extents),)


@op("registers.view", stages=Stage.MACHINE)
class View(Op):
    """Insert, drop or permute axes: result axis i is operand axis axes[i], or a new axis of extent
    1 where axes[i] is −1. Dropped axes have extent 1. No instruction, but registers are
    renumbered."""

    value: Value = operand()
    axes: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        r = regs_of(self.value)
        kept = [a for a in self.axes if a >= 0]
        check(len(set(kept)) == len(kept), f"axes {self.axes} repeat")
        dropped = [n for a, n in enumerate(r.extents) if a not in kept]
        check(all(n == 1 for n in dropped), f"axes {self.axes} drop registers of {r.extents}")
        return (Regs(r.dtype, tuple(1 if a < 0 else r.extents[a] for a in self.axes)),)


@op("registers.slice", stages=Stage.MACHINE)
class Slice(Op):
    """Registers start ≤ r < start + size along an axis."""

    value: Value = operand()
    axis: int = attribute()
    start: int = attribute()
    size: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        r = regs_of(self.value)
        check(
            self.start >= 0 and self.size >= 1 and self.start + self.size <= r.extents[self.axis],
            "slice outside",
        )
        return (Regs(r.dtype, r.extents[: self.axis] + (self.size,) + r.extents[self.axis + 1 :]),)


@op("registers.cat", stages=Stage.MACHINE)
class Cat(Op):
    """Register tiles joined along an axis."""

    values: tuple[Value, ...] = operands()
    axis: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        first = regs_of(self.values[0])
        total = 0
        for v in self.values:
            r = regs_of(v)
            same = r.extents[: self.axis] + r.extents[self.axis + 1 :] == (
                first.extents[: self.axis] + first.extents[self.axis + 1 :]
            )
            check(same and r.dtype == first.dtype, f"cat of {first} and {r}")
            total += r.extents[self.axis]
        return (
            Regs(
                first.dtype, first.extents[: self.axis] + (total,) + first.extents[self.axis + 1 :]
            ),
        )


@op("registers.binary", stages=Stage.MACHINE)
class Binary(Op):
    """Arithmetic and bit operations (kinds of `arithmetic.BINARY`), bool included for
    and/or/xor."""

    lhs: Value = operand()
    rhs: Value = operand()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        extents = _extents(self.lhs, self.rhs)
        return (
            Regs(
                binary_dtype(self.kind, regs_of(self.lhs).dtype, regs_of(self.rhs).dtype), extents
            ),
        )


@op("registers.unary", stages=Stage.MACHINE)
class Unary(Op):
    """Arithmetic of one operand (kinds of `arithmetic.UNARY`)."""

    value: Value = operand()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        r = regs_of(self.value)
        return (Regs(unary_dtype(self.kind, r.dtype), r.extents),)


@op("registers.fma", stages=Stage.MACHINE)
class Fma(Op):
    """a × b + c with one rounding, f32."""

    a: Value = operand()
    b: Value = operand()
    c: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        check(all(regs_of(v).dtype == f32 for v in (self.a, self.b, self.c)), "fma takes f32")
        return (Regs(f32, _extents(self.a, self.b, self.c)),)


@op("registers.compare", stages=Stage.MACHINE)
class Compare(Op):
    """Comparison (kinds of `arithmetic.COMPARE`); gives bool."""

    lhs: Value = operand()
    rhs: Value = operand()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        dtype = compare_dtype(self.kind, regs_of(self.lhs).dtype, regs_of(self.rhs).dtype)
        return (Regs(dtype, _extents(self.lhs, self.rhs)),)


@op("registers.select", stages=Stage.MACHINE)
class Select(Op):
    """`yes` where the condition holds, else `no`."""

    condition: Value = operand()
    yes: Value = operand()
    no: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        check(regs_of(self.condition).dtype == boolean, "condition is not bool")
        dtype = regs_of(self.yes).dtype
        check(dtype == regs_of(self.no).dtype, "select between two dtypes")
        return (Regs(dtype, _extents(self.condition, self.yes, self.no)),)


@op("registers.cast", stages=Stage.MACHINE)
class Cast(Op):
    """Conversion as `tile.cast`."""

    value: Value = operand()
    dtype: DType = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Regs(self.dtype, regs_of(self.value).extents),)


@op("registers.fold", stages=Stage.MACHINE)
class Fold(Op):
    """Combine the registers of an axis in index order, first to last, to extent 1."""

    value: Value = operand()
    axis: int = attribute()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        r = regs_of(self.value)
        check(self.kind in FOLD, f"unknown fold {self.kind}")
        check(not r.dtype.is_f8, f"a fold of {r.dtype}")
        check(0 <= self.axis < len(r.extents), f"axis {self.axis}")
        return (Regs(r.dtype, r.extents[: self.axis] + (1,) + r.extents[self.axis + 1 :]),)


@op("registers.arg_fold", stages=Stage.MACHINE)
class ArgFold(Op):
    """Fold of (value, i32 index) pairs along an axis in index order. The better pair wins: NaN
    above all (for max and min alike), then the larger (smaller) value, then the lower index."""

    value: Value = operand()
    index: Value = operand()
    axis: int = attribute()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        r = regs_of(self.value)
        check(self.kind in ARG_FOLD, f"unknown fold {self.kind}")
        check(not r.dtype.is_f8, f"a fold of {r.dtype}")
        check(regs_of(self.index).dtype == i32, "indices are i32")
        extents = r.extents[: self.axis] + (1,) + r.extents[self.axis + 1 :]
        return (Regs(r.dtype, extents), Regs(i32, extents))


@op("registers.to_scalar", stages=Stage.MACHINE)
class ToScalar(Op):
    """A register tile with one register that is equal in all threads of the block, as a scalar."""

    value: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        r = regs_of(self.value)
        check(all(n == 1 for n in r.extents), f"{r} has several registers")
        return (Scalar(r.dtype, Uniformity.BLOCK),)


@op("registers.map", stages=Stage.MACHINE, effects=(Effect.CONTROL,))
class Map(Op):
    """Neighbouring register-wise operations of one register shape, printed as one loop over
    registers.

    The body uses outer values directly (extent 1 broadcasts inside it), holds only
    `registers.binary`, `unary`, `fma`, `compare`, `select`, `cast` and `spread`, all of extents
    `extents` or of extents that broadcast to them, and yields the values that are used outside.
    """

    extents: tuple[int, ...] = attribute()
    body: Block = region()

    def infer(self) -> tuple[Type, ...]:
        return tuple(v.type for v in self.body.ops[-1].operand_values())

"""Element by element: what one thread does to its own registers."""

from __future__ import annotations

from warploom.ir.ops import registers, tile
from warploom.passes.lowering.context import Lowering, lowers


@lowers(tile.Splat)
def splat(lower: Lowering, op: tile.Splat) -> None:
    rank = len(op.shape)
    lower.put(op.result, lower.splat(lower.get(op.value), rank))


@lowers(tile.Arange)
def arange(lower: Lowering, op: tile.Arange) -> None:
    # A copy, so that the shared coordinate does not take this value's name.
    coordinate = lower.coordinates(lower.layout(op.result), 0)
    extents = lower.layout(op.result).reg_extents
    lower.put(op.result, lower.build.emit(registers.Spread(value=coordinate, extents=extents)))


@lowers(tile.Binary)
def binary(lower: Lowering, op: tile.Binary) -> None:
    lower.put(op.result, lower.binary(op.kind, lower.get(op.lhs), lower.get(op.rhs)))


@lowers(tile.Unary)
def unary(lower: Lowering, op: tile.Unary) -> None:
    made = registers.Unary(value=lower.get(op.value), kind=op.kind)
    lower.put(op.result, lower.build.emit(made))


@lowers(tile.Fma)
def fma(lower: Lowering, op: tile.Fma) -> None:
    made = registers.Fma(a=lower.get(op.a), b=lower.get(op.b), c=lower.get(op.c))
    lower.put(op.result, lower.build.emit(made))


@lowers(tile.Compare)
def compare(lower: Lowering, op: tile.Compare) -> None:
    made = registers.Compare(lhs=lower.get(op.lhs), rhs=lower.get(op.rhs), kind=op.kind)
    lower.put(op.result, lower.build.emit(made))


@lowers(tile.Select)
def select(lower: Lowering, op: tile.Select) -> None:
    made = registers.Select(
        condition=lower.get(op.condition), yes=lower.get(op.yes), no=lower.get(op.no)
    )
    lower.put(op.result, lower.build.emit(made))


@lowers(tile.Cast)
def cast(lower: Lowering, op: tile.Cast) -> None:
    made = registers.Cast(value=lower.get(op.value), dtype=op.dtype)
    lower.put(op.result, lower.build.emit(made))


@lowers(tile.Broadcast)
def broadcast(lower: Lowering, op: tile.Broadcast) -> None:
    # Extent 1 broadcasts wherever registers are used: nothing to do but note the wider layout.
    value = lower.get(op.value)
    axes = tuple(range(len(op.shape)))
    lower.put(op.result, lower.build.emit(registers.View(value=value, axes=axes)))


@lowers(tile.InsertAxis)
def insert_axis(lower: Lowering, op: tile.InsertAxis) -> None:
    value = lower.get(op.value)
    assert isinstance(value.type, registers.Regs)
    axes = list(range(len(value.type.extents)))
    axes.insert(op.axis, -1)
    lower.put(op.result, lower.build.emit(registers.View(value=value, axes=tuple(axes))))


@lowers(tile.DropAxis)
def drop_axis(lower: Lowering, op: tile.DropAxis) -> None:
    value = lower.get(op.value)
    assert isinstance(value.type, registers.Regs)
    axes = tuple(a for a in range(len(value.type.extents)) if a != op.axis)
    lower.put(op.result, lower.build.emit(registers.View(value=value, axes=axes)))


@lowers(tile.Permute)
def permute(lower: Lowering, op: tile.Permute) -> None:
    made = registers.View(value=lower.get(op.value), axes=op.order)
    lower.put(op.result, lower.build.emit(made))


@lowers(tile.ToScalar)
def to_scalar(lower: Lowering, op: tile.ToScalar) -> None:
    lower.put(op.result, lower.build.emit(registers.ToScalar(value=lower.get(op.value))))

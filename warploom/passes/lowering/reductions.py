"""Folds along an axis: registers in index order, then lanes by xor 1, 2, 4, 8, 16, then warps
ascending through shared memory. The order is the contract that both devices follow."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.base.dtypes import DType, i32
from warploom.ir.layout.layout import Layout, Place
from warploom.ir.op import Value
from warploom.ir.ops import lanes, registers, tile
from warploom.ir.types import Regs
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.exchange import across_warps

_LAST_INDEX = 2**31 - 1


def identity(kind: str, dtype: DType) -> int | float | bool:
    """The element that changes nothing: of + it is −0.0, since +0.0 would turn a sum of −0.0
    positive."""
    if kind == "add":
        return -0.0 if dtype.is_float else 0
    if kind in ("and", "or"):
        return kind == "and"
    if dtype.is_float:
        return float("-inf") if kind == "max" else float("inf")
    least, most = dtype.int_range
    return least if kind == "max" else most


def xor_masks(layout: Layout, axis: int) -> Iterator[int]:
    """Lane masks that visit all lanes of an axis, ascending."""
    for mode in layout.of(Place.LANE, axis):
        step = 1
        while step < mode.extent:
            yield layout.divisor(mode) * step
            step *= 2


def without_padding(lower: Lowering, held: Value, layout: Layout, axis: int, fill: Value) -> Value:
    """Pad elements along an axis replaced by `fill`."""
    real = lower.inside_tile(layout, axis)
    if real is None:
        return held
    return lower.build.emit(registers.Select(condition=real, yes=held, no=fill))


def drop(lower: Lowering, held: Value, axis: int) -> Value:
    """Remove a register axis of extent 1."""
    assert isinstance(held.type, Regs)
    axes = tuple(a for a in range(len(held.type.extents)) if a != axis)
    return lower.build.emit(registers.View(value=held, axes=axes))


def along_axis(lower: Lowering, value: Value, axis: int) -> Value:
    """A tile value with all registers of one axis; others may stay broadcast."""
    held, layout = lower.get(value), lower.layout(value)
    assert isinstance(held.type, Regs)
    extents = tuple(
        layout.reg_extents[a] if a == axis else n for a, n in enumerate(held.type.extents)
    )
    return lower.full(held, extents)


@lowers(tile.Reduce)
def reduce(lower: Lowering, op: tile.Reduce) -> None:
    layout = lower.layout(op.value)
    rank = len(layout.shape)
    held = along_axis(lower, op.value, op.axis)
    assert isinstance(held.type, Regs)
    dtype = held.type.dtype
    fill = lower.splat_const(identity(op.kind, dtype), dtype, rank)
    held = without_padding(lower, held, layout, op.axis, fill)
    held = lower.build.emit(registers.Fold(value=held, axis=op.axis, kind=op.kind))
    for mask in xor_masks(layout, op.axis):
        other = lower.build.emit(lanes.ShuffleXor(value=held, mask=mask))
        held = lower.binary(op.kind, held, other)
    if layout.of(Place.WARP, op.axis):
        first, *rest = across_warps(lower, held, layout, op.axis)
        held = first
        for part in rest:
            held = lower.binary(op.kind, held, part)
    lower.put(op.result, drop(lower, held, op.axis))


@lowers(tile.ArgReduce)
def arg_reduce(lower: Lowering, op: tile.ArgReduce) -> None:
    layout = lower.layout(op.value)
    rank = len(layout.shape)
    held = along_axis(lower, op.value, op.axis)
    assert isinstance(held.type, Regs)
    dtype = held.type.dtype
    fill = lower.splat_const(identity(op.kind, dtype), dtype, rank)
    held = without_padding(lower, held, layout, op.axis, fill)
    # Pads lose every tie: their index is the highest.
    position = lower.coordinates(layout, op.axis)
    last = lower.splat_const(_LAST_INDEX, i32, rank)
    position = without_padding(lower, position, layout, op.axis, last)
    position = lower.full(position, registers.regs_of(held).extents)
    fold = registers.ArgFold(value=held, index=position, axis=op.axis, kind=op.kind)
    held, position = lower.build.add(fold).results
    for mask in xor_masks(layout, op.axis):
        other = lower.build.emit(lanes.ShuffleXor(value=held, mask=mask))
        other_position = lower.build.emit(lanes.ShuffleXor(value=position, mask=mask))
        held, position = better(lower, op.kind, (held, position), (other, other_position))
    if layout.of(Place.WARP, op.axis):
        values = across_warps(lower, held, layout, op.axis)
        positions = across_warps(lower, position, layout, op.axis)
        held, position = values[0], positions[0]
        for pair in zip(values[1:], positions[1:], strict=True):
            held, position = better(lower, op.kind, (held, position), pair)
    lower.put(op.result, drop(lower, position, op.axis))


def better(
    lower: Lowering, kind: str, mine: tuple[Value, Value], other: tuple[Value, Value]
) -> tuple[Value, Value]:
    """The better of two (value, index) pairs, as `registers.arg_fold` orders them."""

    def compare(how: str, lhs: Value, rhs: Value) -> Value:
        return lower.build.emit(registers.Compare(lhs=lhs, rhs=rhs, kind=how))

    (m, m_at), (o, o_at) = mine, other
    assert isinstance(m.type, Regs)
    wins = compare("gt" if kind == "max" else "lt", o, m)
    equal = compare("eq", o, m)
    if m.type.dtype.is_float:
        m_nan, o_nan = compare("ne", m, m), compare("ne", o, o)
        m_number = compare("eq", m, m)
        wins = lower.binary("or", wins, lower.binary("and", o_nan, m_number))
        equal = lower.binary("or", equal, lower.binary("and", o_nan, m_nan))
    lower_index = compare("lt", o_at, m_at)
    wins = lower.binary("or", wins, lower.binary("and", equal, lower_index))
    value = lower.build.emit(registers.Select(condition=wins, yes=o, no=m))
    position = lower.build.emit(registers.Select(condition=wins, yes=o_at, no=m_at))
    return value, position

"""Moving elements between threads through shared memory: conversions, sub-tiles, joins.

The scratch is an ordinary buffer; insert_role_barriers puts the barrier between stores and loads.
"""

from __future__ import annotations

from math import gcd, prod

from warploom.base.dtypes import DType, i32
from warploom.ir.layout.layout import Layout, Place
from warploom.ir.op import Value
from warploom.ir.ops import registers, shared_memory, tile
from warploom.passes.lowering.context import Lowering, lowers


def scratch(lower: Lowering, dtype: DType, elements: int) -> Value:
    """A buffer of the block's shared memory, one for each replica of a role: they run apart."""
    made = shared_memory.BufferOp(dtype=dtype, elements=elements, copies=lower.replicas)
    return lower.build.emit(made, "scratch")


def linear(
    lower: Lowering,
    layout: Layout,
    strides: tuple[int, ...],
    shift: int,
    vec: int,
) -> Value:
    """Σ coordinate · stride + shift, for groups of `vec` registers along the last axis."""
    rank = len(layout.shape)
    total: Value | None = None
    for axis, stride in enumerate(strides):
        part = lower.coordinates(layout, axis, vec if axis == rank - 1 else 1)
        if stride != 1:
            part = lower.binary("mul", part, lower.splat_const(stride, i32, rank))
        total = part if total is None else lower.binary("add", total, part)
    if total is None:
        return lower.splat_const(shift, i32, rank)
    if shift:
        total = lower.binary("add", total, lower.splat_const(shift, i32, rank))
    groups = _groups(layout, vec)
    return lower.full(total, groups)


def no_padding(
    lower: Lowering, layout: Layout, vec: int, vec_axis: int | None = None
) -> Value | None:
    """Predicate of the groups that lie inside the tile, `vec` wide along an axis (None: the last);
    None where all do."""
    predicate: Value | None = None
    wide = len(layout.shape) - 1 if vec_axis is None else vec_axis
    for axis in range(len(layout.shape)):
        group = vec if axis == wide else 1
        predicate = lower.both(predicate, lower.inside_tile(layout, axis, group))
    return predicate


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a dense array."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def width(layout: Layout, dtype: DType, *extents: int) -> int:
    """Elements a shared access along the last axis; `extents` are shifts that must stay aligned."""
    if not layout.shape:
        return 1
    last = len(layout.shape) - 1
    run = min(layout.run(last), 16 // dtype.bytes)
    run = gcd(run, layout.shape[last], *extents)
    return run & -run


def _groups(layout: Layout, vec: int) -> tuple[int, ...]:
    extents = layout.reg_extents
    return extents if vec == 1 else (*extents[:-1], extents[-1] // vec)


def put_to_scratch(
    lower: Lowering,
    buffer: Value,
    value: Value,
    strides: tuple[int, ...],
    shift: int = 0,
) -> None:
    """Store a tile's elements at Σ coordinate · stride + shift."""
    layout = lower.layout(value)
    held = lower.whole(value)
    vec = width(layout, _dtype(value), shift, *strides[:-1])
    predicate = lower.both(no_padding(lower, layout, vec), lower.first_replica(layout))
    lower.build.add(
        shared_memory.Store(
            buffer=buffer,
            value=held,
            offset=linear(lower, layout, strides, shift, vec),
            predicate=predicate,
            axis=max(len(layout.shape) - 1, 0),
            vec=vec,
        )
    )


def get_from_scratch(
    lower: Lowering,
    buffer: Value,
    layout: Layout,
    dtype: DType,
    strides: tuple[int, ...],
    shift: int = 0,
) -> Value:
    """Load a tile in `layout` from Σ coordinate · stride + shift; pads become zero."""
    vec = width(layout, dtype, shift, *strides[:-1])
    made = shared_memory.Load(
        buffer=buffer,
        offset=linear(lower, layout, strides, shift, vec),
        predicate=no_padding(lower, layout, vec),
        axis=max(len(layout.shape) - 1, 0),
        vec=vec,
    )
    return lower.build.emit(made)


def _dtype(value: Value) -> DType:
    assert isinstance(value.type, tile.Tile)
    return value.type.dtype


@lowers(tile.Convert)
def convert(lower: Lowering, op: tile.Convert) -> None:
    layout, dtype = lower.layout(op.result), _dtype(op.value)
    buffer = scratch(lower, dtype, prod(layout.shape))
    strides = row_major(layout.shape)
    put_to_scratch(lower, buffer, op.value, strides)
    lower.put(op.result, get_from_scratch(lower, buffer, layout, dtype, strides))


@lowers(tile.Slice)
def slice_tile(lower: Lowering, op: tile.Slice) -> None:
    source, layout, dtype = lower.layout(op.value), lower.layout(op.result), _dtype(op.value)
    if _slice_registers(lower, op, source, layout):
        return
    buffer = scratch(lower, dtype, prod(source.shape))
    strides = row_major(source.shape)
    put_to_scratch(lower, buffer, op.value, strides)
    shift = sum(start * stride for start, stride in zip(op.starts, strides, strict=True))
    lower.put(op.result, get_from_scratch(lower, buffer, layout, dtype, strides, shift))


def _slice_registers(lower: Lowering, op: tile.Slice, source: Layout, wanted: Layout) -> bool:
    """Keep some of every thread's registers, where the layouts say that these are the sub-tile."""
    held = lower.whole(op.value)
    cuts: list[tuple[int, int]] = []
    for axis, (start, size) in enumerate(zip(op.starts, op.sizes, strict=True)):
        found = source.window(axis, start, size)
        if found is None:
            return False
        source = found[0]
        cuts.append(found[1:])
    if source != wanted:
        return False
    for axis, (start, size) in enumerate(cuts):
        if size != registers.regs_of(held).extents[axis]:
            held = lower.build.emit(registers.Slice(value=held, axis=axis, start=start, size=size))
    lower.put(op.result, held)
    return True


@lowers(tile.Cat)
def cat(lower: Lowering, op: tile.Cat) -> None:
    layout, dtype = lower.layout(op.result), _dtype(op.result)
    if _cat_registers(lower, op, layout):
        return
    buffer = scratch(lower, dtype, prod(layout.shape))
    strides = row_major(layout.shape)
    at = 0
    for value in op.values:
        put_to_scratch(lower, buffer, value, strides, at * strides[op.axis])
        at += lower.layout(value).shape[op.axis]
    lower.put(op.result, get_from_scratch(lower, buffer, layout, dtype, strides))


def _cat_registers(lower: Lowering, op: tile.Cat, wanted: Layout) -> bool:
    """Put every thread's registers one behind the other, where the layouts say that this is the
    whole."""
    at = first = 0
    for value in op.values:
        layout = lower.layout(value)
        found = wanted.window(op.axis, at, layout.shape[op.axis])
        if found is None or found[:2] != (layout, first):
            return False
        at, first = at + layout.shape[op.axis], first + found[2]
    values = tuple(lower.whole(value) for value in op.values)
    lower.put(op.result, lower.build.emit(registers.Cat(values=values, axis=op.axis)))
    return True


def across_warps(lower: Lowering, held: Value, layout: Layout, axis: int) -> list[Value]:
    """What each warp digit of an axis holds of a value that is already equal across its lanes
    there.

    `held` has extent 1 along `axis`. Gives one value a digit, in ascending order, in every thread.
    """
    assert isinstance(held.type, registers.Regs)
    modes = layout.of(Place.WARP, axis)
    count = prod(m.extent for m in modes)
    flat = layout.collapse(axis)
    # Pads keep places of their own, so that they overwrite nothing.
    strides = row_major(tuple(flat.covered(a) for a in range(len(flat.shape))))
    plane = prod(flat.covered(a) for a in range(len(flat.shape)))
    buffer = scratch(lower, held.type.dtype, count * plane)
    offset = linear(lower, flat, strides, 0, 1)
    position, weight = offset, 1
    for mode in modes:
        digit = lower.scaled_digit(layout, mode, weight * plane)
        weight *= mode.extent
        position = lower.binary("add", position, digit)
    lanes = tuple(m for m in layout.modes if m.place is Place.LANE and m.axis == axis)
    predicate = lower.digit_is_zero(layout, lanes + layout.replicas)
    lower.build.add(
        shared_memory.Store(
            buffer=buffer,
            value=lower.full(held, flat.reg_extents),
            offset=position,
            predicate=predicate,
        )
    )
    parts = []
    for number in range(count):
        shifted = offset
        if number:
            shift = lower.splat_const(number * plane, i32, len(flat.shape))
            shifted = lower.binary("add", offset, shift)
        parts.append(
            lower.build.emit(shared_memory.Load(buffer=buffer, offset=shifted, predicate=None))
        )
    return parts

"""Tiles in shared memory: buffers, views as byte offsets, swizzled element addresses, and barriers.

A view of the tile stage becomes a place: a buffer and the bytes from its start. The swizzle is an
xor of integers here; after this no operation knows of it but by the numbers it is given.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from warploom.base.dtypes import i32, i64
from warploom.ir.builder import Builder
from warploom.ir.layout.fragments import WARPGROUP, accumulator, matrix_columns, matrix_rows
from warploom.ir.layout.layout import Layout
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import cluster, control, mbarrier, registers, shared, shared_memory, sync
from warploom.ir.types import Barriers, SharedTile
from warploom.passes.lowering.context import Lowering, SharedPlace, lowers
from warploom.passes.lowering.exchange import no_padding

_CHUNK = 16  # bytes that a swizzle keeps together
_BARRIER_BYTES = 8


def type_of(view: Value) -> SharedTile:
    """Type of a view before it was lowered."""
    return shared.shared_of(view)


def address_of(lower: Lowering, view: Value, extra: Value | None = None) -> Value:
    """Byte address of a view in the block's shared memory, plus `extra` bytes."""
    place = lower.places[view]
    address = lower.build.emit(shared_memory.Address(buffer=place.buffer))
    for part in (place.offset, extra):
        if part is not None:
            address = lower.arith("add", address, part)
    return address


def moved(lower: Lowering, place: SharedPlace, shift: Value) -> SharedPlace:
    """A place some bytes further on."""
    offset = shift if place.offset is None else lower.arith("add", place.offset, shift)
    return replace(place, offset=offset)


@lowers(shared.Alloc, shared.Alias)
def alloc(lower: Lowering, op: shared.Allocation) -> None:
    kind, alias = type_of(op.result), lower.aliases.get(op.result)
    total = max(kind.slots, 1) * kind.slot_bytes
    align, region, within, content = kind.layout.align, -1, 0, 0
    if alias is not None:
        total, align = alias.span(kind), alias.align
        region, within, content = alias.region, alias.within, alias.content
    made = shared_memory.BufferOp(
        dtype=op.dtype,
        elements=total // op.dtype.bytes,
        align=align,
        region=region,
        within=within,
        content=content,
        slots=max(kind.slots, 1),
    )
    buffer = lower.build.emit(made, op.result.name or "buffer")
    lower.homes[buffer] = lower.build.block
    lower.places[op.result] = SharedPlace(buffer, None, alias)


@lowers(shared.Slot)
def slot(lower: Lowering, op: shared.Slot) -> None:
    place, index = lower.places[op.buffer], lower.get(op.index)
    size, alias = lower.build.const(type_of(op.buffer).slot_bytes), place.alias
    if alias is None or alias.per * type_of(op.buffer).slot_bytes == alias.pitch:
        shift = lower.arith("mul", index, size)
    else:
        per, pitch = lower.build.const(alias.per), lower.build.const(alias.pitch)
        shift = lower.arith("mul", lower.arith("floordiv", index, per), pitch)
        inside = lower.arith("mul", lower.arith("mod", index, per), size)
        shift = lower.arith("add", shift, inside)
    lower.places[op.result] = moved(lower, place, shift)


@lowers(shared.Reinterpret)
def reinterpret(lower: Lowering, op: shared.Reinterpret) -> None:
    """Another buffer on the same bytes, made beside it: inside a role, its replicas would have one
    each."""
    place = lower.places[op.value]
    base = place.buffer.owner
    assert isinstance(base, shared_memory.BufferOp)
    if base.region < 0:
        base.region, lower.regions = lower.regions, lower.regions + 1
    made = shared_memory.BufferOp(
        dtype=op.dtype,
        elements=base.size // op.dtype.bytes,
        align=base.align,
        region=base.region,
        within=base.within,
        content=base.content,
    )
    home = lower.homes[place.buffer]
    buffer = Builder(Block(), op.loc).emit(made, op.result.name or place.buffer.name)
    home.ops.insert(home.ops.index(base) + 1, made)
    lower.homes[buffer] = home
    lower.places[op.result] = replace(place, buffer=buffer)


@lowers(shared.Permute)
def permute(lower: Lowering, op: shared.Permute) -> None:
    lower.places[op.result] = lower.places[op.value]


@lowers(shared.Window)
def window(lower: Lowering, op: shared.Window) -> None:
    kind = type_of(op.value)
    layout = kind.layout
    if len(kind.shape) == 1:
        start, size = lower.get(op.starts[0]), lower.build.const(layout.itemsize)
        lower.places[op.result] = moved(
            lower, lower.places[op.value], lower.arith("mul", start, size)
        )
        return
    row, column = (lower.get(op.starts[kind.order.index(stored)]) for stored in (0, 1))
    row_bytes = lower.build.const(layout.panel_columns * layout.itemsize)
    shift = lower.arith("mul", row, row_bytes)
    panel = lower.arith("floordiv", column, lower.build.const(layout.panel_columns))
    if layout.swizzle:
        shift_columns = lower.arith("mul", panel, lower.build.const(layout.panel_bytes))
    else:
        shift_columns = lower.arith("mul", column, lower.build.const(layout.itemsize))
    shift = lower.arith("add", shift, shift_columns)
    lower.places[op.result] = moved(lower, lower.places[op.value], shift)


def element_offset(
    lower: Lowering,
    view: Value,
    layout: Layout,
    vec_axis: int,
    vec: int,
    given: dict[int, Value] | None = None,
) -> Value:
    """Element offsets of a register tile in a shared tile, one a vector group. `given` are the
    coordinates of axes that index tiles hold."""
    given = given or {}
    kind = type_of(view)
    stored = kind.layout
    rank = len(kind.shape)
    last = kind.order.index(rank - 1)
    groups = [vec if axis == vec_axis else 1 for axis in range(rank)]
    column = given.get(last) or lower.coordinates(layout, last, groups[last])
    row: Value | None = None
    for number in range(rank - 1):
        axis = kind.order.index(number)
        part = given.get(axis) or lower.coordinates(layout, axis, groups[axis])
        if row is not None:
            row = lower.binary("mul", row, lower.splat_const(stored.shape[number], i32, rank))
        row = part if row is None else lower.binary("add", row, part)
    if stored.panels > 1:
        width = lower.splat_const(stored.panel_columns, i32, rank)
        panel = lower.binary("floordiv", column, width)
        inside = lower.binary("mod", column, width)
    else:
        panel, inside = None, column
    if stored.swizzle and row is not None:
        inside = _swizzled(lower, stored.swizzle, stored.itemsize, row, inside, rank)
    total = inside
    if row is not None:
        step = lower.splat_const(stored.panel_columns, i32, rank)
        total = lower.binary("add", lower.binary("mul", row, step), total)
    if panel is not None:
        step = lower.splat_const(stored.panel_bytes // stored.itemsize, i32, rank)
        total = lower.binary("add", lower.binary("mul", panel, step), total)
    offset = lower.places[view].offset
    if offset is not None:
        start = lower.arith("floordiv", offset, lower.build.const(stored.itemsize))
        total = lower.binary("add", total, lower.splat(start, rank))
    extents = tuple(n // groups[axis] for axis, n in enumerate(layout.reg_extents))
    return lower.full(total, extents)


def _swizzled(
    lower: Lowering, span: int, itemsize: int, row: Value, inside: Value, rank: int
) -> Value:
    """Column within the panel with its 16-byte chunk xored by the 128-byte line."""
    chunks = span // _CHUNK
    line = row
    if span < 128:
        line = lower.binary("floordiv", row, lower.splat_const(128 // span, i32, rank))
    line = lower.binary("and", line, lower.splat_const(chunks - 1, i32, rank))
    flip = lower.binary("mul", line, lower.splat_const(_CHUNK // itemsize, i32, rank))
    return lower.binary("xor", inside, flip)


def access_of(kind: SharedTile, layout: Layout) -> tuple[int, int]:
    """(axis, elements) of one access: along the contiguous axis, within a chunk of the swizzle."""
    last = kind.order.index(len(kind.shape) - 1)
    most = _CHUNK // kind.dtype.bytes
    width = gcd(min(layout.run(last), most), kind.shape[last])
    return last, 1 << (width.bit_length() - 1)


def _matrix_layout(lower: Lowering, view: Value, layout: Layout) -> tuple[Layout, bool] | None:
    """Whose addresses lanes give where a tile moves by 8 x 8 matrices, and whether rows of these
    are columns of the tile; None where it cannot: other elements, layouts, or rows in memory."""
    kind = type_of(view)
    if len(kind.shape) != 2 or kind.dtype.bits != 16 or not lower.target.has("sm_90"):
        return None
    rows, columns = kind.shape
    whole = layout.warps % WARPGROUP == 0 and rows % (16 * layout.warps) == 0 and columns % 16 == 0
    if not whole or layout != accumulator((rows, columns), layout.warps):
        return None
    if kind.layout.panel_columns * kind.layout.itemsize % _CHUNK:
        return None
    turned = kind.order[0] == 1
    make = matrix_columns if turned else matrix_rows
    return make((rows, columns), layout.warps), turned


@lowers(shared.Load)
def load(lower: Lowering, op: shared.Load) -> None:
    layout = lower.layout(op.result)
    by_matrices = _matrix_layout(lower, op.source, layout)
    if by_matrices is not None:
        rows, turned = by_matrices
        matrices = shared_memory.LoadMatrices(
            buffer=lower.places[op.source].buffer,
            offset=element_offset(lower, op.source, rows, 0 if turned else 1, 8),
            turned=turned,
        )
        lower.put(op.result, lower.build.emit(matrices))
        return
    axis, vec = access_of(type_of(op.source), layout)
    made = shared_memory.Load(
        buffer=lower.places[op.source].buffer,
        offset=element_offset(lower, op.source, layout, axis, vec),
        predicate=no_padding(lower, layout, vec, axis),
        axis=axis,
        vec=vec,
    )
    lower.put(op.result, lower.build.emit(made))


@lowers(shared.Store)
def store(lower: Lowering, op: shared.Store) -> None:
    layout = lower.layout(op.value)
    by_matrices = _matrix_layout(lower, op.target, layout)
    if by_matrices is not None:
        rows, turned = by_matrices
        matrices = shared_memory.StoreMatrices(
            buffer=lower.places[op.target].buffer,
            value=lower.whole(op.value),
            offset=element_offset(lower, op.target, rows, 0 if turned else 1, 8),
            turned=turned,
        )
        lower.build.add(matrices)
        return
    axis, vec = access_of(type_of(op.target), layout)
    predicate = lower.both(no_padding(lower, layout, vec, axis), lower.first_replica(layout))
    lower.build.add(
        shared_memory.Store(
            buffer=lower.places[op.target].buffer,
            value=lower.whole(op.value),
            offset=element_offset(lower, op.target, layout, axis, vec),
            predicate=predicate,
            axis=axis,
            vec=vec,
        )
    )


@lowers(shared.Reshape)
def reshape(lower: Lowering, op: shared.Reshape) -> None:
    lower.places[op.result] = lower.places[op.value]


def _indexed(
    lower: Lowering, op: shared.Gather | shared.Scatter, tile: Value, layout: Layout
) -> tuple[Value, Value | None, int, int]:
    """Offsets at computed coordinates of one axis, where these lie in the tile, and the axis and
    elements of an access: several where one index serves neighbours of another axis."""
    rank, index = len(layout.shape), lower.get(op.index)
    axis, vec = access_of(type_of(tile), layout)
    if axis == op.axis or registers.regs_of(index).extents[axis] != 1:
        axis, vec, index = rank - 1, 1, lower.whole(op.index)
    within = _within(lower, index, type_of(tile).shape[op.axis], rank)
    inside = lower.both(within, no_padding(lower, layout, vec, axis))
    return element_offset(lower, tile, layout, axis, vec, {op.axis: index}), inside, axis, vec


def _within(lower: Lowering, index: Value, count: int, rank: int) -> Value:
    """Where coordinates lie in an axis of `count` elements."""
    extent, zero = (lower.splat_const(n, i32, rank) for n in (count, 0))
    below = lower.build.emit(registers.Compare(lhs=index, rhs=extent, kind="lt"))
    above = lower.build.emit(registers.Compare(lhs=index, rhs=zero, kind="ge"))
    return lower.binary("and", above, below)


@lowers(shared.Element)
def element(lower: Lowering, op: shared.Element) -> None:
    layout = lower.layout(op.result)
    rank, shape = len(layout.shape), type_of(op.source).shape
    at = {axis: lower.splat(lower.get(i), rank) for axis, i in enumerate(op.index)}
    inside = no_padding(lower, layout, 1)
    for axis, index in at.items():
        inside = lower.both(inside, _within(lower, index, shape[axis], rank))
    made = shared_memory.Load(
        buffer=lower.places[op.source].buffer,
        offset=element_offset(lower, op.source, layout, rank - 1, 1, at),
        predicate=inside,
        axis=rank - 1,
    )
    lower.put(op.result, lower.build.emit(made))


@lowers(shared.Gather)
def gather(lower: Lowering, op: shared.Gather) -> None:
    layout = lower.layout(op.result)
    offset, inside, axis, vec = _indexed(lower, op, op.source, layout)
    buffer = lower.places[op.source].buffer
    made = shared_memory.Load(
        buffer=buffer, offset=offset, predicate=inside, axis=axis, vec=vec, gathered=True
    )
    lower.put(op.result, lower.build.emit(made))


@lowers(shared.Scatter)
def scatter(lower: Lowering, op: shared.Scatter) -> None:
    layout = lower.layout(op.value)
    offset, inside, axis, vec = _indexed(lower, op, op.target, layout)
    lower.build.add(
        shared_memory.Store(
            buffer=lower.places[op.target].buffer,
            value=lower.whole(op.value),
            offset=offset,
            predicate=lower.both(inside, lower.first_replica(layout)),
            axis=axis,
            vec=vec,
            gathered=True,
        )
    )


@lowers(mbarrier.Alloc)
def alloc_barriers(lower: Lowering, op: mbarrier.Alloc) -> None:
    """All barriers of a block of operations are made by one thread, and all of the block waits for
    it once, where the first ones are made."""
    block = lower.build.block
    if lower.barrier_makers.get(block) is None:
        last = control.Yield(values=(), loc=op.loc)
        body = Block((), [sync.FenceBarrierInit(loc=op.loc), last])
        maker = lower.build.add(control.OneThread(body=body))
        lower.build.add(_made_before_used(lower))
        lower.barrier_makers[block] = maker
    maker = lower.barrier_makers[block]
    made = shared_memory.BufferOp(dtype=i64, elements=op.count, slots=op.count, loc=op.loc)
    ahead = Builder(Block(), op.loc)
    buffer = ahead.emit(made, op.result.name or "barriers")
    lower.places[op.result] = SharedPlace(buffer, None)
    at = block.ops.index(maker)
    block.ops[at:at] = ahead.block.ops
    inits = Builder(Block(), op.loc)
    with lower.build.inside(inits.block):
        for number in range(op.count):
            shift = lower.build.const(number * _BARRIER_BYTES)
            address = address_of(lower, op.result, shift)
            lower.build.add(mbarrier.Init(barrier=address, arrivals=op.arrivals))
    maker.body.ops[-2:-2] = inits.block.ops


def _made_before_used(lower: Lowering) -> Op:
    """All who use a barrier wait until it is made: the block, or the cluster where peers do. What
    it has to see was published by the maker's fence."""
    why = "barriers are made before they are used"
    if lower.reaches_peers:
        return cluster.Sync(ordered=False, why=why)
    return sync.Barrier(threads=32 * lower.kernel.warps, why=why)


@lowers(mbarrier.At)
def at(lower: Lowering, op: mbarrier.At) -> None:
    size = lower.build.const(_BARRIER_BYTES)
    shift = lower.arith("mul", lower.get(op.index), size)
    lower.places[op.result] = moved(lower, lower.places[op.barriers], shift)
    lower.values[op.result] = address_of(lower, op.result)


def barrier_address(lower: Lowering, barrier: Value) -> Value:
    """Byte address of one barrier."""
    assert isinstance(barrier.type, Barriers)
    found = lower.values.get(barrier)
    return found if found is not None else address_of(lower, barrier)


@lowers(mbarrier.Arrive, mbarrier.Expect, mbarrier.Wait, mbarrier.Test)
def on_barrier(
    lower: Lowering, op: mbarrier.Arrive | mbarrier.Expect | mbarrier.Wait | mbarrier.Test
) -> None:
    address = barrier_address(lower, op.barrier)
    op.replace_operands(lambda v: address if v is op.barrier else lower.get(v))
    lower.build.block.ops.append(op)

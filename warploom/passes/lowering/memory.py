"""Windows, gathers and single elements of global tensors: addresses, predicates and access widths.

An address is a uniform base (window starts times strides) plus an offset that depends on lane, warp
and register only, so that loops move the base and keep the offset. Predicates are made one axis at
a time and joined at the access.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

from warploom.base.dtypes import DType, i32, i64
from warploom.ir.layout.layout import Layout
from warploom.ir.op import Value
from warploom.ir.ops import global_memory, registers, scalar, tensor, tile
from warploom.ir.types import Regs, Tensor, Tile
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.exchange import (
    get_from_scratch,
    put_to_scratch,
    row_major,
    scratch,
)

_ACCESS_BYTES = 16


@dataclass(slots=True)
class View:
    """A tensor argument seen through `rows`: extents of the view and where it starts."""

    root: Value
    extents: list[Value]
    origins: list[Value | None]
    type: Tensor

    @property
    def index_dtype(self) -> DType:
        return i64 if self.type.cls.wide else i32


def view_of(lower: Lowering, value: Value) -> View:
    """Follow `tensor.rows` back to the argument."""
    op = value.owner
    if not isinstance(op, tensor.Rows):
        assert isinstance(value.type, Tensor)
        extents = [
            lower.build.emit(scalar.Dim(tensor=value, axis=a)) for a in range(value.type.rank)
        ]
        return View(value, extents, [None] * value.type.rank, value.type)
    view = view_of(lower, op.tensor)
    lo, hi = lower.get(op.lo), lower.get(op.hi)
    end = lower.arith("min", hi, view.extents[op.axis])
    extent = lower.arith("sub", end, lo)
    if not lower.facts.is_nonnegative(op.lo):
        # A view that starts before the tensor is empty rather than shifted.
        zero = lower.build.const(0, scalar.scalar_of(extent).dtype)
        start_zero = lower.build.const(0, scalar.scalar_of(lo).dtype)
        before = lower.compare("lt", lo, start_zero)
        made = scalar.Select(condition=before, yes=zero, no=extent)
        extent = lower.build.emit(made)
    origin = view.origins[op.axis]
    view.origins[op.axis] = lo if origin is None else lower.arith("add", origin, lo)
    view.extents[op.axis] = extent
    return view


@dataclass(slots=True)
class Access:
    """Operands of one global access."""

    base: Value
    offset: Value
    predicate: Value | None
    axis: int
    vec: int


def stride_product(lower: Lowering, view: View, axis: int, index: Value) -> Value | None:
    """index · stride in the view's index dtype; None for stride 0."""
    letter = view.type.cls.strides[axis]
    if letter == "0":
        return None
    index = lower.index_cast(index, view.index_dtype)
    if letter == "1":
        return index
    stride = lower.build.emit(scalar.Stride(tensor=view.root, axis=axis))
    return lower.arith("mul", index, stride)


def base_of(lower: Lowering, view: View, starts: list[Value | None]) -> Value:
    """Σ (origin + start) · stride of the axes that have a start."""
    total: Value | None = None
    for axis, start in enumerate(starts):
        origin = view.origins[axis]
        for index in (origin, start):
            if index is None or lower.facts.constant(index) == 0:
                continue
            part = stride_product(lower, view, axis, index)
            if part is not None:
                total = part if total is None else lower.arith("add", total, part)
    return total if total is not None else lower.build.const(0, view.index_dtype)


def access_width(
    lower: Lowering, view: View, starts: tuple[Value, ...], axis: int, t: int, layout: Layout
) -> int:
    """Elements an access: the least of layout, class, and divisibility of start, origin and
    tile."""
    cls = view.type.cls
    dtype_bytes = view.type.dtype.bytes
    width = min(layout.run(t), _ACCESS_BYTES // dtype_bytes, max(1, cls.align // dtype_bytes))
    width = gcd(width, cls.extent_pow2)
    width = gcd(width, lower.facts.divisor(starts[axis]))
    width = gcd(width, layout.shape[t])
    if view.origins[axis] is not None:
        # The end of a `rows` view along the fast axis need not fall on a group.
        width = 1
    return width & -width


def window(
    lower: Lowering,
    view: View,
    starts: tuple[Value, ...],
    sizes: tuple[int | None, ...],
    layout: Layout,
    *,
    writes: bool,
    widest: int = _ACCESS_BYTES,
) -> Access:
    """Everything an access of at most `widest` bytes to a window needs. `starts` are of the tile
    stage."""
    rank = len(layout.shape)
    windows = [axis for axis, n in enumerate(sizes) if n is not None]
    vec_axis, vec = max(rank - 1, 0), 1
    if view.type.cls.strides.count("1") == 1:  # a second such axis would shift the groups
        for t, axis in enumerate(windows):
            if view.type.cls.strides[axis] == "1":
                vec_axis, vec = t, access_width(lower, view, starts, axis, t, layout)
    vec = min(vec, max(1, widest // view.type.dtype.bytes))
    lowered = [lower.get(s) for s in starts]
    base = base_of(lower, view, list(lowered))
    predicate = _scalar_bounds(lower, view, starts, sizes, rank)
    offset: Value | None = None
    for t, axis in enumerate(windows):
        group = vec if t == vec_axis else 1
        coordinate = lower.coordinates(layout, t, group)
        inside = _axis_bounds(lower, view, starts[axis], axis, t, layout, group)
        predicate = lower.both(predicate, inside)
        part = _scaled_coordinate(lower, view, axis, coordinate, rank)
        if part is not None:
            offset = part if offset is None else lower.binary("add", offset, part)
    if writes:
        predicate = lower.both(predicate, lower.first_replica(layout))
    groups = global_memory.grouped(layout.reg_extents, vec_axis, vec)
    if offset is None:
        offset = lower.splat_const(0, view.index_dtype, rank)
    return Access(base, lower.full(offset, groups), predicate, vec_axis, vec)


def _scaled_coordinate(
    lower: Lowering, view: View, axis: int, coordinate: Value, rank: int
) -> Value | None:
    letter = view.type.cls.strides[axis]
    if letter == "0":
        return None
    if view.index_dtype != i32:
        coordinate = lower.build.emit(registers.Cast(value=coordinate, dtype=view.index_dtype))
    if letter == "1":
        return coordinate
    stride = lower.build.emit(scalar.Stride(tensor=view.root, axis=axis))
    return lower.binary("mul", coordinate, lower.splat(stride, rank))


def _scalar_bounds(
    lower: Lowering,
    view: View,
    starts: tuple[Value, ...],
    sizes: tuple[int | None, ...],
    rank: int,
) -> Value | None:
    """Bounds of the axes that hold a plain index, as one splat predicate."""
    test: Value | None = None
    for axis, size in enumerate(sizes):
        if size is None:
            test = _join_scalars(lower, test, index_in_bounds(lower, view, axis, starts[axis]))
    return None if test is None else lower.splat(test, rank)


def index_in_bounds(lower: Lowering, view: View, axis: int, start: Value) -> Value:
    """0 ≤ start < extent as a scalar condition."""
    lowered = lower.get(start)
    test = lower.compare("lt", lowered, view.extents[axis])
    if not lower.facts.is_nonnegative(start):
        zero = lower.build.const(0, scalar.scalar_of(lowered).dtype)
        joined = _join_scalars(lower, test, lower.compare("ge", lowered, zero))
        assert joined is not None
        test = joined
    return test


def indices_in_bounds(lower: Lowering, view: View, indices: tuple[Value, ...]) -> Value | None:
    """Whether an element lies in the tensor, as a scalar condition; None without axes."""
    test: Value | None = None
    for axis, position in enumerate(indices):
        test = _join_scalars(lower, test, index_in_bounds(lower, view, axis, position))
    return test


def _join_scalars(lower: Lowering, a: Value | None, b: Value) -> Value:
    if a is None:
        return b
    return lower.build.emit(scalar.Binary(lhs=a, rhs=b, kind="and"))


def _axis_bounds(
    lower: Lowering, view: View, start: Value, axis: int, t: int, layout: Layout, group: int
) -> Value | None:
    """Coordinates of one axis that lie in the tensor and are no padding."""
    rank = len(layout.shape)
    lowered = lower.get(start)
    limit = lower.arith("sub", view.extents[axis], lowered)
    if layout.is_padded(t):
        size = lower.build.const(layout.shape[t], scalar.scalar_of(limit).dtype)
        limit = lower.arith("min", limit, size)
    limit = _clamp_to_i32(lower, limit)
    coordinate = lower.coordinates(layout, t, group)
    inside = registers.Compare(lhs=coordinate, rhs=lower.splat(limit, rank), kind="lt")
    predicate = lower.build.emit(inside)
    if not lower.facts.is_nonnegative(start):
        zero = lower.build.const(0, scalar.scalar_of(lowered).dtype)
        first = _clamp_to_i32(lower, lower.arith("sub", zero, lowered))
        above = registers.Compare(lhs=coordinate, rhs=lower.splat(first, rank), kind="ge")
        predicate = lower.binary("and", predicate, lower.build.emit(above))
    return predicate


def _clamp_to_i32(lower: Lowering, limit: Value) -> Value:
    """A bound for i32 coordinates: what does not fit 32 bits bounds nothing."""
    if scalar.scalar_of(limit).dtype == i32:
        return limit
    low, high = lower.build.const(-(2**31), i64), lower.build.const(2**31 - 1, i64)
    clamped = lower.arith("max", lower.arith("min", limit, high), low)
    return lower.build.emit(scalar.Cast(value=clamped, dtype=i32))


def read_only(lower: Lowering, root: Value) -> bool:
    """Nobody writes this tensor while the kernel runs, under any name. A kernel that waits for the
    launch before it runs beside that one, which may write what is read after the wait."""
    param = lower.kernel.params.index(root)
    assert isinstance(root.type, Tensor)
    written = lower.kernel.dependent or param in lower.kernel.written
    return not written and not root.type.cls.aliased


@lowers(tile.Load)
def load(lower: Lowering, op: tile.Load) -> None:
    view = view_of(lower, op.tensor)
    access = window(lower, view, op.starts, op.sizes, lower.layout(op.result), writes=False)
    made = global_memory.Load(
        tensor=view.root,
        base=access.base,
        offset=access.offset,
        predicate=access.predicate,
        other=None if op.other is None else lower.get(op.other),
        axis=access.axis,
        vec=access.vec,
        read_only=read_only(lower, view.root),
        cache=op.cache,
    )
    lower.put(op.result, lower.build.emit(made))


@lowers(tile.Prefetch)
def prefetch(lower: Lowering, op: tile.Prefetch) -> None:
    view, layout = view_of(lower, op.tensor), lower.layout(op.mask)
    widest = 1 if op.masked else _ACCESS_BYTES
    access = window(lower, view, op.starts, op.sizes, layout, writes=True, widest=widest)
    mask = lower.get(op.mask) if op.masked else None
    lower.build.add(
        global_memory.Prefetch(
            tensor=view.root,
            base=access.base,
            offset=access.offset,
            predicate=lower.both(access.predicate, mask),
            level=op.level,
        )
    )


@lowers(tile.Store)
def store(lower: Lowering, op: tile.Store) -> None:
    view = view_of(lower, op.tensor)
    access = window(lower, view, op.starts, op.sizes, lower.layout(op.value), writes=True)
    lower.build.add(
        global_memory.Store(
            tensor=view.root,
            value=lower.whole(op.value),
            base=access.base,
            offset=access.offset,
            predicate=access.predicate,
            axis=access.axis,
            vec=access.vec,
            cache=op.cache,
        )
    )


@lowers(tile.Atomic)
def atomic(lower: Lowering, op: tile.Atomic) -> None:
    """What was there is known to the threads that asked; the others of the role get it through
    shared memory, whose barrier an acquire needs too (insert_role_barriers puts one where
    nobody asks)."""
    view, layout = view_of(lower, op.tensor), lower.layout(op.value)
    access = window(lower, view, op.starts, op.sizes, layout, writes=True, widest=1)
    returns = lower.is_used(op.result)
    made = global_memory.Atomic(
        tensor=view.root,
        value=lower.whole(op.value),
        base=access.base,
        offset=access.offset,
        expected=None if op.expected is None else lower.whole(op.expected),
        predicate=access.predicate,
        kind=op.kind,
        order=op.order,
        scope=op.scope,
        returns=returns,
        axis=access.axis,
    )
    lower.put(op.result, lower.build.emit(made))
    if returns and (made.acquires or layout.replicas):
        strides, dtype = row_major(layout.shape), registers.regs_of(made.result).dtype
        buffer = scratch(lower, dtype, prod(layout.shape))
        put_to_scratch(lower, buffer, op.result, strides)
        lower.put(op.result, get_from_scratch(lower, buffer, layout, dtype, strides))


@lowers(tile.Gather)
def gather(lower: Lowering, op: tile.Gather) -> None:
    view = view_of(lower, op.tensor)
    layout = lower.layout(op.result)
    rank = len(layout.shape)
    starts = [None if isinstance(v.type, Tile) else lower.get(v) for v in op.indices]
    predicate = None if op.mask is None else lower.get(op.mask)
    last, vec = max(rank - 1, 0), _run_width(lower, view, op, layout)
    offset: Value | None = None
    for axis, position in enumerate(op.indices):
        is_run = op.run > 0 and axis == len(op.indices) - 1
        if not isinstance(position.type, Tile) and not is_run:
            test = lower.splat(index_in_bounds(lower, view, axis, position), rank)
            predicate = lower.both(predicate, test)
            continue
        if is_run:
            lowered = _along_run(lower, position, layout, last, vec)
            starts[axis] = None
        else:
            lowered = lower.get(position)
        predicate = lower.both(predicate, _index_bounds(lower, view, axis, lowered, rank))
        part = _scaled_index(lower, view, axis, lowered, rank)
        if part is not None:
            offset = part if offset is None else lower.binary("add", offset, part)
    if offset is None:
        offset = lower.splat_const(0, view.index_dtype, rank)
    made = global_memory.Load(
        tensor=view.root,
        base=base_of(lower, view, starts),
        offset=lower.full(offset, global_memory.grouped(layout.reg_extents, last, vec)),
        predicate=predicate,
        other=None if op.other is None else lower.get(op.other),
        axis=last,
        vec=vec,
        read_only=read_only(lower, view.root),
        gathered=True,
    )
    lower.put(op.result, lower.build.emit(made))


def _run_width(lower: Lowering, view: View, op: tile.Gather, layout: Layout) -> int:
    """Elements an access of a gather: several where it reads runs that begin at multiples."""
    if not op.run:
        return 1
    letters, last = view.type.cls.strides, len(op.indices) - 1
    spread = (*(v for v in op.indices if isinstance(v.type, Tile)), *filter(None, (op.mask,)))
    whole = all(registers.regs_of(lower.get(v)).extents[-1] == 1 for v in spread)
    if letters[last] != "1" or letters.count("1") > 1 or not whole:
        return 1
    if view.origins[last] is not None:
        return 1
    dtype_bytes = view.type.dtype.bytes
    width = min(_ACCESS_BYTES, max(view.type.cls.align, dtype_bytes)) // dtype_bytes
    width = gcd(min(width, layout.run(len(layout.shape) - 1)), view.type.cls.extent_pow2)
    start = op.indices[last]
    found = _divisor(lower, start) if isinstance(start.type, Tile) else lower.facts.divisor(start)
    width = gcd(gcd(width, found), op.run)
    return width & -width


def _divisor(lower: Lowering, index: Value) -> int:
    """A power of two that divides all of an index tile, as it is written down."""
    op = index.owner
    if isinstance(op, tile.Splat):
        return lower.facts.divisor(op.value)
    if isinstance(op, tile.Broadcast | tile.InsertAxis):
        return _divisor(lower, op.value)
    if isinstance(op, tile.Binary) and op.kind in ("mul", "add", "sub"):
        left, right = _divisor(lower, op.lhs), _divisor(lower, op.rhs)
        return min(left * right, _ACCESS_BYTES) if op.kind == "mul" else gcd(left, right)
    return 1


def _along_run(lower: Lowering, start: Value, layout: Layout, axis: int, vec: int) -> Value:
    """Where each group of a run begins on the last axis of the tensor."""
    rank = len(layout.shape)
    first = lower.get(start)
    if not isinstance(start.type, Tile):
        first = lower.splat(first, rank)
    behind = lower.coordinates(layout, axis, vec)
    dtype = registers.regs_of(first).dtype
    if dtype != i32:
        behind = lower.build.emit(registers.Cast(value=behind, dtype=dtype))
    return lower.binary("add", first, behind)


def _index_bounds(lower: Lowering, view: View, axis: int, index: Value, rank: int) -> Value:
    extent, dtype = view.extents[axis], registers.regs_of(index).dtype
    if dtype == i32 and scalar.scalar_of(extent).dtype == i64:
        index, dtype = lower.build.emit(registers.Cast(value=index, dtype=i64)), i64
    extent = lower.index_cast(extent, dtype)
    below = registers.Compare(lhs=index, rhs=lower.splat(extent, rank), kind="lt")
    zero = lower.splat_const(0, dtype, rank)
    above = registers.Compare(lhs=index, rhs=zero, kind="ge")
    return lower.binary("and", lower.build.emit(above), lower.build.emit(below))


def _scaled_index(lower: Lowering, view: View, axis: int, index: Value, rank: int) -> Value | None:
    letter = view.type.cls.strides[axis]
    if letter == "0":
        return None
    assert isinstance(index.type, Regs)
    if index.type.dtype != view.index_dtype:
        index = lower.build.emit(registers.Cast(value=index, dtype=view.index_dtype))
    if letter == "1":
        return index
    stride = lower.build.emit(scalar.Stride(tensor=view.root, axis=axis))
    return lower.binary("mul", index, lower.splat(stride, rank))


@lowers(scalar.Load)
def load_scalar(lower: Lowering, op: scalar.Load) -> None:
    view = view_of(lower, op.tensor)
    made = global_memory.LoadScalar(
        tensor=view.root,
        base=base_of(lower, view, [lower.get(v) for v in op.indices]),
        predicate=indices_in_bounds(lower, view, op.indices),
        other=None if op.other is None else lower.get(op.other),
        read_only=read_only(lower, view.root),
    )
    lower.put(op.result, lower.build.emit(made))


@lowers(scalar.Dim)
def dim(lower: Lowering, op: scalar.Dim) -> None:
    view = view_of(lower, op.tensor)
    extent = view.extents[op.axis]
    if view.root is not op.tensor:
        zero = lower.build.const(0, scalar.scalar_of(extent).dtype)
        extent = lower.index_cast(
            lower.arith("max", extent, zero), scalar.scalar_of(op.result).dtype
        )
    lower.put(op.result, extent)


@lowers(scalar.Stride)
def stride(lower: Lowering, op: scalar.Stride) -> None:
    made = scalar.Stride(tensor=view_of(lower, op.tensor).root, axis=op.axis)
    lower.put(op.result, lower.build.emit(made))


@lowers(tensor.Rows)
def rows(lower: Lowering, op: tensor.Rows) -> None:
    """Dissolves: each access follows the view back to the argument."""

"""What the copy engine moves: windows, with one descriptor a tensor and box, one box a panel; and
runs of elements in one piece."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from warploom.base.diagnostics import Span
from warploom.base.dtypes import i32
from warploom.base.errors import Error, error
from warploom.ir.kernel import TensorMap
from warploom.ir.op import Op, Value
from warploom.ir.ops import bulk, cp_async, flagged, flags, remote, scalar, tensor, tile, tma
from warploom.ir.types import SharedTile
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.memory import base_of, view_of
from warploom.passes.lowering.shared import address_of, barrier_address, type_of

_LONGEST_BOX = 256  # elements along one axis
_UNIT = 16  # bytes


# What writes to tensors, and by what threads read them.
_WRITERS = {tma.Store, bulk.Store, tile.Store, tile.Atomic, flags.Signal, flagged.Send}
_READERS = {tile.Load, tile.Gather, scalar.Load, cp_async.Copy, flags.Wait, flagged.Receive}
_Copy: TypeAlias = tma.Load | tma.Store | tma.Prefetch | bulk.Load | bulk.Store | bulk.Prefetch


@dataclass(slots=True)
class _Box:
    """One box of a copy: coordinates fastest axis first, and the bytes from the tile's start."""

    coordinates: tuple[Value, ...]
    shift: int


def _not_possible(op: Op, message: str, hint: str, *others: Span) -> Error:
    label = "this descriptor" if op.FAMILY == "descriptor" else "this copy"
    return error("L010", message, Span.at(op.loc, label=label), *others, hint=hint)


def _check_whole(op: _Copy) -> None:
    if isinstance(op.tensor.owner, tensor.Rows):
        raise _not_possible(
            op,
            "the copy engine cannot clip a tensor to the end of `rows`",
            "copy from the whole tensor, or load through registers with `wl.load`",
        )


def _axes(op: tma.Load | tma.Store, kind: SharedTile) -> tuple[int, ...]:
    """The tensor's axes in the order of the tile as stored, fastest first; single ones last."""
    if op.room is not None:
        return tuple(reversed(range(len(op.sizes))))
    t = scalar.tensor_of(op.tensor)
    name = op.tensor.name or "the tensor"
    _check_whole(op)
    windows = [axis for axis, n in enumerate(op.sizes) if n is not None]
    stored = [windows[kind.order.index(at)] for at in reversed(range(len(windows)))]
    if t.cls.strides[stored[0]] != "1":
        fast = t.cls.strides.find("1")
        if fast < 0:
            raise _not_possible(
                op,
                f"no axis of `{name}` is contiguous",
                "pass a tensor with an axis of stride 1, or load through registers with `wl.load`",
            )
        raise _not_possible(
            op,
            f"`{name}` is contiguous along axis {fast}, the shared tile along axis {stored[0]}",
            "give the shared tile the axes of the tensor in memory and use its transpose `.T`",
        )
    return (*stored, *(axis for axis in range(t.rank) if axis not in windows))


def check_box(op: Op, kind: SharedTile, box: tuple[int, ...]) -> None:
    """A box is what the engine takes at once, and what lies in one piece in shared memory."""
    layout = kind.layout
    long = next((n for n in box if n > _LONGEST_BOX), None)
    if long is not None:
        raise _not_possible(
            op,
            f"a box of {' x '.join(map(str, reversed(box)))} elements: at most {_LONGEST_BOX} "
            "along an axis",
            "copy in several pieces, or use swizzle=128, which cuts rows into panels",
        )
    row = box[0] * layout.itemsize
    if row % _UNIT:
        raise _not_possible(
            op, f"rows of {row} bytes, no multiple of {_UNIT}", "copy wider rows, or use `wl.load`"
        )
    wide = kind.shape[kind.order.index(len(kind.shape) - 1)]
    whole = layout.panel_columns
    if wide % whole:
        raise _not_possible(
            op,
            f"a window of {wide} columns in a shared tile whose rows lie in pieces of {whole}",
            f"copy a multiple of {whole} columns",
        )


def _check_proxies(lower: Lowering, op: _Copy) -> None:
    """What one unit writes in a kernel the other does not read there, where nothing orders them."""
    uses = lower.tensor_uses(op.tensor)
    name = op.tensor.name or "the tensor"
    if any(f.space in ("global", "all") for f in lower.fences):
        return  # the kernel says that it takes care
    fence = '`wl.fence_async("global")` between the two says that they are ordered'
    writer = next((o for kind, o in uses.items() if kind in _WRITERS), None)
    if isinstance(op, tma.Load | bulk.Load) and writer is not None:
        raise _not_possible(
            op,
            f"`{name}` is written in this kernel and read by the copy engine",
            f"read it with `wl.load`, or write another tensor; {fence}",
            Span.at(writer.loc, label="written here"),
        )
    reader = next((o for kind, o in uses.items() if kind in _READERS), None)
    if isinstance(op, tma.Store | bulk.Store) and reader is not None:
        raise _not_possible(
            op,
            f"`{name}` is read by threads and written by the copy engine in one kernel",
            f"write it with `wl.store`, or read another tensor; {fence}",
            Span.at(reader.loc, label="read here"),
        )


def _map_number(
    lower: Lowering,
    tensor: Value,
    axes: tuple[int, ...],
    box: tuple[int, ...],
    swizzle: int,
    nan: bool = False,
    blank: bool = False,
) -> int:
    """The number of a descriptor of the kernel."""
    made = TensorMap(lower.kernel.params.index(tensor), axes, box, swizzle, nan, blank)
    if made not in lower.kernel.maps:
        lower.kernel.maps += (made,)
    return lower.kernel.maps.index(made)


def _plan(lower: Lowering, op: tma.Load | tma.Store, held: Value) -> tuple[int, int, list[_Box]]:
    """(number of the map, bytes of a box, boxes) of a copy."""
    kind = type_of(held)
    layout = kind.layout
    axes = _axes(op, kind)
    _check_proxies(lower, op)
    extents = {axis: n or 1 for axis, n in enumerate(op.sizes)}
    columns = layout.panel_columns
    box = (columns, *(extents[a] for a in axes[1:]))
    check_box(op, kind, box)
    nan = isinstance(op, tma.Load) and op.fill == "nan"
    blank = op.room is not None
    number = _map_number(lower, op.tensor, axes, box, layout.swizzle, nan, blank)
    starts = [lower.index_cast(lower.get(s), i32) for s in op.starts]
    boxes = []
    for panel in range(extents[axes[0]] // columns):
        first = starts[axes[0]]
        if panel:
            first = lower.arith("add", first, lower.build.const(panel * columns))
        coordinates = (first, *(starts[a] for a in axes[1:]))
        boxes.append(_Box(coordinates, panel * layout.panel_bytes))
    return number, prod(box) * layout.itemsize, boxes


def _made(lower: Lowering, op: tma.Load | tma.Store | tma.Prefetch) -> Value | None:
    """The number of the descriptor that the kernel has made, if it copies by one."""
    return None if op.number is None else lower.get(op.number)


@lowers(tma.Load)
def load(lower: Lowering, op: tma.Load) -> None:
    number, size, boxes = _plan(lower, op, op.target)
    for box in boxes:
        shift = lower.build.const(box.shift) if box.shift else None
        lower.build.add(
            tma.LoadBox(
                tensor=op.tensor,
                coordinates=box.coordinates,
                address=address_of(lower, op.target, shift),
                barrier=barrier_address(lower, op.barrier),
                multicast=None if op.multicast is None else lower.get(op.multicast),
                room=op.room,
                number=_made(lower, op),
                map=number,
                bytes=size,
                cache=op.cache,
            )
        )


@lowers(tma.Store)
def store(lower: Lowering, op: tma.Store) -> None:
    number, size, boxes = _plan(lower, op, op.source)
    for box in boxes:
        shift = lower.build.const(box.shift) if box.shift else None
        lower.build.add(
            tma.StoreBox(
                tensor=op.tensor,
                coordinates=box.coordinates,
                address=address_of(lower, op.source, shift),
                room=op.room,
                number=_made(lower, op),
                map=number,
                bytes=size,
                reduce=op.reduce,
                cache=op.cache,
            )
        )


@lowers(tma.Prefetch)
def prefetch(lower: Lowering, op: tma.Prefetch) -> None:
    """One box: the window as it is, fastest axis first, single axes last."""
    if op.like is not None:
        _prefetch_made(lower, op, type_of(op.like))
        return
    _check_whole(op)
    t = scalar.tensor_of(op.tensor)
    name = op.tensor.name or "the tensor"
    fast = t.cls.strides.find("1")
    windows = [axis for axis, n in enumerate(op.sizes) if n is not None]
    if fast not in windows:
        raise _not_possible(
            op,
            f"the window of `{name}` does not run along its contiguous axis",
            "prefetch a window along the axis of stride 1",
        )
    rest = [axis for axis in range(t.rank) if axis != fast]
    axes = (fast, *sorted(rest, key=lambda axis: (axis not in windows, -axis)))
    box = tuple(op.sizes[axis] or 1 for axis in axes)
    row = box[0] * t.dtype.bytes
    if max(box) > _LONGEST_BOX or row % _UNIT:
        raise _not_possible(
            op,
            f"a box of {' x '.join(map(str, reversed(box)))} elements, rows of {row} bytes: at "
            f"most {_LONGEST_BOX} along an axis, rows a multiple of {_UNIT} bytes",
            "prefetch smaller pieces, or `wl.prefetch(window)` by all threads",
        )
    starts = [lower.index_cast(lower.get(s), i32) for s in op.starts]
    lower.build.add(
        tma.PrefetchBox(
            tensor=op.tensor,
            coordinates=tuple(starts[axis] for axis in axes),
            room=None,
            number=None,
            map=_map_number(lower, op.tensor, axes, box, 0),
            cache=op.cache,
        )
    )


def box_of(kind: SharedTile) -> tuple[int, ...]:
    """The extents of one box of a whole tile, fastest axis first."""
    return (kind.layout.panel_columns, *reversed(kind.shape[:-1]))


def blank_map(lower: Lowering, tensor: Value, kind: SharedTile) -> int:
    """The number of what a kernel makes descriptors from, for boxes of a tile."""
    axes = tuple(reversed(range(len(kind.shape))))
    return _map_number(lower, tensor, axes, box_of(kind), kind.layout.swizzle, blank=True)


def _prefetch_made(lower: Lowering, op: tma.Prefetch, kind: SharedTile) -> None:
    """The boxes of a window by a descriptor that the kernel has made, as its copies take them."""
    starts = [lower.index_cast(lower.get(s), i32) for s in reversed(op.starts)]
    columns = kind.layout.panel_columns
    for panel in range(kind.layout.panels):
        shift = lower.build.const(panel * columns)
        lower.build.add(
            tma.PrefetchBox(
                tensor=op.tensor,
                coordinates=(lower.arith("add", starts[0], shift), *starts[1:]),
                room=op.room,
                number=_made(lower, op),
                map=blank_map(lower, op.tensor, kind),
                cache=op.cache,
            )
        )


# ---- runs in one piece ---------------------------------------------------------------------------


def _run(lower: Lowering, op: bulk.Load | bulk.Store | bulk.Prefetch) -> tuple[Value, int]:
    """(element at which a run begins, its bytes); raises CompileError L010, L020."""
    _check_whole(op)
    t = scalar.tensor_of(op.tensor)
    name = op.tensor.name or "the tensor"
    (axis,) = (a for a, n in enumerate(op.sizes) if n is not None)
    if t.cls.strides[axis] != "1":
        raise _not_possible(
            op,
            f"axis {axis} of `{name}` is not contiguous",
            "a bulk copy moves neighbouring elements; `wl.copy_async(window, tile)` moves others",
        )
    size = bulk.run_of(op.tensor, op.starts, op.sizes) * t.dtype.bytes
    start = lower.facts.divisor(op.starts[axis]) * t.dtype.bytes
    for what, number in (
        (f"a run of {size} bytes", size),
        (f"`{name}`, whose address or strides are multiples of {t.cls.align} bytes", t.cls.align),
        ("a start that is not known to be a multiple of 16 bytes", start),
    ):
        if number % _UNIT:
            raise error(
                "L020",
                f"a bulk copy moves multiples of {_UNIT} bytes between such addresses, and this "
                f"has {what}",
                op.loc,
                label="this copy",
                hint="write the start as `16 // x.dtype.bytes * i`, or use `wl.load`",
            )
    view = view_of(lower, op.tensor)
    return base_of(lower, view, [lower.get(s) for s in op.starts]), size


@lowers(bulk.Load)
def load_run(lower: Lowering, op: bulk.Load) -> None:
    base, size = _run(lower, op)
    _check_proxies(lower, op)
    check_piece(op, op.target)
    lower.build.add(
        bulk.LoadBytes(
            tensor=op.tensor,
            base=base,
            address=address_of(lower, op.target),
            barrier=barrier_address(lower, op.barrier),
            bytes=size,
            cache=op.cache,
        )
    )


@lowers(bulk.Store)
def store_run(lower: Lowering, op: bulk.Store) -> None:
    base, size = _run(lower, op)
    _check_proxies(lower, op)
    check_piece(op, op.source)
    lower.build.add(
        bulk.StoreBytes(
            tensor=op.tensor,
            base=base,
            address=address_of(lower, op.source),
            bytes=size,
            reduce=op.reduce,
            cache=op.cache,
        )
    )


@lowers(bulk.Prefetch)
def prefetch_run(lower: Lowering, op: bulk.Prefetch) -> None:
    base, size = _run(lower, op)
    lower.build.add(bulk.PrefetchBytes(tensor=op.tensor, base=base, bytes=size))


def check_piece(
    op: bulk.Load | bulk.Store | remote.Copy, tile: Value, else_by: str = "`wl.copy_async`"
) -> None:
    """A tile that lies in one piece, in order."""
    kind = type_of(tile)
    if kind.layout.swizzle or kind.order != tuple(range(len(kind.shape))):
        raise _not_possible(
            op,
            "a bulk copy moves bytes as they lie, and this tile is swizzled or turned",
            f"allocate it with swizzle=0, or use {else_by}",
        )
    whole = kind.layout.shape
    if kind.shape[1:] != whole[1:]:
        raise _not_possible(
            op,
            f"a window of {kind.shape[-1]} of {whole[-1]} columns does not lie in one piece",
            "copy whole rows of the shared tile",
        )

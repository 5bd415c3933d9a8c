"""Windows that the copy engine moves: one descriptor a tensor and box, one box a panel."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from warploom.base.dtypes import i32
from warploom.base.errors import Error, error
from warploom.ir.kernel import TensorMap
from warploom.ir.op import Op, Value
from warploom.ir.ops import scalar, tensor, tile, tma
from warploom.ir.types import SharedTile
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.shared import address_of, barrier_address, type_of

_LONGEST_BOX = 256  # elements along one axis
_UNIT = 16  # bytes


@dataclass(slots=True)
class _Box:
    """One box of a copy: coordinates fastest axis first, and the bytes from the tile's start."""

    coordinates: tuple[Value, ...]
    shift: int


def _not_possible(op: Op, message: str, hint: str) -> Error:
    return error("L010", message, op.loc, label="this copy", hint=hint)


def _axes(op: tma.Load | tma.Store, kind: SharedTile) -> tuple[int, ...]:
    """The tensor's axes in the order of the tile as stored, fastest first; single ones last."""
    t = scalar.tensor_of(op.tensor)
    name = op.tensor.name or "the tensor"
    if isinstance(op.tensor.owner, tensor.Rows):
        raise _not_possible(
            op,
            "the copy engine cannot clip a tensor to the end of `rows`",
            "copy from the whole tensor, or load through registers with `wl.load`",
        )
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


def _check_box(op: tma.Load | tma.Store, kind: SharedTile, box: tuple[int, ...]) -> None:
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


def _check_proxies(lower: Lowering, op: tma.Load | tma.Store) -> None:
    """What one unit writes in a kernel the other does not read there: nothing orders them."""
    uses = lower.tensor_uses(op.tensor)
    name = op.tensor.name or "the tensor"
    if isinstance(op, tma.Load) and uses & {tma.Store, tile.Store}:
        raise _not_possible(
            op,
            f"`{name}` is written in this kernel and read by the copy engine",
            "read it with `wl.load`, or write another tensor",
        )
    if isinstance(op, tma.Store) and uses & {tile.Load, tile.Gather, scalar.Load}:
        raise _not_possible(
            op,
            f"`{name}` is read with `wl.load` and written by the copy engine in one kernel",
            "write it with `wl.store`, or read another tensor",
        )


def _plan(lower: Lowering, op: tma.Load | tma.Store, held: Value) -> tuple[int, int, list[_Box]]:
    """(number of the map, bytes of a box, boxes) of a copy."""
    kind = type_of(held)
    layout = kind.layout
    axes = _axes(op, kind)
    _check_proxies(lower, op)
    extents = {axis: n or 1 for axis, n in enumerate(op.sizes)}
    columns = layout.panel_columns
    box = (columns, *(extents[a] for a in axes[1:]))
    _check_box(op, kind, box)
    made = TensorMap(lower.kernel.params.index(op.tensor), axes, box, layout.swizzle)
    if made not in lower.kernel.maps:
        lower.kernel.maps += (made,)
    number = lower.kernel.maps.index(made)
    starts = [lower.index_cast(lower.get(s), i32) for s in op.starts]
    boxes = []
    for panel in range(extents[axes[0]] // columns):
        first = starts[axes[0]]
        if panel:
            first = lower.arith("add", first, lower.build.const(panel * columns))
        coordinates = (first, *(starts[a] for a in axes[1:]))
        boxes.append(_Box(coordinates, panel * layout.panel_bytes))
    return number, prod(box) * layout.itemsize, boxes


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
                map=number,
                bytes=size,
                reduce=op.reduce,
                cache=op.cache,
            )
        )

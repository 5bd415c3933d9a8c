"""Windows that the copy engine moves: one descriptor a tensor and box, one box a panel."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.base.dtypes import i32
from warploom.base.errors import Error, error
from warploom.ir.kernel import TensorMap
from warploom.ir.op import Op, Value
from warploom.ir.ops import scalar, tensor, tma
from warploom.ir.types import SharedTile
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.shared import address_of, barrier_address, type_of

_LONGEST_BOX = 256  # elements along one axis


@dataclass(slots=True)
class _Box:
    """One box of a copy: coordinates fastest axis first, and the bytes from the tile's start."""

    coordinates: tuple[Value, ...]
    shift: int


def _not_possible(op: Op, message: str, hint: str) -> Error:
    return error("L010", message, op.loc, label="this copy", hint=hint)


def _axes(op: tma.Load | tma.Store, kind: SharedTile) -> tuple[int, ...]:
    """The tensor's axes fastest first; the fastest is the contiguous one of the tile too."""
    t = scalar.tensor_of(op.tensor)
    if isinstance(op.tensor.owner, tensor.Rows):
        raise _not_possible(
            op,
            f"the copy engine cannot clip {op.tensor.name or 'a tensor'} to the end of `rows`",
            "copy from the whole tensor, or load through registers with `wl.load`",
        )
    fast = t.cls.strides.find("1")
    if fast < 0:
        raise _not_possible(
            op,
            f"no axis of {op.tensor.name or 'the tensor'} is contiguous (strides {t.cls.strides})",
            "pass a tensor with an axis of stride 1, or load through registers with `wl.load`",
        )
    windows = [axis for axis, n in enumerate(op.sizes) if n is not None]
    contiguous = windows[kind.order.index(len(kind.shape) - 1)]
    if contiguous != fast:
        raise _not_possible(
            op,
            f"{op.tensor.name or 'the tensor'} is contiguous along axis {fast}, "
            f"the tile along axis {contiguous}",
            "give the shared tile the axes of the tensor in memory and use its transpose `.T`",
        )
    others = [axis for axis in range(t.rank) if axis != fast]
    return (fast, *sorted(others, reverse=True))


def _plan(lower: Lowering, op: tma.Load | tma.Store, tile: Value) -> tuple[int, int, list[_Box]]:
    """(number of the map, bytes of a box, boxes) of a copy."""
    kind = type_of(tile)
    layout = kind.layout
    axes = _axes(op, kind)
    columns = layout.panel_columns
    extents = {axis: n or 1 for axis, n in enumerate(op.sizes)}
    if layout.swizzle == 0:
        columns = extents[axes[0]]
    if layout.panel_columns > _LONGEST_BOX or any(extents[a] > _LONGEST_BOX for a in axes[1:]):
        raise _not_possible(
            op,
            f"a box of {columns} x {max(extents[a] for a in axes[1:])} elements: at most "
            f"{_LONGEST_BOX} along an axis",
            "copy in several pieces, or use swizzle=128, which cuts rows into panels",
        )
    box = (columns, *(extents[a] for a in axes[1:]))
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
    size = layout.itemsize
    for n in box:
        size *= n
    return number, size, boxes


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

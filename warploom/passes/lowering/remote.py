"""Tiles of peers: places as in the block's own tile, counted from the address of its buffer in the
peer."""

from __future__ import annotations

from math import prod

from warploom.base.errors import Error, error
from warploom.ir import cluster as shape
from warploom.ir.op import Value
from warploom.ir.ops import cluster, remote, shared_memory
from warploom.ir.types import SharedTile
from warploom.passes.lowering.cluster import remote_address
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.copies import check_piece
from warploom.passes.lowering.exchange import no_padding
from warploom.passes.lowering.shared import access_of, address_of, element_offset

_UNIT = 16  # bytes of a bulk copy


def tile_of(view: Value) -> remote.TileOn:
    """How a peer's tile was named."""
    assert isinstance(view.owner, remote.TileOn)
    return view.owner


@lowers(remote.TileOn)
def tile_on(lower: Lowering, op: remote.TileOn) -> None:
    """Named where it is accessed."""


def _base(lower: Lowering, op: remote.TileOn) -> tuple[Value, Value]:
    """The own buffer, and its address in the peer."""
    buffer = lower.places[op.tile].buffer
    own = lower.build.emit(shared_memory.Address(buffer=buffer))
    rank = lower.get(op.rank)
    return buffer, lower.build.emit(cluster.Address(address=own, rank=rank))


@lowers(remote.Load)
def load(lower: Lowering, op: remote.Load) -> None:
    view, layout = tile_of(op.source), lower.layout(op.result)
    axis, vec = access_of(remote.remote_of(op.source), layout)
    buffer, address = _base(lower, view)
    made = remote.LoadGroups(
        buffer=buffer,
        address=address,
        offset=element_offset(lower, view.tile, layout, axis, vec),
        predicate=no_padding(lower, layout, vec, axis),
        axis=axis,
        vec=vec,
    )
    lower.put(op.result, lower.build.emit(made))


@lowers(remote.Store)
def store(lower: Lowering, op: remote.Store) -> None:
    view, layout = tile_of(op.target), lower.layout(op.value)
    axis, vec = access_of(remote.remote_of(op.target), layout)
    buffer, address = _base(lower, view)
    lower.build.add(
        remote.StoreGroups(
            buffer=buffer,
            address=address,
            value=lower.whole(op.value),
            offset=element_offset(lower, view.tile, layout, axis, vec),
            predicate=lower.both(no_padding(lower, layout, vec, axis), lower.first_replica(layout)),
            axis=axis,
            vec=vec,
        )
    )


@lowers(remote.Send)
def send(lower: Lowering, op: remote.Send) -> None:
    view, layout, kind = tile_of(op.target), lower.layout(op.value), remote.remote_of(op.target)
    axis, vec = access_of(kind, layout)
    if remote.sent_bytes(kind.dtype, vec) not in remote.SENT_BYTES:
        raise _narrow(op, kind, vec)
    buffer, address = _base(lower, view)
    lower.build.add(
        remote.SendGroups(
            buffer=buffer,
            address=address,
            value=lower.whole(op.value),
            offset=element_offset(lower, view.tile, layout, axis, vec),
            barrier=remote_address(
                lower, lower.places[op.barrier], lower.get(view.rank), lower.build
            ),
            predicate=lower.both(
                no_padding(lower, layout, vec, axis), lower.replica(layout, op.replica)
            ),
            axis=axis,
            vec=vec,
            alone=lower.kernel.cluster == shape.ALONE,
        )
    )


def _narrow(op: remote.Send, kind: SharedTile, vec: int) -> Error:
    words = 4 // kind.dtype.bytes
    row = kind.shape[kind.order.index(len(kind.shape) - 1)]
    return error(
        "L023",
        f"an asynchronous store moves 4, 8 or 16 bytes, and a thread holds {vec} neighbouring "
        f"{kind.dtype}",
        op.loc,
        label="sent here",
        notes=(f"rows that lie together have {row} elements",),
        hint=f"send rows of a multiple of {words} elements, not turned, or cast to wl.f32",
    )


@lowers(remote.Copy)
def copy(lower: Lowering, op: remote.Copy) -> None:
    view, kind = tile_of(op.target), remote.remote_of(op.target)
    for tile in (op.source, view.tile):
        check_piece(op, tile, "`wl.store_async`")
    size = prod(kind.shape) * kind.dtype.bytes
    if size % _UNIT:
        raise error(
            "L020",
            f"a bulk copy moves multiples of {_UNIT} bytes, and this tile has {size}",
            op.loc,
            label="this copy",
            hint="send it from registers: `wl.store_async(tile.on(rank), value, barrier)`",
        )
    rank = lower.get(view.rank)
    place = lower.places[view.tile]
    lower.build.add(
        remote.CopyBytes(
            source=address_of(lower, op.source),
            target=remote_address(lower, place, rank, lower.build),
            barrier=remote_address(lower, lower.places[op.barrier], rank, lower.build),
            bytes=size,
        )
    )

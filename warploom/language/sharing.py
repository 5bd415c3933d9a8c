"""What a pipe of a cluster keeps account of: which blocks fill each other's items, whether copies
that all of them make fill each item whole, and who hands an item back to whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir import cluster as shape
from warploom.ir.op import Loc, Op, Value
from warploom.ir.ops import shared as shared_ops
from warploom.ir.ops.cluster import ArrivePeers
from warploom.ir.ops.roles import HandBack, Skip
from warploom.language.cluster import axes_of
from warploom.language.context import Refused, current
from warploom.language.shared import Shared

if TYPE_CHECKING:
    from warploom.language.put import Put


class Sharing:
    """The account of one pipe. `sources` are the steps to the blocks that fill this one's items; by
    symmetry the blocks whose items this one fills."""

    def __init__(self) -> None:
        self.sources: set[int] = {0}
        self.backs: list[ArrivePeers | HandBack | Skip] = []

    def announce(self, put: Put, tile: Shared, blocks: Value | None) -> int:
        """Bytes that each block gets of a copy, which goes to the blocks of a mask (None: itself):
        it comes from as many as it goes to."""
        steps: tuple[int, ...] = (0,)
        if blocks is not None:
            axes = axes_of(blocks)
            if axes is None:
                raise Refused(
                    "P035",
                    "which blocks share an item of this pipe is not known from this mask",
                    argument="multicast",
                    hint="`wl.cluster_mask(axis)` names the blocks along an axis of the cluster",
                )
            steps = shape.steps(current().cluster, axes)
        self.sources.update(steps)
        buffer, size = _buffer(tile.value), tile.bytes * len(steps)
        put.got[buffer] = put.got.get(buffer, 0) + size
        return size

    def check(self, put: Put, buffers: tuple[Shared, ...]) -> None:
        """A `put` is over: refuse tiles of which each block would get parts more than once."""
        for number, buffer in enumerate(buffers):
            if put.got.get(buffer.value, 0) > buffer.bytes:
                raise _not_whole(number, buffer, put.got[buffer.value])

    def note(self, back: ArrivePeers | HandBack | Skip) -> None:
        """Items go back here; to whom is known when all roles are."""
        self.backs.append(back)

    def close(self, puts: list[Put], buffers: tuple[Shared, ...]) -> int:
        """All roles are known: refuse tiles that their copies fill in part, and tell the ends of
        the pipe; gives how many blocks hand an item back."""
        for number, buffer in enumerate(buffers):
            total = 0
            for plan in {id(put.plan): put.plan for put in puts}.values():
                own = (put.got.get(buffer.value, 0) for put in puts if put.plan is plan)
                total += max(own, default=0)
            stored = any(put.stores for put in puts)
            if total > buffer.bytes or (0 < total < buffer.bytes and not stored):
                place = puts[0].expect.loc if puts[0].expect is not None else None
                raise _not_whole(number, buffer, total, place)
        for op in self.backs:
            op.steps = tuple(sorted(self.sources))
        return len(self.sources)


def _not_whole(number: int, buffer: Shared, found: int, place: Loc | None = None) -> Refused:
    return Refused(
        "P036",
        f"each block gets {found:,} of the {buffer.bytes:,} bytes of tile {number} of an item",
        notes=("all blocks of a cluster copy alike, each to all that its mask names",),
        hint="let each of n blocks copy an n-th of the tile to all n of them",
        place=place,
    )


def _buffer(view: Value) -> Value:
    """The buffer that a view of shared memory lies in."""
    op: Op | object = view.owner
    while isinstance(op, shared_ops.Slot | shared_ops.Window | shared_ops.Permute):
        view = op.buffer if isinstance(op, shared_ops.Slot) else op.value
        op = view.owner
    return view

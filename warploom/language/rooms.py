"""Rooms: where the parties of a collective hand their tiles to each other. Every party publishes,
waits until all have, and reads what each of them brought. Two halves of a room take turns: who
writes a half anew has waited for a round in which all others had read it.

Knows neither what is made of the tiles nor which parties a user asks for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from warploom.base.dtypes import DType, bf16, f16, f32, i64
from warploom.ir.ops import mbarrier, sync
from warploom.ir.ops import roles as role_ops
from warploom.language.barrier import Barrier, barrier
from warploom.language.cluster import cluster_rank, cluster_size
from warploom.language.context import builder, current
from warploom.language.copy import send
from warploom.language.flagged import Flagged, flagged
from warploom.language.gathering import Gathering, block_number, blocks
from warploom.language.kept import keep
from warploom.language.roles import RolePlan
from warploom.language.shared import Shared, shared
from warploom.language.tensor import ds, load, store, window
from warploom.language.values import Scalar, Tile, Window

Kind: TypeAlias = tuple[tuple[int, ...], DType]
"""Shape and dtype of one tile that a party brings."""

_CHUNK = 16  # bytes of which windows of one axis are made


def meet(why: str) -> None:
    """All warps of the role meet; which barrier that is, is known when roles are placed."""
    builder().add(sync.Barrier(threads=0, id=0, why=why))


class Room(ABC):
    """A place for one tile of each kind from each party."""

    parties: int | Scalar
    rank: int | Scalar

    @abstractmethod
    def publish(self, tiles: list[Tile]) -> None:
        """Bring one's tiles, and wait until all parties have."""

    @abstractmethod
    def part(self, party: Scalar | int) -> list[Tile]:
        """What a party has brought in this round."""


@dataclass(slots=True)
class _Halves:
    """Which half of a room the next round takes, and the parity of the phase of its barrier."""

    ring: int

    def next(self) -> tuple[Scalar, Scalar]:
        """Of the next round."""
        made = builder().add(role_ops.Position(ring=self.ring, stages=2))
        return Scalar(made.results[0]), Scalar(made.results[1])


def _on_top() -> Any:
    """Make what belongs to the block ahead of where we are."""
    return builder().inside(current().top)


class BlockRoom(Room):
    """Replicas of one role of a block, through its shared memory."""

    def __init__(self, kinds: tuple[Kind, ...], plan: RolePlan) -> None:
        assert plan.replica is not None
        self.parties, self.rank = plan.replicas, Scalar(plan.replica)
        self.halves = _Halves(current().ring())
        self.half: Scalar
        with _on_top():
            self.slots = [shared(s, d, slots=2 * plan.replicas, swizzle=0) for s, d in kinds]
            self.full: Barrier = barrier(2, arrivals=plan.replicas)
        _name(self.slots, self.full)

    def publish(self, tiles: list[Tile]) -> None:
        """Store to one's slots of this half, arrive, wait for the others."""
        self.half, parity = self.halves.next()
        for slots, tile in zip(self.slots, tiles, strict=True):
            slots[self._slot(self.rank)].store(tile)
        self.full[self.half].arrive()
        self.full[self.half].wait(parity)

    def part(self, party: Scalar | int) -> list[Tile]:
        """Load a party's slots of this half."""
        return [slots[self._slot(party)].load() for slots in self.slots]

    def _slot(self, party: Scalar | int) -> Scalar:
        return self.half * self.parties + party


class ClusterRoom(Room):
    """The blocks of a cluster: each pushes its tiles into the shared memory of all others, whose
    barriers count the bytes."""

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self.count = cluster_size()
        self.parties, self.rank = self.count, cluster_rank()
        self.size = sum(prod(shape) * dtype.bytes for shape, dtype in kinds)
        self.halves = _Halves(current().ring())
        self.half: Scalar
        self.parity: Scalar
        with _on_top():
            self.slots = self.make_slots(kinds)
            self.full: Barrier = barrier(2)
        _name(self.slots, self.full)

    def make_slots(self, kinds: tuple[Kind, ...]) -> list[Shared]:
        """A slot for each party in each half."""
        return [shared(s, d, slots=2 * self.count, swizzle=0) for s, d in kinds]

    def announce(self, met: bool = False) -> tuple[Barrier, Scalar]:
        """Begin a round: its barrier, and this block's slot. The announcement stands behind a
        meeting of all warps: none of them reads a half any more when peers, having got this block's
        next round, write to it. `met`: they have met since they read the last round."""
        self.half, self.parity = self.halves.next()
        full = self.full[self.half]
        with builder().one_thread(meet=not met):
            size = (self.count - 1) * self.size
            builder().add(mbarrier.Expect(barrier=full.one(), bytes=size))
        return full, self._slot(self.rank)

    def publish(self, tiles: list[Tile]) -> None:
        """Send to all others, keep one's own, and wait for what they send. Warps that hold the same
        elements send to peers in turn."""
        full, own = self.announce()
        for step in range(1, self.count):
            peer = (self.rank + step) % self.count
            for slots, tile in zip(self.slots, tiles, strict=True):
                send(slots[own].on(peer), tile, full, step)
        for slots, tile in zip(self.slots, tiles, strict=True):
            slots[own].store(tile)
        full.wait(self.parity)

    def part(self, party: Scalar | int) -> list[Tile]:
        """Load a party's slots of this half."""
        return [slots[self._slot(party)].load() for slots in self.slots]

    def _slot(self, party: Scalar | int) -> Scalar:
        return self.half * self.parties + party


class _Pieces:
    """A tile in shared memory and its `count` equal parts along the first axis; `halves` of it take
    turns."""

    def __init__(self, kind: Kind, count: int, halves: int = 0) -> None:
        (self.first, *rest), dtype = kind
        self.others = [slice(None)] * len(rest)
        self.whole = shared((count * self.first, *rest), dtype, slots=halves, swizzle=0)
        self.whole.value.name = self.whole.value.name or "collective"

    def part(self, number: Scalar | int) -> tuple[Any, ...]:
        """Where a part stands in the tile."""
        return (ds(number * self.first, self.first), *self.others)


def has_pieces(kinds: tuple[Kind, ...]) -> bool:
    """Whether parts of these kinds are windows of whole tiles in shared memory: of two axes, or of
    one and whole chunks of 16 bytes."""
    return all(len(s) == 2 or (len(s) == 1 and s[0] * d.bytes % _CHUNK == 0) for s, d in kinds)


class ScatterRoom(ClusterRoom):
    """The blocks of a cluster: each pushes to each other the part along the first axis that belongs
    to it, out of shared memory, where any of its threads finds any part. `kinds` are those of a
    part."""

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        super().__init__(kinds)
        with _on_top():
            self.pieces = [_Pieces(kind, self.count) for kind in kinds]

    def publish(self, tiles: list[Tile]) -> None:
        """As in a `ClusterRoom`, to each peer its part."""
        for pieces, tile in zip(self.pieces, tiles, strict=True):
            pieces.whole.store(tile)
        full, own = self.announce()  # the meeting is that of the stores and the loads, too
        for step in range(1, self.count):
            peer = (self.rank + step) % self.count
            for slots, pieces in zip(self.slots, self.pieces, strict=True):
                part = pieces.whole[pieces.part(peer)].load()
                send(slots[own].on(peer), part, full, step)
        for slots, pieces in zip(self.slots, self.pieces, strict=True):
            slots[own].store(pieces.whole[pieces.part(self.rank)].load())
        full.wait(self.parity)


class GatherRoom(ClusterRoom):
    """The blocks of a cluster: each pushes its tiles to all others, where they lie one behind the
    other, as one tile along the first axis."""

    def make_slots(self, kinds: tuple[Kind, ...]) -> list[Shared]:
        """Two whole tiles of each kind."""
        self.pieces = [_Pieces(kind, self.count, halves=2) for kind in kinds]
        return []

    def publish(self, tiles: list[Tile], met: bool = False) -> None:
        """As in a `ClusterRoom`, to one's part of the whole tiles."""
        full, _ = self.announce(met)
        for step in range(1, self.count + 1):  # one's own at last, which the loads wait for
            peer = (self.rank + step) % self.count
            for pieces, tile in zip(self.pieces, tiles, strict=True):
                held, where = pieces.whole[self.half], pieces.part(self.rank)
                if step < self.count:
                    send(held.on(peer)[where], tile, full, step)
                else:
                    held[where].store(tile)
        full.wait(self.parity)

    def joined(self) -> list[Tile]:
        """Load the whole tiles of this half."""
        return [pieces.whole[self.half].load() for pieces in self.pieces]


class GridRoom(Room):
    """The blocks of the launch, through global memory, behind the counter of the grid."""

    def __init__(self, kinds: tuple[Kind, ...], gathering: Gathering) -> None:
        self.gathering = gathering
        self.halves = _Halves(current().ring())
        self.half: Scalar
        self.parties, self.rank = blocks(), block_number()
        self.held = [keep("grid_tiles", d, 0, 2, s if s else (1,)) for s, d in kinds]
        self.shapes = [s for s, _ in kinds]

    def publish(self, tiles: list[Tile]) -> None:
        """Store to one's rows of this half, and meet all blocks."""
        self.parties, self.rank = blocks(), block_number()
        self.half, _ = self.halves.next()
        for number, tile in enumerate(tiles):
            store(self._window(number, self.rank), tile)
        self.gathering.meet()

    def part(self, party: Scalar | int) -> list[Tile]:
        """Load a party's rows of this half."""
        return [load(self._window(number, party)) for number in range(len(self.held))]

    def _window(self, number: int, party: Scalar | int) -> Window:
        row = self.half * self.parties + party
        return window(self.held[number], (row, *(ds(0, n) for n in self.shapes[number])))


class MailRoom(Room):
    """The blocks of the launch, by flagged data: one way through memory instead of two."""

    def __init__(self, kinds: tuple[Kind, ...], gathering: Gathering) -> None:
        self.halves = _Halves(current().ring())
        self.half: Scalar
        self.epoch: Scalar
        self.parties, self.rank = blocks(), block_number()
        self.kinds = kinds
        self.count = gathering.count(1)
        self.held = [keep("grid_mail", i64, 0, 2, s) for s, _ in kinds]

    def boxes(self) -> list[Flagged]:
        """The words of each kind."""
        return [
            flagged(words, carried(dtype))
            for words, (_, dtype) in zip(self.held, self.kinds, strict=True)
        ]

    def publish(self, tiles: list[Tile]) -> None:
        """Whoever sends has met with all warps that received the round before."""
        self.parties, self.rank = blocks(), block_number()
        self.half, _ = self.halves.next()
        # No word of a new room has the first epoch, which is not 0.
        self.epoch = self.count.first + self.count.next() + 1
        meet("words of the round before are received, then words are sent again")
        for number, (box, tile) in enumerate(zip(self.boxes(), tiles, strict=True)):
            box[self._index(number, self.rank)].send(tile.cast(carried(tile.dtype)), self.epoch)

    def part(self, party: Scalar | int) -> list[Tile]:
        """Poll a party's words of this half."""
        found = []
        for number, (box, (_, dtype)) in enumerate(zip(self.boxes(), self.kinds, strict=True)):
            found.append(box[self._index(number, party)].receive(self.epoch).cast(dtype))
        return found

    def _index(self, number: int, party: Scalar | int) -> tuple[Any, ...]:
        row = self.half * self.parties + party
        return (row, *(ds(0, n) for n in self.kinds[number][0]))


def _name(slots: list[Shared], full: Barrier) -> None:
    """Names of what the source does not name, for reports."""
    full.value.name = full.value.name or "collective_full"
    for held in slots:
        held.value.name = held.value.name or "collective"


def carried(dtype: DType) -> DType:
    """What a value travels as in a word of flagged data: f32 holds halves."""
    return f32 if dtype in (f16, bf16) else dtype

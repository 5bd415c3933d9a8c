"""Checked mode: books what a block's actors and copies do with the engine of order.

A barrier of the simulator keeps its numbers, for reports; what it does is decided by its book.
Knows no single operation; `order_steps` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warploom.ir.op import Op
from warploom.ir.ops.global_memory import Atomic
from warploom.ir.ops.sync import SCOPES
from warploom.sim import order_faults
from warploom.sim.actors import Actor, Trips
from warploom.sim.barriers import Mbarrier
from warploom.sim.cells import Touched
from warploom.sim.granularity import whole
from warploom.sim.machine import Batch
from warploom.sim.memory import Memory
from warploom.sim.order.clocks import FENCED_GLOBAL, joined
from warploom.sim.order.engine import Agent, Engine, Warps
from warploom.sim.order.history import Does, History
from warploom.sim.order.phases import Book
from warploom.sim.order.problems import Beginning, Problem
from warploom.sim.order.world import Point

if TYPE_CHECKING:
    from warploom.sim.block import BlockState, Load
    from warploom.sim.cluster import Cluster

BARRIER_BYTES = 8
ALL, EACH, FIRST = "all", "each", "first"  # who executes: all threads, one a warp, one of the role


class Site(NamedTuple):
    """Where an event took place: the operation, the batch of the actor that executed it, and the
    trips of the loops around it, by the names of their indices."""

    m: Batch
    op: Op
    trips: Trips = ()

    @classmethod
    def here(cls, m: Batch, op: Op) -> Site:
        """The site of what an actor does now."""
        return cls(m, op, m.actor.trips)


class Piece(NamedTuple):
    """The history of a piece of memory and what its cells are: `unit` bytes each, of which the
    memory begins after `start` bytes. `name` is a tensor's, empty for shared memory of `state`."""

    history: History
    unit: int
    start: int
    name: str = ""
    state: Any = None

    def byte(self, cell: int) -> int:
        """The first byte of a cell, counted from where the memory begins."""
        return max(0, cell * self.unit - self.start)


class Outside:
    """Histories of global memory over one launch: of tensors that the kernel writes, and of those
    that share memory with them."""

    def __init__(self, cells: Mapping[Memory, int], stored: Sequence[Memory]) -> None:
        """`cells`: memories, and the bytes that accesses to each take whole."""
        self.pieces: dict[Memory, Piece] = {}
        self._points: dict[tuple[int, int], Point] = {}
        self._owners: dict[History, Any] = {}
        watched = [m for m in cells if any(m.overlaps(s) for s in stored)]
        groups: list[list[Memory]] = []
        for memory in watched:
            apart = [g for g in groups if not any(memory.overlaps(o) for o in g)]
            near = [o for g in groups if g not in apart for o in g]
            groups = [*apart, [memory, *near]]
        for group in groups:
            starts = [_start(m.raw) for m in group]
            first = min(starts)
            last = max(s + m.raw.nbytes for s, m in zip(starts, group, strict=True))
            if len(group) == 1:
                # Cells are aligned as accesses are.
                unit = whole(cells[group[0]], group[0])
                first -= group[0].unit * group[0].itemsize % unit
            else:
                unit = int(np.gcd.reduce([m.itemsize for m in group] + [s - first for s in starts]))
            history = History(-(-(last - first) // unit), FENCED_GLOBAL)
            for start, memory in zip(starts, group, strict=True):
                self.pieces[memory] = Piece(history, unit, start - first, memory.name)

    def owners(self, piece: Piece, make: Callable[[int], Any]) -> Any:
        """What is known of a piece where no engine orders the blocks: made at its first use."""
        found = self._owners.get(piece.history)
        if found is None:
            found = self._owners[piece.history] = make(len(piece.history.cells))
        return found

    def point(self, history: History, cell: int) -> Point:
        """What atomic operations have published at a cell."""
        return self._points.setdefault((id(history), cell), Point())


def _start(raw: np.ndarray) -> int:
    return raw.__array_interface__["data"][0]


class Booking:
    """The engine of the blocks that are resident together, and their shared memory. `reached`:
    peers access it."""

    ENGINE = Engine

    def __init__(self, outside: Outside, unit: int, reached: bool = False) -> None:
        self.outside, self.unit, self.reached = outside, unit, reached
        self.engine = self.ENGINE(self._found)
        self._named: dict[History, Piece] = {}
        for piece in outside.pieces.values():
            self._named[piece.history] = piece
        self._outside = [p.history for p in self._named.values() if p.history]
        self.engine.histories += self._outside
        self._warps: dict[Actor, Warps] = {}
        self._whole: dict[BlockState, Actor] = {}
        self._shared: dict[BlockState, Piece] = {}
        self._gathered: dict[tuple[Cluster, int], np.ndarray] = {}
        # Where each actor waited last at a barrier: what it should have waited for is asked there.
        self.waited: dict[Actor, Site] = {}
        # Descriptors that blocks have made, by their rows.
        self.descriptors: dict[tuple[History, int], Any] = {}

    def _found(self, problem: Problem) -> None:
        order_faults.tell(problem, self._named.get(problem.object))

    # ---- actors ----------------------------------------------------------------------------

    def enter(self, state: BlockState, actor: Actor) -> None:
        """A block begins with all its warps as one actor."""
        state.booking, self._whole[state] = self, actor
        self._warps[actor] = self.engine.warps(actor.warps, state, state.cluster)
        history = History(-(-state.batch.pitch // self.unit))
        self._shared[state] = Piece(history, self.unit, 0, "", state)
        self._named[history] = self._shared[state]
        self.engine.histories.append(history)
        if self.reached:
            self.engine.begin_block(self._warps[actor], history, Beginning(state))

    def split(self, parent: Actor, child: Actor, first: int) -> None:
        """A replica of a role is some warps of its block, from number `first` on."""
        warps = self._warps[parent]
        part = slice(first, first + child.warps)
        self._warps[child] = Warps(warps.lanes[part], warps.alone[part])

    def warps(self, actor: Actor) -> Warps:
        """The threads of an actor."""
        return self._warps[actor]

    def threads(self, actor: Actor, who: str) -> np.ndarray:
        """The threads of an actor that execute something."""
        warps = self._warps[actor]
        if who == ALL:
            return warps.all
        return warps.alone if who == EACH else warps.alone[:1]

    # ---- memory ----------------------------------------------------------------------------

    def shared(self, state: BlockState) -> Piece:
        """The shared memory of a block."""
        return self._shared[state]

    def tensor(self, memory: Memory) -> Piece | None:
        """The history of a tensor, if anybody writes it."""
        return self.outside.pieces.get(memory)

    def touch(
        self,
        m: Batch,
        op: Op,
        piece: Piece,
        does: Does,
        who: str,
        cells: Sequence[Touched],
        scope: int | None = None,
    ) -> None:
        """An ordinary access to cells, by warp, or an atomic one with a scope."""
        warps, site, engine = self._warps[m.actor], Site.here(m, op), self.engine
        if who == FIRST:
            own, thread = cells[0], int(warps.alone[0])
            engine.access(piece.history, own.cells, does, thread, site, None, scope)
            return
        for own, lanes, alone in zip(cells, warps.lanes, warps.alone, strict=True):
            if who == EACH:
                engine.access(piece.history, own.cells, does, int(alone), site, None, scope)
            else:
                both = int(lanes), int(alone)
                engine.access(
                    piece.history, own.cells, does, both[0], site, both[1], scope, own.lanes
                )

    def exchange(
        self, m: Batch, op: Atomic, piece: Piece, who: str, cells: Sequence[Touched]
    ) -> None:
        """Atomic operations at cells, by warp: they publish (release) and learn (acquire)."""
        scope = SCOPES.index(op.scope)
        warps = self._warps[m.actor]
        threads = warps.lanes if who == ALL else self.threads(m.actor, who)
        for number, thread in enumerate(threads):
            for cell in cells[number].distinct():
                point = self.outside.point(piece.history, int(cell))
                self.engine.exchange(point, int(thread), op.releases, op.acquires, scope)

    # ---- barriers --------------------------------------------------------------------------

    def make(self, m: Batch, op: Op, barrier: Mbarrier, byte: int, who: str) -> None:
        """A barrier has been made at a byte of shared memory."""
        thread = int(self.threads(m.actor, who)[0])
        site, piece = Site.here(m, op), self._shared[m.state]
        self.engine.make(barrier, barrier.count, barrier, thread, site)
        cells = slice(byte // piece.unit, -(-(byte + BARRIER_BYTES) // piece.unit))
        self.engine.reserve(piece.history, cells, thread, site)

    def book(self, barrier: Mbarrier) -> Book:
        """The book of a barrier."""
        return self.engine.books[barrier]

    def follow(self, barrier: Mbarrier) -> None:
        """Give a barrier the numbers of its book."""
        book = self.engine.books[barrier]
        phase = book.phase(book.current)
        barrier.phase = book.current
        barrier.pending = barrier.count - phase.arrivals
        barrier.expected, barrier.bytes = phase.expected, phase.expected - phase.landed

    def arrive(
        self, m: Batch, op: Op, barrier: Mbarrier, who: str, count: int, ordered: bool = True
    ) -> None:
        """`count` arrivals of each thread that executes this."""
        book, site, warps = self.book(barrier), Site.here(m, op), self._warps[m.actor]
        if who == ALL:
            self.engine.arrive_all(book, warps, 32 * count, site, ordered)
        else:
            book.arrive_each(self.threads(m.actor, who), count, site, ordered)
        self.follow(barrier)

    def expect(self, m: Batch, op: Op, barrier: Mbarrier, who: str, size: int) -> None:
        """Each thread announces bytes and arrives."""
        book, site, warps = self.book(barrier), Site.here(m, op), self._warps[m.actor]
        lanes = 32 if who == ALL else 1
        threads = warps.lanes if who == ALL else self.threads(m.actor, who)
        for thread in threads:
            book.expect(int(thread), lanes * size, site)
            book.arrive(int(thread), lanes, site)
        self.follow(barrier)

    # ---- clusters --------------------------------------------------------------------------

    def come(self, actor: Actor, opening: tuple[Cluster, int], ordered: bool, site: Site) -> None:
        """An actor comes to the barrier of its cluster, for the opening of this number."""
        clocks = self.engine.clocks
        known = clocks.release(self._warps[actor].all)
        if not ordered:
            known = clocks.unordered(known)
        self._gathered[opening] = joined(self._gathered.get(opening), known)

    def gathered(self, actor: Actor, opening: tuple[Cluster, int]) -> None:
        """The barrier of the cluster has opened for an actor."""
        self.engine.clocks.acquire(self._warps[actor].all, self._gathered[opening])

    # ---- the end ---------------------------------------------------------------------------

    def leave(self, state: BlockState) -> None:
        """All actors of a block have ended: nothing may be under way in its shared memory, nor come
        to its barriers."""
        books = [self.engine.books[b] for b in state.barriers.values() if b in self.engine.books]
        self.engine.exit(self._warps[self._whole[state]], self._shared[state].history, books)

    def close(self) -> None:
        """All blocks have ended without a deadlock: no barrier may be inside a phase."""
        for book in self.engine.books.values():
            book.close()


class BookedLoad:
    """A copy to shared memory that is under way: its agent, and the phase that its bytes mean."""

    __slots__ = ("agent", "booking", "load", "phase")

    def __init__(self, booking: Booking, load: Load, agent: Agent, phase: int) -> None:
        self.booking, self.load, self.agent, self.phase = booking, load, agent, phase

    def count(self) -> None:
        """The bytes count."""
        barrier = self.load.barrier
        book = self.booking.book(barrier)
        self.booking.engine.land(self.agent, book, self.phase, self.load.size)
        self.booking.follow(barrier)

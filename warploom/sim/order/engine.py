"""The engine of one group of blocks that are resident together: threads, barriers, agents, memory.

A warp is two threads here: its lanes together, and the one that acts alone for them, which a warp
sync joins. Knows neither operations nor reports: `site` is whatever its user wants back.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from warploom.sim.order.clocks import CAUSE, READS, SEEN, Clocks, entry
from warploom.sim.order.groups import Groups, ThreadCopies
from warploom.sim.order.history import GPU, Access, Does, History, Reach
from warploom.sim.order.lanes import Lanes
from warploom.sim.order.phases import Arrival, Book
from warploom.sim.order.problems import Found, Kind, Problem
from warploom.sim.order.signals import Signal
from warploom.sim.order.words import WordBook
from warploom.sim.order.world import World

_KINDS = {"order": Kind.RACE, "lanes": Kind.RACE, "fence": Kind.FENCE}
_KINDS |= {"scope": Kind.SCOPE, "barrier": Kind.STORAGE}

Agent = tuple[int, int]
"""A component and the epoch that stands for the agent."""


class Flight(NamedTuple):
    """What a copy under way publishes of its issuer's knowledge; `sender`: the thread that has sent
    it to a peer, in order."""

    known: np.ndarray
    sender: int | None


class Warps:
    """The warps of one actor: thread numbers of their lanes, and of those that act alone, each in a
    row; `runs` are the same as slices."""

    __slots__ = ("all", "alone", "lanes", "runs")

    def __init__(self, lanes: np.ndarray, alone: np.ndarray) -> None:
        self.lanes, self.alone = lanes, alone
        self.all = np.concatenate([lanes, alone])
        self.runs = [slice(int(each[0]), int(each[-1]) + 1) for each in (lanes, alone)]


class Engine(World):
    """Clocks, barriers and histories; findings go to `found`."""

    def __init__(self, found: Found) -> None:
        super().__init__(Clocks(self._live))
        self.found = found
        self.books: dict[Hashable, Book] = {}
        self.histories: list[History] = []
        self.flying: dict[Agent, Flight] = {}
        self._signals: dict[Hashable, Signal] = {}
        self.words = WordBook(self.clocks, found)
        self._products: dict[Hashable, Groups] = {}
        self._copies: dict[int, ThreadCopies] = {}
        self._bulk: dict[int, tuple[Groups, Groups]] = {}

    def _live(self) -> Iterator[int]:
        """Components of agents that something still refers to."""
        for component, _ in self.flying:
            yield component
        for book in self.books.values():
            yield from book.live()
        for history in self.histories:
            for access, _ in history.accesses():
                if access.world is self:
                    yield access.component

    # ---- threads ---------------------------------------------------------------------------

    def warps(self, count: int, block: Any = None, cluster: Any = None) -> Warps:
        """The threads of an actor of `count` warps in a block of a cluster."""
        lanes = [self.clocks.thread() for _ in range(count)]
        alone = [self.clocks.thread() for _ in range(count)]
        self.places.update(dict.fromkeys(lanes + alone, Reach(GPU, block, cluster)))
        return Warps(np.array(lanes), np.array(alone))

    def fork(self, parent: Warps, child: Warps) -> None:
        """What the parent knows is known when a child begins."""
        self.clocks.acquire(child.all, self.clocks.release(parent.all))

    def warp_sync(self, warps: Warps) -> None:
        """The lanes of each warp meet."""
        self.clocks.meet_pairs(warps.lanes, warps.alone)

    def meet(self, warps: Warps) -> None:
        """All warps of an actor meet."""
        self.clocks.meet(warps.all)

    def fence(self, threads: np.ndarray, space: str) -> None:
        """A fence between the proxies, by threads: "shared", "global" or "all"."""
        self.clocks.fence(threads, space != "global", space != "shared")

    # ---- memory ----------------------------------------------------------------------------

    def access(
        self,
        history: History,
        at: Any,
        does: Does,
        thread: int,
        site: Any,
        also: int | None = None,
        scope: int | None = None,
        bits: np.ndarray | None = None,
    ) -> None:
        """An ordinary access by a thread, or an atomic one with a scope; `also` is the thread that
        shares its warp. `bits`: which lanes touch each cell, where it is that of the lanes."""
        clocks = self.clocks
        own, epoch = int(clocks.own[thread]), clocks.epoch(thread)
        reach = None if scope is None else self.reach(thread, scope)
        access = Access(own, epoch, does, True, True, site, self, reach)
        clock = clocks.rows[thread]
        if also is not None:
            clock = np.maximum(clock, clocks.rows[also])
        lanes = None if bits is None else clocks.lanes(thread, bits)
        self._touch(history, at, access, clock, lanes)

    def _touch(
        self,
        history: History,
        at: Any,
        access: Access,
        clock: np.ndarray,
        lanes: Lanes | None = None,
    ) -> None:
        for earlier, cell, lacks in history.touch(at, access, clock, lanes):
            if earlier.world is not self and self.knows_foreign(earlier, clock, CAUSE):
                continue
            kind = _KINDS[lacks]
            facts = {"cell": cell, "does": access.does, "did": earlier.does}
            facts["generic"], facts["was_generic"] = access.generic, earlier.generic
            facts["foreign"], facts["lanes"] = earlier.world is not self, lacks == "lanes"
            self.found(Problem(kind, access.site, earlier.site, history, facts))

    def begin_copy(self, thread: int, peer: bool = False) -> Agent:
        """A copy with one destination is issued by a thread; `peer`: out of its block."""
        return self._begin(thread, Flight(self.clocks.seen(thread), thread if peer else None))

    def begin_send(self, thread: int) -> Agent:
        """A store with one destination is issued by a thread, to be done later. Its completion
        says besides that what the thread has read is read."""
        return self._begin(thread, Flight(self.clocks.read(thread), thread))

    def _begin(self, thread: int, flight: Flight) -> Agent:
        agent = self.clocks.agent()
        self.flying[agent] = flight
        self.clocks.tick(np.array([thread]))
        return agent

    def begin_block(self, warps: Warps, history: History, site: Any) -> None:
        """A block begins. It has no shared memory before: this is a write to all of it, which its
        own warps know of."""
        agent = self.clocks.agent()
        access = Access(*agent, Does.WRITE, False, False, site, self)
        history.touch(slice(0, len(history.cells)), access, self.clocks.rows[warps.lanes[0]])
        self.clocks.complete(warps.all, *agent)

    def copy_access(
        self,
        history: History,
        at: Any,
        does: Does,
        agent: Agent,
        thread: int,
        site: Any,
        generic: bool = False,
    ) -> None:
        """What a copy will do to memory, from its issue by a thread on."""
        access = Access(*agent, does, generic, False, site, self)
        self._touch(history, at, access, self.clocks.rows[thread])

    def land(self, agent: Agent, book: Book, phase: int, size: int) -> None:
        """A copy is done, and its bytes count on a barrier."""
        book.land(phase, size, agent, *self.flying.pop(agent))

    # ---- signals ----------------------------------------------------------------------------

    def begin_poll(self, signal: Signal, threads: np.ndarray, target: int, site: Any) -> None:
        """Threads begin to wait until a counter or flag is `target`."""

    def begin_look(self, name: Any, held: int, threads: np.ndarray, target: int, site: Any) -> None:
        """The same of an element that nobody writes and that holds a value from the start."""

    # ---- barriers --------------------------------------------------------------------------

    def make(
        self, key: Hashable, count: int, name: Any, thread: int | None = None, site: Any = None
    ) -> Book:
        """A barrier is made by a thread, or is there from the start."""
        clocks = self.clocks
        by = None if thread is None else (int(clocks.own[thread]), clocks.epoch(thread), site)
        made = self.books[key] = Book(clocks, count, name, self.found, by, *self._home(thread))
        return made

    def _home(self, thread: int | None) -> tuple[Callable[[int], bool], ...]:
        """Whether a thread is of the block of the one that makes a barrier, if one does."""
        if thread is None:
            return ()
        places, block = self.places, self.places[thread].block
        return (lambda other: places[other].block is block,)

    def publish(self, threads: np.ndarray) -> None:
        """A fence publishes the barriers that these threads have made, to copies and to peers."""
        for component in map(int, self.clocks.own[threads]):
            for book in self.books.values():
                book.publish(component)

    def reserve(self, history: History, at: Any, thread: int, site: Any) -> None:
        """A barrier that a thread has made lies in cells."""
        own, epoch = int(self.clocks.own[thread]), self.clocks.epoch(thread)
        history.reserve(at, Access(own, epoch, Does.BARRIER, True, True, site, self))

    def signal(self, key: Hashable, name: Any, first: int) -> Signal:
        """The counter or flag of a key, with its value when it was first named."""
        found = self._signals.get(key)
        if found is None:
            found = self._signals[key] = Signal(self.clocks, name, first, self.found)
        return found

    def arrive_all(
        self, book: Book, warps: Warps, lanes: int, site: Any, ordered: bool = True
    ) -> None:
        """All lanes of each warp arrive, `lanes` arrivals a warp."""
        for one, alone in zip(warps.lanes, warps.alone, strict=True):
            book.arrive(int(one), lanes, site, int(alone), ordered)

    def begin_wait(self, book: Book, threads: np.ndarray, parity: int, site: Any) -> int:
        """Threads begin to wait for a parity; gives the phase that the last of them means."""
        found = book.means(threads, parity, site)
        for number in set(found):
            some = threads if found.count(number) == len(found) else None
            if some is None:
                some = threads[[each == number for each in found]]
            book.begin_wait(some, number, site)
        return max(found)

    def begin_meeting(self, book: Book, warps: Warps, site: Any) -> None:
        """Warps that have come to a barrier begin to wait for all the others."""

    # ---- the matrix unit -------------------------------------------------------------------

    def products(self, key: Hashable) -> Groups:
        """The matrix unit of a warpgroup."""
        found = self._products.get(key)
        if found is None:
            found = self._products[key] = Groups(self.clocks.component())
        return found

    def multiply(
        self, unit: Groups, warps: Warps, history: History, operands: list[Any], site: Any
    ) -> None:
        """A product is issued by the warps of a warpgroup and reads operands until it retires."""
        rows = self.clocks.rows
        each = np.maximum(*(rows[run] for run in warps.runs))
        access = Access(unit.component, unit.epoch, Does.READ, False, False, site, self)
        clock = np.minimum.reduce(each)
        for at in operands:
            self._touch(history, at, access, clock)
        # Its warps have converged: each has seen what its lanes have.
        seen = np.maximum.reduce(each[:, SEEN])
        held = unit.seen.get(unit.epoch)
        if held is not None:
            seen[: len(held)] = np.maximum(seen[: len(held)], held)
        unit.seen[unit.epoch] = seen
        self.clocks.tick(warps.all)

    def commit(self, unit: Groups) -> None:
        """The current group is closed."""
        unit.closed += 1

    def retire(self, unit: Groups, pending: int, warps: Warps) -> None:
        """Warps wait until at most `pending` groups are open: they have seen what the warps that
        issued the others had."""
        done = unit.closed - pending
        if done <= 0:
            return
        self.clocks.complete(warps.all, unit.component, done)
        for epoch in [e for e in unit.seen if e <= done]:
            self.clocks.see(warps.all, unit.seen.pop(epoch))

    # ---- copies of threads -----------------------------------------------------------------

    def copies(self, thread: int) -> ThreadCopies:
        """Groups of the copies that the lanes of a warp begin for themselves."""
        found = self._copies.get(thread)
        if found is None:
            found = self._copies[thread] = ThreadCopies(self.clocks.component())
            self.clocks.parts[thread, 1] = found.component
            self.clocks.common[thread, 1] = 0
        return found

    def thread_copy(
        self,
        thread: int,
        history: History,
        at: Any,
        does: Does,
        site: Any,
        bits: np.ndarray | None,
    ) -> None:
        """Lanes begin to copy: an access by the generic proxy that is over when they have
        waited. `bits`: which lanes touch each cell."""
        groups, clocks = self.copies(thread), self.clocks
        access = Access(groups.component, groups.epoch, does, True, False, site, self)
        lanes = None if bits is None else clocks.lanes(thread, bits)
        self._touch(history, at, access, clocks.rows[thread], lanes)

    def wait_copies(self, thread: int, pending: int) -> None:
        """Lanes wait until at most `pending` of their groups are open."""
        groups = self.copies(thread)
        self.clocks.complete(np.array([thread]), groups.component, groups.over(pending))

    def arrive_behind(self, thread: int, also: int, book: Book, count: int, site: Any) -> Arrival:
        """Arrivals of a warp (its lanes, and `also` the thread that acts alone) that come when all
        copies of its lanes so far are done, and publish them."""
        arrival = book.intend(thread, count, site, also, ordered=False)
        groups = self.copies(thread)
        arrival.known[: SEEN + 1, groups.component] = groups.epoch
        groups.arrivals += 1
        return arrival

    # ---- bulk groups -----------------------------------------------------------------------

    def bulk(self, thread: int) -> tuple[Groups, Groups]:
        """Groups of a thread's copies to global memory: their reads, and their writes."""
        found = self._bulk.get(thread)
        if found is None:
            clocks = self.clocks
            found = Groups(clocks.component()), Groups(clocks.component())
            self._bulk[thread] = found
        return found

    def store(
        self,
        thread: int,
        source: tuple[History, Any],
        target: tuple[History, Any] | None,
        does: Does,
        site: Any,
    ) -> None:
        """A copy to global memory is issued by a thread."""
        reads, writes = self.bulk(thread)
        clock = self.clocks.rows[thread]
        access = Access(reads.component, reads.epoch, Does.READ, False, False, site, self)
        self._touch(*source, access, clock)
        if target is not None:
            reach = self.reach(thread, GPU) if does is Does.REDUCE else None
            access = Access(writes.component, writes.epoch, does, False, False, site, self, reach)
            self._touch(*target, access, clock)

    def store_reads(self, thread: int, history: History, at: Any, site: Any) -> None:
        """A copy to global memory that is issued by a thread reads this besides."""
        reads, _ = self.bulk(thread)
        access = Access(reads.component, reads.epoch, Does.READ, False, False, site, self)
        self._touch(history, at, access, self.clocks.rows[thread])

    def commit_bulk(self, thread: int) -> None:
        """A thread closes its current group of copies."""
        for groups in self.bulk(thread):
            groups.closed += 1

    def wait_bulk(self, thread: int, pending: int, reads_only: bool) -> None:
        """A thread waits until at most `pending` groups are open."""
        reads, writes = self.bulk(thread)
        for groups in (reads,) if reads_only else (reads, writes):
            self.clocks.complete(np.array([thread]), groups.component, groups.closed - pending)

    # ---- the end ---------------------------------------------------------------------------

    def exit(self, warps: Warps, history: History, books: Iterable[Book]) -> None:
        """A block has ended. Its exit is a write to all its shared memory and barriers: what is not
        known to be over is found, and what comes later conflicts with it."""
        clock = self.clocks.release(warps.all)
        for access, state in history.accesses():
            at = access.component
            if access.world is not self or entry(clock[CAUSE], at) >= access.epoch:
                continue
            if access.is_read and entry(clock[READS], at) >= access.epoch:
                continue
            facts = {"cell": history.first_cell(state), "did": access.does}
            self.found(Problem(Kind.EXIT, access.site, None, history, facts))
        for book in books:
            late = book.unknown(clock[CAUSE])
            if late is not None:
                self.found(Problem(Kind.EXIT, late, book.name, history, {}))

"""An engine of order that also notes what each warp does to barriers, copies, groups and signals.

A tape holds the synchronisation of one group of blocks that are resident together, in the order of
each warp's program: what an event asks for (a parity, a number of arrivals), not how this run
resolved it. Accesses are left to the engine. Knows neither operations nor how tapes are explored.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from warploom.sim.order.engine import Agent, Engine, Warps
from warploom.sim.order.groups import Groups
from warploom.sim.order.history import GPU
from warploom.sim.order.phases import Arrival, Book
from warploom.sim.order.problems import Found
from warploom.sim.order.signals import ANY, Signal
from warploom.sim.order.words import Receipt, WordBook
from warploom.sim.order.world import Point


class What(Enum):
    """Kinds of events of a warp."""

    ARRIVE = "arrives"
    EXPECT = "announces bytes and arrives"
    WAIT = "waits for a parity"
    COME = "comes to a meeting"
    MEET = "waits for all who come to a meeting"
    ISSUE = "begins a copy"
    COMMIT = "closes a group of products"
    RETIRE = "waits for groups of products"
    EXCHANGE = "changes an element after those who did before"
    ADD = "adds to a counter"
    STORE = "stores to a flag"
    UNTIL = "waits for a counter or flag"
    SEND = "sends words of flagged data"
    RECEIVE = "waits for words of flagged data"
    END = "ends"


class Event(NamedTuple):
    """One event of a warp. `at`: the number of its barrier, copy, unit, point or signal; `amount`:
    arrivals, the parity, groups, what is added or waited for; `size`: bytes; `meant`: the phase
    that the engine takes it for. An exchange has warp and event of the one before it instead."""

    what: What
    at: int
    amount: int
    site: Any
    size: int = 0
    meant: int | None = None


class Barrier(NamedTuple):
    """A barrier on a tape. `block` holds it; `meeting`: it is one of the hardware's, or of a
    cluster, whose warps are `cluster`: those that have ended are not waited for."""

    name: Any
    arrivals: int
    block: Any
    meeting: bool
    cluster: tuple[int, ...] = ()


class Copy(NamedTuple):
    """Asynchronous work that completes on a barrier with bytes or arrivals."""

    barrier: int
    size: int
    arrivals: int
    site: Any
    meant: int


class Counter(NamedTuple):
    """A counter or flag and its value when it was first named. `exact`: words of flagged data,
    whose value is their epoch; a wait is for that epoch and no later one."""

    name: Any
    first: int
    exact: bool = False


OWN = "the warps' own barrier"
"""The name of what the warps of one role meet at."""


class Tape(Engine):
    """The engine of one group of blocks, and the events of their warps."""

    def __init__(self, found: Found) -> None:
        super().__init__(found)
        self.events: list[list[Event]] = []  # by warp
        self.blocks: list[Any] = []  # by warp
        self.actors: list[Any] = []  # by warp: the last actor that it was part of
        self.barriers: list[Barrier] = []
        self.begun: list[Copy] = []
        self.counters: list[Counter] = []
        self.points: list[Point] = []
        self.words = TapedWords(self.clocks, found)
        self.words.tape = self
        self.named: list[Counter] = []  # single words
        self.sets: list[tuple[int, ...]] = []  # words that are sent or received together
        self.ordered = False  # whether atomic operations keep the order of this run
        self._exchanged: dict[int, tuple[int, int]] = {}  # by point: last warp and event
        self._warp_of: dict[int, int] = {}
        self._numbers: dict[Any, int] = {}
        self._units: dict[int, tuple[int, tuple[int, ...]]] = {}  # by component

    # ---- noting ----------------------------------------------------------------------------

    def note(self, thread: int, event: Event) -> None:
        """Something that the warp of a thread does."""
        self.events[self._warp_of[int(thread)]].append(event)

    def warps_of(self, threads: np.ndarray) -> list[int]:
        """Warps by one thread of each, in order."""
        return sorted({self._warp_of[int(t)] for t in threads})

    def numbered(self, key: Any, made: list[Any], what: Any) -> int:
        """The number of an object, which is put into a list when it is first named."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(made)
            made.append(what)
        return number

    def number_of(self, word: Any) -> int:
        """The number of a word of flagged data."""
        made = Counter(word.name, word.stores[-1].tag, exact=True)
        return self.numbered(("word", id(word)), self.named, made)

    def barrier(self, book: TapedBook) -> int:
        """The number of a barrier."""
        if book.number < 0:
            book.number = len(self.barriers)
            made = Barrier(book.name, book.count, book.block, book.made is None)
            self.barriers.append(made)
        return book.number

    # ---- threads ---------------------------------------------------------------------------

    def warps(self, count: int, block: Any = None, cluster: Any = None) -> Warps:
        made = super().warps(count, block, cluster)
        for lanes, alone in zip(made.lanes, made.alone, strict=True):
            self._warp_of[int(lanes)] = self._warp_of[int(alone)] = len(self.events)
            self.events.append([])
            self.blocks.append(block)
            self.actors.append(None)
        return made

    def meet(self, warps: Warps) -> None:
        super().meet(warps)
        members = self.warps_of(warps.lanes)
        if len(members) == 1:
            return
        block = self.blocks[members[0]]
        key = ("meet", tuple(members))
        made = Barrier(OWN, len(members), block, True)
        number = self.numbered(key, self.barriers, made)
        for thread in warps.lanes:
            self.note(thread, Event(What.COME, number, 1, None))
        for thread in warps.lanes:
            self.note(thread, Event(What.MEET, number, 0, None))

    def gather(self, warps: Warps, cluster: Any, members: tuple[int, ...], site: Any) -> None:
        """Warps come to the barrier of their cluster and wait there."""
        made = Barrier("the barrier of the cluster", len(members), None, True, members)
        number = self.numbered(("cluster", cluster), self.barriers, made)
        for what, amount in ((What.COME, 1), (What.MEET, 0)):
            for thread in warps.lanes:
                self.note(thread, Event(what, number, amount, site))

    # ---- barriers --------------------------------------------------------------------------

    def make(
        self, key: Hashable, count: int, name: Any, thread: int | None = None, site: Any = None
    ) -> Book:
        clocks = self.clocks
        by = None if thread is None else (int(clocks.own[thread]), clocks.epoch(thread), site)
        made = TapedBook(clocks, count, name, self.found, by, *self._home(thread))
        made.tape = self
        made.block = None if thread is None else self.blocks[self._warp_of[int(thread)]]
        self.books[key] = made
        return made

    def begin_wait(self, book: Book, threads: np.ndarray, parity: int, site: Any) -> int:
        assert isinstance(book, TapedBook)
        number = super().begin_wait(book, threads, parity, site)
        event = Event(What.WAIT, self.barrier(book), parity, site, meant=number)
        for warp in self.warps_of(threads):
            self.events[warp].append(event)
        return number

    def begin_meeting(self, book: Book, warps: Warps, site: Any) -> None:
        assert isinstance(book, TapedBook)
        for thread in warps.lanes:
            self.note(thread, Event(What.MEET, self.barrier(book), 0, site))

    def begin_bytes(self, book: TapedBook, thread: int, size: int, site: Any, meant: int) -> None:
        """A copy is under way to a barrier."""
        self.begun.append(Copy(self.barrier(book), size, 0, site, meant))
        self.note(thread, Event(What.ISSUE, len(self.begun) - 1, 0, site))

    def arrive_behind(self, thread: int, also: int, book: Book, count: int, site: Any) -> Arrival:
        assert isinstance(book, TapedBook)
        book.noting = False
        arrival = super().arrive_behind(thread, also, book, count, site)
        book.noting = True
        self.begun.append(Copy(self.barrier(book), 0, count, site, arrival.phase))
        self.note(thread, Event(What.ISSUE, len(self.begun) - 1, 0, site))
        return arrival

    # ---- products --------------------------------------------------------------------------

    def multiply(
        self, unit: Groups, warps: Warps, history: Any, operands: list[Any], site: Any
    ) -> None:
        super().multiply(unit, warps, history, operands, site)
        if unit.component not in self._units:
            self._units[unit.component] = (len(self._units), tuple(map(int, warps.lanes)))

    def commit(self, unit: Groups) -> None:
        super().commit(unit)
        number, lanes = self._units.get(unit.component, (0, ()))
        for thread in lanes:
            self.note(thread, Event(What.COMMIT, number, unit.closed, None))

    def retire(self, unit: Groups, pending: int, warps: Warps) -> None:
        super().retire(unit, pending, warps)
        number, lanes = self._units.get(unit.component, (0, ()))
        if lanes and unit.closed > pending:
            for thread in warps.lanes:
                self.note(thread, Event(What.RETIRE, number, unit.closed - pending, None))

    # ---- signals ---------------------------------------------------------------------------

    def signal(self, key: Hashable, name: Any, first: int) -> Signal:
        found = self._signals.get(key)
        if found is None:
            found = self._signals[key] = TapedSignal(self.clocks, name, first, self.found)
            found.tape = self
            found.number = len(self.counters)
            self.counters.append(Counter(name, first))
        return found

    def begin_poll(self, signal: Signal, threads: np.ndarray, target: int, site: Any) -> None:
        assert isinstance(signal, TapedSignal)
        self._until(signal.number, threads, target, site)

    def begin_look(self, name: Any, held: int, threads: np.ndarray, target: int, site: Any) -> None:
        number = self.numbered(("look", name), self.counters, Counter(name, held))
        self._until(number, threads, target, site)

    def _until(self, number: int, threads: np.ndarray, target: int, site: Any) -> None:
        event = Event(What.UNTIL, number, target, site)
        for warp in self.warps_of(threads):
            self.events[warp].append(event)

    def exchange(
        self, point: Point, thread: int, gives: bool, takes: bool, scope: int = GPU
    ) -> None:
        super().exchange(point, thread, gives, takes, scope)
        if self.ordered:
            number = self.numbered(("point", id(point)), self.points, point)
            warp = self._warp_of[int(thread)]
            before, place = self._exchanged.get(number, (-1, 0))
            self._exchanged[number] = (warp, len(self.events[warp]))
            self.note(thread, Event(What.EXCHANGE, number, before, None, place))


class TapedBook(Book):
    """A book whose contributions are noted. A wait that was let go acquires nothing."""

    __slots__ = ("block", "noting", "number", "tape")

    tape: Tape
    block: Any  # which holds it

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.noting = True
        self.number = -1  # on the tape

    def intend(
        self, thread: int, count: int, site: Any, also: int | None = None, ordered: bool = True
    ) -> Arrival:
        arrival = super().intend(thread, count, site, also, ordered)
        if self.noting:
            self._note_arrival(thread, arrival)
        return arrival

    def arrive_each(self, threads: np.ndarray, count: int, site: Any, ordered: bool = True) -> None:
        for thread in threads.tolist():
            self.arrive(thread, count, site, None, ordered)

    def _note_arrival(self, thread: int, arrival: Arrival) -> None:
        tape, number = self.tape, self.tape.barrier(self)
        what = What.ARRIVE if self.made else What.COME
        event = Event(what, number, arrival.arrivals, arrival.site, 0, arrival.phase)
        tape.note(thread, event)

    def expect(self, thread: int, size: int, site: Any) -> None:
        super().expect(thread, size, site)
        self.tape.note(thread, Event(What.EXPECT, self.tape.barrier(self), 0, site, size))

    def issue(self, thread: int, size: int, site: Any) -> int:
        meant = super().issue(thread, size, site)
        self.tape.begin_bytes(self, thread, size, site, meant)
        return meant

    def acquire(self, threads: np.ndarray, number: int, near: bool = False) -> None:
        if self.completed(number):
            super().acquire(threads, number, near)


class TapedSignal(Signal):
    """A counter or flag whose signals and waits are noted."""

    __slots__ = ("number", "tape")

    tape: Tape
    number: int

    def add(self, thread: int, amount: int, site: Any, told: Any = ANY) -> None:
        super().add(thread, amount, site, told)
        self.tape.note(thread, Event(What.ADD, self.number, amount, site))

    def store(self, thread: int, value: int, site: Any, told: Any = ANY) -> None:
        super().store(thread, value, site, told)
        self.tape.note(thread, Event(What.STORE, self.number, value, site))


class TapedWords(WordBook):
    """Words whose stores and waits are noted."""

    tape: Tape

    def send(
        self, thread: int, words: Sequence[Any], tag: int, contents: Any, site: Any, told: Any
    ) -> None:
        self._note(What.SEND, thread, words, tag, site)
        super().send(thread, words, tag, contents, site, told)

    def receive(self, thread: int, words: Sequence[Any], tag: int, site: Any) -> Receipt:
        self._note(What.RECEIVE, thread, words, tag, site)
        return super().receive(thread, words, tag, site)

    def _note(self, what: What, thread: int, words: Sequence[Any], tag: int, site: Any) -> None:
        tape = self.tape
        numbers = [tape.number_of(word) for word in words]
        if numbers:
            tape.sets.append(tuple(numbers))
            tape.note(thread, Event(what, len(tape.sets) - 1, tag, site))


NOTED = {"warps", "meet", "make", "begin_wait", "begin_meeting", "arrive_behind", "multiply"}
NOTED |= {"commit", "retire", "signal", "begin_poll", "begin_look", "exchange"}
"""What an engine does that is noted."""

LEFT_ALONE = {"fork", "warp_sync", "fence", "fence_order", "access", "begin_copy", "copy_access"}
LEFT_ALONE |= {"begin_send", "begin_block", "land", "knows_foreign", "arrive_all", "products"}
LEFT_ALONE |= {"copies", "thread_copy", "wait_copies", "bulk", "store", "commit_bulk", "exit"}
LEFT_ALONE |= {"wait_bulk", "reach", "fenced", "hear", "publish", "reserve", "store_reads"}
"""What lets nobody wait and nobody go on, or does so by what is noted."""

__all__ = ["LEFT_ALONE", "NOTED", "Agent", "Event", "Tape", "What"]

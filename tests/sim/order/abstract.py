"""A small machine for the engine of order: straight programs of actors, any scheduler.

An actor is some warps that go in step, as in the simulator. Its program is a list of operations:
tuples of a name and operands, the name that of a method below. A location is four cells: warp i
writes cell i of it, all else touches all four.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.sim.order.clocks import CAUSE, ROWS, SEEN
from warploom.sim.order.engine import Engine, Warps
from warploom.sim.order.history import Does, History
from warploom.sim.order.phases import Book
from warploom.sim.order.problems import Kind, Problem
from warploom.sim.order.signals import ANY, Until

Op = tuple[Any, ...]


def cells_of(location: int) -> np.ndarray:
    """The cells of a location."""
    return 4 * location + np.arange(4)


@dataclass
class Program:
    """Barriers by name with their counts, warps and operations of each actor, locations."""

    barriers: dict[str, int]
    actors: dict[str, list[Op]]
    warps: dict[str, int] = field(default_factory=dict)
    locations: int = 16
    targets: dict[str, int] = field(default_factory=dict)  # counters and flags: first value


@dataclass
class Result:
    """What a run found, whether it got stuck, and what the actors knew at the end."""

    problems: list[Problem]
    stuck: bool
    clocks: dict[Any, Any]

    @property
    def kinds(self) -> set[Kind]:
        return {p.kind for p in self.problems}

    @property
    def unstable(self) -> bool:
        return any(p.unstable for p in self.problems)

    @property
    def clean(self) -> bool:
        return not self.problems and not self.stuck


class Actor:
    def __init__(self, name: str, number: int, ops: list[Op], machine: Machine, warps: int) -> None:
        self.name, self.number, self.ops = name, number, ops
        self.warps = machine.engine.warps(warps)
        self.unit = machine.engine.products(name)
        self.first = int(self.warps.alone[0])
        self.bulk = machine.engine.bulk(self.first)
        self.at = 0
        self.wait: Any = None
        self.copies = 0

    @property
    def done(self) -> bool:
        return self.at >= len(self.ops) and self.wait is None

    def ready(self) -> bool:
        if self.wait is not None:
            return self.wait[0]()
        return self.at < len(self.ops)


class Machine:
    """One run of a program under a scheduler."""

    def __init__(self, program: Program) -> None:
        self.problems: list[Problem] = []
        self.engine = Engine(self.problems.append)
        self.engine.clocks.rows = np.zeros((8, ROWS, 1024), np.int32)
        self.memory = History(4 * program.locations)
        self.outside = History(4 * program.locations)
        self.engine.histories += [self.memory, self.outside]
        self.actors = [
            Actor(name, i, ops, self, program.warps.get(name, 1))
            for i, (name, ops) in enumerate(program.actors.items())
        ]
        self.books = {n: self.engine.make(n, c, n) for n, c in program.barriers.items()}
        self.named: dict[int, Book] = {}
        self.flying: list[tuple[Any, Book, int, int]] = []
        self.keys: dict[int, Any] = {}
        self.signals = {n: self.engine.signal(n, n, v) for n, v in program.targets.items()}

    # ---- actions ---------------------------------------------------------------------------

    def step(self, actor: Actor) -> None:
        """Finish a wait, or do the next operation."""
        if actor.wait is not None:
            _, then = actor.wait
            actor.wait = None
            then()
            return
        op = actor.ops[actor.at]
        actor.at += 1
        self._do(actor, (actor.name, actor.at - 1), *op)

    def land(self, number: int) -> None:
        """Complete a copy."""
        self.engine.land(*self.flying.pop(number))

    def _do(self, actor: Actor, site: Any, name: str, *of: Any) -> None:
        getattr(self, f"_{name}")(actor, site, *of)

    def _sync(self, actor: Actor, site: Any) -> None:
        self.engine.warp_sync(actor.warps)

    def _meet(self, actor: Actor, site: Any) -> None:
        self.engine.meet(actor.warps)

    def _fence(self, actor: Actor, site: Any) -> None:
        self.engine.fence(actor.warps.all, "all")

    def _read(self, actor: Actor, site: Any, location: int) -> None:
        for lanes, alone in zip(actor.warps.lanes, actor.warps.alone, strict=True):
            at = cells_of(location)
            self.engine.access(self.memory, at, Does.READ, int(lanes), site, int(alone))

    def _write(self, actor: Actor, site: Any, location: int) -> None:
        pairs = zip(actor.warps.lanes, actor.warps.alone, strict=True)
        for warp, (lanes, alone) in enumerate(pairs):
            at = cells_of(location)[warp : warp + 1]
            self.engine.access(self.memory, at, Does.WRITE, int(lanes), site, int(alone))

    def _wait(self, actor: Actor, site: Any, barrier: str, parity: int) -> None:
        self._begin(actor, site, barrier, parity, actor.warps.all)

    def _wait_one(self, actor: Actor, site: Any, barrier: str, parity: int) -> None:
        self._begin(actor, site, barrier, parity, actor.warps.alone[:1])

    def _begin(self, actor: Actor, site: Any, barrier: str, parity: int, who: np.ndarray) -> None:
        book = self.books[barrier]
        number = self.engine.begin_wait(book, who, parity, site)
        actor.wait = (lambda: book.completed(number), lambda: book.acquire(who, number))

    def _arrive_one(self, actor: Actor, site: Any, barrier: str) -> None:
        self.books[barrier].arrive(actor.first, 1, site)

    def _arrive_each(self, actor: Actor, site: Any, barrier: str) -> None:
        for thread in actor.warps.alone:
            self.books[barrier].arrive(int(thread), 1, site)

    def _announce(self, actor: Actor, site: Any, barrier: str, size: int) -> None:
        self.books[barrier].expect(actor.first, size, site)

    def _expect(self, actor: Actor, site: Any, barrier: str, size: int) -> None:
        self.books[barrier].expect(actor.first, size, site)
        self.books[barrier].arrive(actor.first, 1, site)

    def _mma(self, actor: Actor, site: Any, *locations: int) -> None:
        at = [cells_of(location) for location in locations]
        self.engine.multiply(actor.unit, actor.warps, self.memory, at, site)
        self.engine.commit(actor.unit)

    def _retire(self, actor: Actor, site: Any, pending: int) -> None:
        self.engine.retire(actor.unit, pending, actor.warps)

    def _store(self, actor: Actor, site: Any, location: int, target: int) -> None:
        source, out = (self.memory, cells_of(location)), (self.outside, cells_of(target))
        self.engine.store(actor.first, source, out, Does.WRITE, site)
        self.engine.commit_bulk(actor.first)

    def _stored(self, actor: Actor, site: Any, pending: int, reads: bool) -> None:
        self.engine.wait_bulk(actor.first, pending, reads)

    def _add(self, actor: Actor, site: Any, counter: str, amount: int) -> None:
        self.signals[counter].add(actor.first, amount, site)

    def _until(self, actor: Actor, site: Any, counter: str, target: int) -> None:
        wait = self.signals[counter].begin_wait(actor.first, target, site)
        actor.wait = (wait.ready, lambda: self.hear(actor, wait))

    def hear(self, actor: Actor, wait: Until) -> None:
        """A wait is over."""
        self.engine.hear(actor.warps.alone[:1], ANY, wait.prefix, acquires=True)

    def _set(self, actor: Actor, site: Any, flag: str, value: int) -> None:
        self.signals[flag].store(actor.first, value, site)

    def _await(self, actor: Actor, site: Any, flag: str, value: int) -> None:
        wait = self.signals[flag].begin_wait(actor.first, value, site)
        actor.wait = (wait.ready, lambda: self.hear(actor, wait))

    def _copy(self, actor: Actor, site: Any, *parts: tuple[int, str, int]) -> None:
        """`parts` are (location, barrier, bytes): one agent each."""
        for location, barrier, size in parts:
            agent = self.engine.begin_copy(actor.first)
            self.keys[agent[0]] = (actor.name, actor.copies)
            actor.copies += 1
            at = cells_of(location)
            self.engine.copy_access(self.memory, at, Does.WRITE, agent, actor.first, site)
            book = self.books[barrier]
            phase = book.issue(actor.first, size, site)
            self.flying.append((agent, book, phase, size))

    def _bar(self, actor: Actor, site: Any, number: int, threads: int) -> None:
        book, phase = self._come(actor, site, number, threads)
        everyone = actor.warps.all
        actor.wait = (lambda: book.completed(phase), lambda: book.acquire(everyone, phase))

    def _bar_arrive(self, actor: Actor, site: Any, number: int, threads: int) -> None:
        self._come(actor, site, number, threads)

    def _come(self, actor: Actor, site: Any, number: int, threads: int) -> tuple[Book, int]:
        book = self.named.get(number)
        if book is None:
            book = self.named[number] = self.engine.make(("named", number), threads, number)
        phase = book.meaning(actor.first)
        self.engine.arrive_all(book, actor.warps, 32, site)
        return book, phase

    # ---- the end ---------------------------------------------------------------------------

    def result(self, stuck: bool) -> Result:
        if not stuck:
            for book in self.engine.books.values():
                book.close()
            everyone = [actor.warps for actor in self.actors]
            lanes = np.concatenate([w.lanes for w in everyone])
            alone = np.concatenate([w.alone for w in everyone])
            self.engine.exit(Warps(lanes, alone), self.memory, self.engine.books.values())
        return Result(self.problems, stuck, self._known())

    def _known(self) -> dict[Any, Any]:
        """What each thread knows of each thread and agent, by names that no schedule changes."""
        clocks = self.engine.clocks
        names: dict[int, Any] = {int(clocks.own[t]): ("thread", t) for t in range(clocks.count)}
        for actor in self.actors:
            names[actor.unit.component] = ("unit", actor.name)
            for groups, what in zip(actor.bulk, ("reads", "writes"), strict=True):
                names[groups.component] = (what, actor.name)
        names |= self.keys
        found = {}
        for t in range(clocks.count):
            for row in (CAUSE, SEEN):
                held = clocks.rows[t, row]
                found[t, row] = {names[int(c)]: int(held[c]) for c in np.flatnonzero(held)}
        return found


# ---- schedulers --------------------------------------------------------------------------------


def run(program: Program, seed: int = 0) -> Result:
    """Run under schedule number `seed`: 0 to 2 take turns with completions as late as possible, as
    early as possible and last in first out; later ones change priorities or draw at random."""
    machine = Machine(program)
    rng = np.random.default_rng(seed)
    style = seed if seed < 3 else 3 + seed % 3
    weights = rng.choice([0.1, 1.0, 1.0, 10.0], len(machine.actors))
    eager = float(rng.choice([0.0, 0.1, 0.5, 0.9]))
    turn = 0
    while True:
        ready = [a for a in machine.actors if a.ready()]
        flying = len(machine.flying)
        if flying and (not ready or (style == 1) or (style > 2 and rng.random() < eager)):
            number = 0 if style in (0, 1) else flying - 1
            machine.land(int(rng.integers(flying)) if style > 2 else number)
        elif ready:
            if style < 3:
                turn += 1
                later = [a for a in ready if a.number >= turn % len(machine.actors)]
                chosen = (later or ready)[0]
            elif style == 3:
                if rng.random() < 0.1:
                    weights = rng.permutation(weights)
                chosen = max(ready, key=lambda a: weights[a.number])
            else:
                share = np.array([weights[a.number] for a in ready])
                chosen = ready[int(rng.choice(len(ready), p=share / share.sum()))]
            machine.step(chosen)
        else:
            return machine.result(any(not a.done for a in machine.actors))

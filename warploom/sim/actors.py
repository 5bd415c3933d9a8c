"""Who runs at the same time in the blocks that are resident together: replicas of roles, and the
scheduler that lets them take turns at their waits. Knows no single operation.

A schedule has a name and a seed, and the two give the same run every time. By default every actor
runs on to its next wait in turn, and asynchronous work is done as late as possible: when nothing
else can move.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from warploom.ir.op import Op
from warploom.sim.machine import Run


class Helper(NamedTuple):
    """An actor, and the operation by which it brings a part of what another one waits for, where
    there is one that could be named."""

    actor: Actor
    op: Op | None


class Wait(Protocol):
    """What an actor waits for; `op` is the operation that waits."""

    op: Op

    def ready(self) -> bool:
        """Whether the actor can go on."""
        ...

    def words(self) -> str:
        """What it waits for and what is missing, for the report of a deadlock."""
        ...

    def came(self, waiter: Actor) -> list[Helper]:
        """Who has brought their part already."""
        ...

    def helpers(self, waiter: Actor) -> list[Helper]:
        """Who brings such things, those that have ended too."""
        ...

    def advice(self) -> str:
        """What to do where nobody brings what is missing."""
        ...


class Left(Exception):
    """An actor leaves the kernel where it stands."""


class Around:
    """A wait that says of itself what another one does."""

    __slots__ = ("op", "wait")

    def __init__(self, wait: Wait) -> None:
        self.op, self.wait = wait.op, wait

    def ready(self) -> bool:
        """As the wait says it; and so below."""
        return self.wait.ready()

    def words(self) -> str:
        return self.wait.words()

    def came(self, waiter: Actor) -> list[Helper]:
        return self.wait.came(waiter)

    def helpers(self, waiter: Actor) -> list[Helper]:
        return self.wait.helpers(waiter)

    def advice(self) -> str:
        return self.wait.advice()


class Limited(Around):
    """A wait that is given up when its time is `over`, or `expire`d because nothing can move."""

    __slots__ = ("_over", "expired")

    def __init__(self, wait: Wait, over: Callable[[], bool]) -> None:
        super().__init__(wait)
        self._over, self.expired = over, False

    def ready(self) -> bool:
        """Whether the actor goes on, with what it waits for or without."""
        return self.expired or super().ready() or self._over()

    def expire(self) -> None:
        """Give up."""
        self.expired = True


Trips: TypeAlias = tuple[tuple[str, int], ...]  # an index of a loop and its value, outermost first


class Actor:
    """A replica of a role, or all warps of a block that has no roles. `role` is empty there."""

    __slots__ = (
        "begun",
        "block",
        "bulk",
        "copies",
        "fenced",
        "matrix",
        "number",
        "registers",
        "replica",
        "role",
        "run",
        "trips",
        "wait",
        "warps",
        "weight",
    )

    def __init__(
        self, role: str, replica: int | None, warps: int, registers: int, number: int
    ) -> None:
        self.role, self.replica, self.warps = role, replica or 0, warps
        self.number = number  # of this actor in the block
        self.registers = registers
        self.begun = False
        self.wait: Wait | None = None
        self.fenced = False  # a fence of the matrix unit since its last group
        self.weight = 1.0
        self.trips: Trips = ()  # of the loops that it is in, in checked mode
        self.run: Run
        self.block: Any
        self.copies: Any = None  # those of its threads, like `bulk`
        self.bulk: Any
        self.matrix: Any

    @property
    def threads(self) -> int:
        """Threads of this actor."""
        return 32 * self.warps

    @property
    def name(self) -> str:
        """The actor as users know it."""
        if not self.role:
            return "the block"
        several = self.block.replicas[self.role] > 1
        return f"`{self.role}`" + (f" {self.replica}" if several else "")

    def ready(self) -> bool:
        """Whether it can go on."""
        return self.wait is None or self.wait.ready()


class Work(Protocol):
    """Asynchronous work of the blocks that are resident together."""

    def next_late(self, newest: bool = False) -> Callable[[], None] | None:
        """What has to be done first when nothing else can move, the oldest of it or the newest;
        None where nothing would help."""
        ...

    def any_early(self) -> list[Callable[[], None]]:
        """All that may be done next."""
        ...

    def left(self, actor: Actor) -> None:
        """An actor has ended."""
        ...


LATE, EARLY, LAST, PRIORITIES, RANDOM = "late", "early", "last", "priorities", "random"
SCHEDULES = {
    LATE: "in turn, asynchronous work as late as possible",
    EARLY: "in turn, asynchronous work as early as possible",
    LAST: "in turn, asynchronous work last in first out",
    PRIORITIES: "by priorities that change now and then",
    RANDOM: "drawn at random",
}
"""Schedules by name, in words."""
_CHANGE = 0.1  # how often a step changes the priorities
_PATIENCE = 4  # rounds in which actors do nothing but give way until asynchronous work goes on


def schedule_of(seed: int) -> str:
    """The schedule that a seed stands for, where none is named."""
    if seed < 3:
        return (LATE, EARLY, LAST)[seed]
    return PRIORITIES if seed % 2 else RANDOM


def _stay(waiting: list[Actor]) -> bool:
    return False


class Schedule:
    """Who goes next, by the name of a schedule and a seed; the same pair gives the same run. `key`
    tells the runs of one launch apart."""

    __slots__ = ("name", "random")

    def __init__(self, seed: int = 0, name: str = "", key: int = 0) -> None:
        self.name = name or schedule_of(seed)
        self.random = np.random.default_rng([seed, key])

    @property
    def shuffles(self) -> bool:
        """Whether actors also give way where they need not wait."""
        return self.name != LATE

    @property
    def in_turn(self) -> bool:
        """Whether actors take turns."""
        return self.name in (LATE, EARLY, LAST)


class Scheduler:
    """Runs the actors of all resident blocks until all have ended or none can move."""

    def __init__(self, work: Work, schedule: Schedule) -> None:
        self.actors: list[Actor] = []
        self.ended: list[Actor] = []
        self.work = work
        self.schedule = schedule
        self.steps = 0
        # Lets one of those that wait go on where nothing can move; false where it does not.
        self.let_go: Callable[[list[Actor]], bool] = _stay

    def add(self, actor: Actor) -> None:
        """Let an actor take part from now on."""
        if not self.schedule.in_turn:
            # Unequal speeds, so that one role may be laps ahead of another.
            actor.weight = float(self.schedule.random.choice([1.0, 1.0, 0.1, 10.0]))
        self.actors.append(actor)

    def run(self) -> bool:
        """Run to the end; False where nothing can move any more."""
        return self._in_turn() if self.schedule.in_turn else self._by_weight()

    def _in_turn(self) -> bool:
        early, newest = self.schedule.name == EARLY, self.schedule.name == LAST
        idle = 0
        while self.actors:
            moved = went_on = False
            for actor in tuple(self.actors):
                while actor.ready():
                    moved = True
                    # An actor that only gives way goes on in the next round.
                    alive = self._advance(actor)
                    goes_on = alive and actor.wait is not None
                    went_on = went_on or not alive or goes_on
                    if early:
                        self._finish_all()
                    if not goes_on:
                        break
            if not moved and not self._finish_late(newest) and not self._end_a_wait():
                return False
            # Who polls can always move, and late is not never.
            idle = 0 if went_on else idle + 1
            if moved and idle > _PATIENCE:
                self._finish_late(newest)
                idle = 0
        return True

    def _finish_all(self) -> None:
        """Do all asynchronous work that is under way, in order of issue."""
        while early := self.work.any_early():
            early[0]()

    def _finish_late(self, newest: bool) -> bool:
        """Nothing else can move: do what is under way, one by one; False where nothing is."""
        late = self.work.next_late(newest)
        if late is None:
            return False
        late()
        return True

    def _end_a_wait(self) -> bool:
        """Nothing can move, and nothing is under way: let somebody go, or time is over for the
        first wait that has a limit. False where nobody can go."""
        if self.let_go(self.actors):
            return True
        waits = (actor.wait for actor in self.actors)
        limited = next((wait for wait in waits if isinstance(wait, Limited)), None)
        if limited is not None:
            limited.expire()
        return limited is not None

    def _by_weight(self) -> bool:
        random, changing = self.schedule.random, self.schedule.name == PRIORITIES
        eager = float(random.choice([0.0, 0.1, 0.5, 0.9]))
        while self.actors:
            ready = [actor for actor in self.actors if actor.ready()]
            early = self.work.any_early()
            if early and (not ready or random.random() < eager):
                early[int(random.integers(len(early)))]()
            elif not ready:
                if not self._end_a_wait():
                    return False
            elif changing:
                if random.random() < _CHANGE:
                    for actor in self.actors:
                        actor.weight = float(random.random())
                self._advance(max(ready, key=lambda actor: actor.weight))
            else:
                weights = np.array([actor.weight for actor in ready])
                self._advance(ready[int(random.choice(len(ready), p=weights / weights.sum()))])
        return True

    def _advance(self, actor: Actor) -> bool:
        """Run an actor to its next wait; False where it has ended."""
        self.steps += 1
        actor.begun = True
        try:
            actor.wait = next(actor.run)
        except (StopIteration, Left):
            self.actors.remove(actor)
            self.ended.append(actor)
            self.work.left(actor)
            return False
        return True

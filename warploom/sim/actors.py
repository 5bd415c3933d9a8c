"""Who runs at the same time in the blocks that are resident together: replicas of roles, and the
scheduler that lets them take turns at their waits. Knows no single operation.

Without a seed every actor runs on to its next wait in turn, and asynchronous work is done as late
as possible: when nothing else can move. With a seed both are drawn at random, the same way every
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from warploom.ir.op import Op
from warploom.sim.machine import Run


class Wait(Protocol):
    """What an actor waits for; `op` is the operation that waits."""

    op: Op

    def ready(self) -> bool:
        """Whether the actor can go on."""
        ...

    def words(self) -> str:
        """What it waits for and what is missing, for the report of a deadlock."""
        ...


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

    def next_late(self) -> Callable[[], None] | None:
        """What has to be done first when nothing else can move; None where nothing would help."""
        ...

    def any_early(self) -> list[Callable[[], None]]:
        """All that may be done next."""
        ...

    def left(self, actor: Actor) -> None:
        """An actor has ended."""
        ...


class Scheduler:
    """Runs the actors of all resident blocks until all have ended or none can move."""

    def __init__(self, work: Work, random: np.random.Generator | None) -> None:
        self.actors: list[Actor] = []
        self.ended: list[Actor] = []
        self.work = work
        self.random = random
        self.steps = 0

    def add(self, actor: Actor) -> None:
        """Let an actor take part from now on."""
        if self.random is not None:
            # Unequal speeds, so that one role may be laps ahead of another.
            actor.weight = float(self.random.choice([1.0, 1.0, 0.1, 10.0]))
        self.actors.append(actor)

    def run(self) -> bool:
        """Run to the end; False where nothing can move any more."""
        return self._by_chance() if self.random is not None else self._in_turn()

    def _in_turn(self) -> bool:
        while self.actors:
            moved = False
            for actor in tuple(self.actors):
                while actor.ready():
                    moved = True
                    # An actor that only gives way goes on in the next round.
                    if not self._advance(actor) or actor.wait is None:
                        break
            if not moved:
                late = self.work.next_late()
                if late is None:
                    return False
                late()
        return True

    def _by_chance(self) -> bool:
        random = self.random
        assert random is not None
        eager = float(random.choice([0.0, 0.1, 0.5, 0.9]))
        while self.actors:
            ready = [actor for actor in self.actors if actor.ready()]
            early = self.work.any_early()
            if early and (not ready or random.random() < eager):
                early[int(random.integers(len(early)))]()
            elif ready:
                weights = np.array([actor.weight for actor in ready])
                self._advance(ready[int(random.choice(len(ready), p=weights / weights.sum()))])
            else:
                return False
        return True

    def _advance(self, actor: Actor) -> bool:
        """Run an actor to its next wait; False where it has ended."""
        self.steps += 1
        actor.begun = True
        try:
            actor.wait = next(actor.run)
        except StopIteration:
            self.actors.remove(actor)
            self.ended.append(actor)
            self.work.left(actor)
            return False
        return True

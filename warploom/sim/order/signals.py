"""Counters that only grow and flags that are stored to, in memory: which signals a wait means.

A wait for a counter to reach T means the shortest prefix of signals whose sum does; a wait for a
flag means the first store that satisfies it. Knows nothing of who polls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from warploom.sim.order.clocks import SEEN, Clocks, entry
from warploom.sim.order.history import Reach
from warploom.sim.order.problems import Found, Kind, Problem

Told: TypeAlias = tuple[Reach, np.ndarray]
"""What a signal publishes to those that reach so far and are reached."""
ANY = Reach()


@dataclass(slots=True)
class Sent:
    """One signal: its sender's component and epoch, what it adds, the value then, what the sender
    knew."""

    component: int
    epoch: int
    amount: int
    value: int
    known: np.ndarray
    site: Any
    told: list[Told] = field(default_factory=list)


class Signal:
    """One counter or flag, by the signals that have landed, in order. `value` is what it holds;
    `behind` tells whether a value is still short of a target."""

    __slots__ = ("_waits", "clocks", "first", "found", "name", "sent", "value")

    def __init__(self, clocks: Clocks, name: Any, first: int, found: Found) -> None:
        self.clocks, self.name, self.first, self.found = clocks, name, first, found
        self.value = first
        self.sent: list[Sent] = []
        self._waits: list[Until | Await] = []

    @staticmethod
    def behind(value: int, target: int) -> bool:
        """Whether a value is below a target, as numbers of 32 bits that wrap."""
        return (value - target) & 0x8000_0000 != 0

    def _send(
        self, thread: int, amount: int, value: int, site: Any, told: Reach | list[Told]
    ) -> None:
        clocks = self.clocks
        component, epoch = int(clocks.own[thread]), clocks.epoch(thread)
        known = clocks.release(np.array([thread]))
        made = Sent(component, epoch, amount, value, known, site)
        made.told = [(told, known)] if isinstance(told, Reach) else told
        self.value = value
        self.sent.append(made)
        for wait in self._waits:
            wait.look(made)

    def add(self, thread: int, amount: int, site: Any, told: Reach | list[Told] = ANY) -> None:
        """A thread adds to a counter, and tells what it knows as far as it reaches, or less."""
        if amount < 0:
            self.report(Kind.STORE, site, None, amount=amount)
        self._send(thread, amount, self.value + amount, site, told)

    def store(self, thread: int, value: int, site: Any, told: Reach | list[Told] = ANY) -> None:
        """A thread stores to a flag, and tells what it knows as far as it reaches, or less."""
        last = self.sent[-1] if self.sent else None
        if last is not None and not self.is_before(last, self.clocks.rows[thread, SEEN]):
            self.report(Kind.STORE, site, last.site, value=value)
        self._send(thread, 0, value, site, told)

    def _begin(self, wait: Until | Await) -> Any:
        self._waits.append(wait)
        for made in self.sent:
            wait.look(made)
        return wait

    def begin_wait(self, target: int, site: Any) -> Until:
        """Somebody begins to wait until a counter has reached `target`."""
        return self._begin(Until(self, target, site))

    def begin_flag(self, thread: int, value: int, site: Any) -> Await:
        """A thread begins to wait until a flag is at least `value`."""
        return self._begin(Await(self, thread, value, site))

    @staticmethod
    def is_before(sent: Sent, seen: np.ndarray) -> bool:
        """Whether one who has seen so much has seen a signal."""
        return entry(seen, sent.component) >= sent.epoch

    def report(self, kind: Kind, site: Any, other: Any, **facts: Any) -> None:
        """A finding about this signal."""
        self.found(Problem(kind, site, other, self.name, facts))


class Until:
    """A wait for a counter: `prefix` are the signals that it means, once they are complete."""

    __slots__ = ("_told", "prefix", "signal", "site", "target", "value")

    def __init__(self, signal: Signal, target: int, site: Any) -> None:
        self.signal, self.target, self.site = signal, target, site
        self.value = signal.first
        self.prefix: list[Sent] = []
        self._told = False

    def ready(self) -> bool:
        """Whether the counter has reached the target."""
        return not self.signal.behind(self.value, self.target)

    def look(self, made: Sent) -> None:
        """A signal has landed: part of the prefix, or one that must come after all of it."""
        if not self.ready():
            self.value += made.amount
            self.prefix.append(made)
            if self.ready():
                self._check_prefix()
        elif self.prefix and not self._told:
            seen = made.known[SEEN]
            if not all(self.signal.is_before(s, seen) for s in self.prefix):
                self._unsure(made.site)

    def _check_prefix(self) -> None:
        """None of the signals can be spared: without one and what comes after it the sum is too
        small."""
        for spared in self.prefix:
            rest = sum(
                s.amount
                for s in self.prefix
                if s is not spared and not self.signal.is_before(spared, s.known[SEEN])
            )
            if not self.signal.behind(self.signal.first + rest, self.target):
                self._unsure(spared.site)
                return

    def _unsure(self, other: Any) -> None:
        self._told = True
        self.signal.report(Kind.SIGNAL, self.site, other, target=self.target)


class Await:
    """A wait for a flag: it means the first store that satisfies it."""

    __slots__ = ("epoch", "first", "met", "own", "signal", "site", "value")

    def __init__(self, signal: Signal, thread: int, value: int, site: Any) -> None:
        clocks = signal.clocks
        self.signal, self.value, self.site = signal, value, site
        self.own, self.epoch = int(clocks.own[thread]), clocks.epoch(thread)
        self.first: Sent | None = None
        self.met = self._fits(signal.first)

    def _fits(self, value: int) -> bool:
        return not self.signal.behind(value, self.value)

    def ready(self) -> bool:
        """Whether a store has satisfied it."""
        return self.met

    def look(self, made: Sent) -> None:
        """A store: the first that satisfies it, or one that must come after the wait if it would
        not."""
        fits = self._fits(made.value)
        if not self.met:
            if fits:
                self.first, self.met = made, True
            return
        if not fits and entry(made.known[SEEN], self.own) < self.epoch:
            self.signal.report(Kind.STORE, made.site, self.site, value=made.value)

    @property
    def prefix(self) -> list[Sent]:
        """The store that it means, if it waited for one."""
        return [] if self.first is None else [self.first]

"""Numbers in memory that signals add to (counters) or store (flags): which signals a wait means.

A wait for a counter to reach T means the shortest prefix of signals whose sum does; a wait for a
flag means the first store that satisfies it. Which of the two a number is, its signals say: each
element for itself, and one that is stored to and added to counts on from its last store. Knows
nothing of who polls.
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
    """One signal: its sender's component and epoch, what it adds (None: it stores), the value then,
    what the sender knew."""

    component: int
    epoch: int
    amount: int | None
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
        self._waits: list[Until] = []

    @staticmethod
    def behind(value: int, target: int) -> bool:
        """Whether a value is below a target, as numbers of 32 bits that wrap."""
        return (value - target) & 0x8000_0000 != 0

    def _send(
        self, thread: int, amount: int | None, value: int, site: Any, told: Reach | list[Told]
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
        self._send(thread, None, value, site, told)

    def begin_wait(self, thread: int, target: int, site: Any) -> Until:
        """A thread begins to wait until the number is at least `target`."""
        known = self.clocks.rows[thread, SEEN]
        # A store that the thread has seen hides what was there before.
        stores = (
            i for i, s in enumerate(self.sent) if s.amount is None and self.is_before(s, known)
        )
        begin = max(stores, default=None)
        wait = Until(self, thread, target, site, self.first if begin is None else None)
        self._waits.append(wait)
        for made in self.sent[begin or 0 :]:
            wait.look(made)
        return wait

    @staticmethod
    def is_before(sent: Sent, seen: np.ndarray) -> bool:
        """Whether one who has seen so much has seen a signal."""
        return entry(seen, sent.component) >= sent.epoch

    def report(self, kind: Kind, site: Any, other: Any, **facts: Any) -> None:
        """A finding about this signal."""
        self.found(Problem(kind, site, other, self.name, facts))


class Until:
    """A wait until a number is at least `target`: `prefix` are the signals that it means, once they
    are complete. They are what was added to begin with, or a store and what was added since."""

    __slots__ = ("_base", "_epoch", "_own", "_told", "met", "prefix", "signal", "site", "target")

    def __init__(
        self, signal: Signal, thread: int, target: int, site: Any, first: int | None
    ) -> None:
        """`first` is the value to begin with; None where a store comes first."""
        clocks = signal.clocks
        self._own, self._epoch = int(clocks.own[thread]), clocks.epoch(thread)
        self.signal, self.target, self.site = signal, target, site
        self._base = 0 if first is None else first
        self.met = first is not None and self._fits(first)
        self.prefix: list[Sent] = []
        self._told = False

    def _fits(self, value: int) -> bool:
        return not self.signal.behind(value, self.target)

    def ready(self) -> bool:
        """Whether the number has reached the target."""
        return self.met

    def look(self, made: Sent) -> None:
        """A signal has landed: one that the wait means, or one that must not be mixed up with
        those."""
        if not self.met:
            self._gather(made)
        elif made.amount is None:
            if not self._fits(made.value) and entry(made.known[SEEN], self._own) < self._epoch:
                self.signal.report(Kind.STORE, made.site, self.site, value=made.value)
        elif self.prefix and not self._told:
            seen = made.known[SEEN]
            if not all(self.signal.is_before(s, seen) for s in self.prefix):
                self._unsure(made.site)

    def _gather(self, made: Sent) -> None:
        if made.amount is None:
            self._base = made.value
            self.prefix = [made]
        else:
            self.prefix.append(made)
        self.met = self._fits(made.value)
        if self.met:
            self._check_prefix()

    def _check_prefix(self) -> None:
        """None of the amounts can be spared: without one and what comes after it the sum is too
        small."""
        for spared in self.prefix:
            if spared.amount is None:
                continue
            rest = sum(
                s.amount or 0
                for s in self.prefix
                if s is not spared and not self.signal.is_before(spared, s.known[SEEN])
            )
            if self._fits(self._base + rest):
                self._unsure(spared.site)
                return

    def _unsure(self, other: Any) -> None:
        self._told = True
        self.signal.report(Kind.SIGNAL, self.site, other, target=self.target)

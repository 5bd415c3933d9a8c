"""What threads learn of each other through global memory: what atomic operations, signals and
fences of memory order publish, and who learns it, within its own group of blocks and from others.

Knows neither memory nor barriers; an engine is one of these worlds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warploom.sim.order.clocks import CAUSE, SEEN, Clocks, entry, joined
from warploom.sim.order.history import GPU, Access, Reach
from warploom.sim.order.signals import Sent, Told

Knowledge = dict["World", np.ndarray]
"""What somebody knows, of each world."""


class Point:
    """What has been published at one element of global memory by atomic operations: what its
    publishers knew, by how far they reach."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Reach, Knowledge] = {}

    def add(self, reach: Reach, other: Knowledge) -> None:
        """Something more is published."""
        held = self._known.setdefault(reach, {})
        for world, clock in other.items():
            held[world] = joined(held.get(world), clock)

    def seen_from(self, reach: Reach) -> Iterator[Knowledge]:
        """What one who reaches so far can learn here."""
        return (known for there, known in self._known.items() if there.meets(reach))


class World:
    """One group of blocks, whose threads have clocks of one kind."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.places: dict[int, Reach] = {}  # of threads
        # What threads learnt of other worlds: component and epoch of the thread, what it learnt.
        self.learnt: list[tuple[int, int, Knowledge]] = []
        # By thread: what it knew at its last fence of each scope; what it has read, and how far it
        # reached there, without acquiring it.
        self._fenced: dict[int, dict[int, Knowledge]] = {}
        self.heard: dict[int, list[tuple[Point, Reach]]] = {}

    def reach(self, thread: int, scope: int) -> Reach:
        """How far an atomic access of a thread with this scope reaches."""
        place = self.places[thread]
        return place if place.scope == scope else place._replace(scope=scope)

    def exchange(
        self, point: Point, thread: int, gives: bool, takes: bool, scope: int = GPU
    ) -> None:
        """An atomic operation by a thread. A relaxed one publishes what a fence before it has
        covered, and a fence after it learns what it could have; the narrower scope counts."""
        reach = self.reach(thread, scope)
        given = {scope: self._knowledge(thread)} if gives else self._fenced.get(thread, {})
        if takes:
            self._learn(thread, list(point.seen_from(reach)))
        else:
            self.heard.setdefault(thread, []).append((point, reach))
        for within, known in given.items():
            point.add(reach.narrowed(within), known)

    def fenced(self, thread: int, reach: Reach) -> list[Told]:
        """What a relaxed signal of a thread publishes: what its fences have covered, each as far as
        both reach."""
        held = self._fenced.get(thread, {}).items()
        return [(reach.narrowed(scope), known[self]) for scope, known in held]

    def hear(self, threads: np.ndarray, reach: Reach, signals: list[Sent], acquires: bool) -> None:
        """Threads have waited for signals, and reach so far; relaxed, they learn only from a fence
        what was published."""
        point = Point()
        for sent in signals:
            self.clocks.see(threads, sent.known[SEEN])
            for there, known in sent.told:
                if not acquires:
                    point.add(there, {self: known})
                elif there.meets(reach):
                    self.clocks.acquire(threads, known)
        if not acquires:
            for thread in map(int, threads):
                self.heard.setdefault(thread, []).append((point, reach))

    def fence_order(self, threads: np.ndarray, scope: int = GPU) -> None:
        """A fence of memory order, both ways."""
        for thread in map(int, threads):
            for point, reach in self.heard.get(thread, ()):
                self._learn(thread, list(point.seen_from(reach.narrowed(scope))))
            if scope >= GPU:
                self.heard.pop(thread, None)  # a wider fence would learn no more
            self._fenced.setdefault(thread, {})[scope] = self._knowledge(thread)

    def _knowledge(self, thread: int) -> Knowledge:
        """What a thread knows of this world and of others."""
        found: Knowledge = {}
        clock = self.clocks.release(np.array([thread]))
        for component, epoch, learnt in self.learnt:
            if entry(clock[CAUSE], component) >= epoch:
                for world, known in learnt.items():
                    found[world] = joined(found.get(world), known)
        found[self] = clock
        return found

    def _learn(self, thread: int, found: list[Knowledge]) -> None:
        clocks = self.clocks
        for known in found:
            others = {w: k.copy() for w, k in known.items() if w is not self}
            if self in known:
                clocks.acquire(np.array([thread]), known[self])
            if others:
                self.learnt.append((int(clocks.own[thread]), clocks.epoch(thread), others))

    def knows_foreign(self, earlier: Access, clock: np.ndarray, row: int) -> bool:
        """Whether one who knows `clock` knows an access of another world, by a row of its
        clocks."""
        for component, epoch, learnt in self.learnt:
            known = learnt.get(earlier.world)
            if known is None or entry(clock[CAUSE], component) < epoch:
                continue
            if entry(known[row], earlier.component) >= earlier.epoch:
                return True
        return False

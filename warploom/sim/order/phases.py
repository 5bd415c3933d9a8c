"""Phases of barriers by meaning: what an arrival, an announcement, bytes or a wait mean follows
from what happens-before them, and what could resolve otherwise is a finding.

`h`, the number of phases whose contributions all happen-before an operation, is the phase that its
arrival means. Serves mbarriers and named barriers; knows neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from warploom.sim.order.clocks import ROWS, SEEN, Clocks, entries, entry, joined
from warploom.sim.order.problems import Found, Kind, Problem

_REMEMBERED = 8  # phases back; who is further behind has been reported


class Phase:
    """One phase. `before`: waits for the phase before it, which it must not complete without."""

    __slots__ = (
        "announced",
        "arrivals",
        "arrived",
        "before",
        "carried",
        "components",
        "epochs",
        "expected",
        "issued",
        "known",
        "landed",
        "near",
        "sites",
        "taken",
    )

    def __init__(self) -> None:
        self.arrivals = 0
        self.expected = self.issued = self.landed = 0  # bytes
        self.announced: list[tuple[int, int, Any]] = []  # component, epoch, site
        self.before: list[tuple[np.ndarray, np.ndarray, Any]] = []  # of several threads each
        self.components: Any = []  # of its contributions; arrays once it is complete
        self.epochs: Any = []
        self.sites: list[Any] = []  # of the arrivals
        self.carried: list[Any] = []  # sites of what brings its bytes
        self.taken: tuple[Any, Any] | None = None  # who took the item of this phase, and where
        self.known: np.ndarray | None = None  # what all contributions know together
        self.near: np.ndarray | None = None  # and those of the block; None: there are no others
        self.arrived: np.ndarray | None = None  # what all arrivals have seen

    def contribute(self, component: int, epoch: int) -> None:
        """Note whose contribution belongs to this phase."""
        self.components.append(component)
        self.epochs.append(epoch)

    def learn(self, known: np.ndarray, far: bool) -> None:
        """What a contribution publishes; `far`: it comes from a peer, in order."""
        if far and self.near is None:
            self.near = np.zeros((ROWS, 0), np.int32) if self.known is None else self.known.copy()
        elif not far and self.near is not None:
            self.near = joined(self.near, known)
        self.known = joined(self.known, known)


class Arrival(NamedTuple):
    """Arrivals of one thread: the phase that they mean, components and epochs that make them, what
    they publish. `far`: in order, from a peer."""

    phase: int
    arrivals: int
    made: list[tuple[int, int]]
    known: np.ndarray
    site: Any
    far: bool = False


class Book:
    """The phases of one barrier of `count` arrivals a phase. `current` counts completed phases."""

    __slots__ = (
        "_found",
        "_here",
        "_known",
        "clocks",
        "count",
        "current",
        "made",
        "name",
        "phases",
        "published",
        "waited",
    )

    def __init__(
        self,
        clocks: Clocks,
        count: int,
        name: Any,
        found: Found,
        made: tuple[int, int, Any] | None = None,
        here: Callable[[int], bool] = lambda thread: True,
    ) -> None:
        """`here` tells whether a thread is of the block that holds it."""
        self.clocks, self.count, self.name = clocks, count, name
        self.made = made  # component, epoch and site of who made it
        self.published = made is None  # to copies and to peers, by a fence
        self.waited = -1  # the latest phase that somebody has waited for
        self.current = 0
        self.phases = [Phase()]
        self._known: dict[int, int] = {}
        self._found, self._here = found, here

    # ---- meaning ---------------------------------------------------------------------------

    def phase(self, number: int) -> Phase:
        """A phase by number; later ones are made as they are needed."""
        while number >= len(self.phases):
            self.phases.append(Phase())
        return self.phases[number]

    def meaning(self, thread: int) -> int:
        """How many phases have completed for all that a thread can know."""
        h = self._known.get(thread, 0)
        seen = self.clocks.rows[thread, SEEN]
        while h < self.current:
            phase = self.phases[h]
            if (seen[phase.components] < phase.epochs).any():
                break
            h += 1
        self._known[thread] = h
        return h

    def meanings(self, threads: np.ndarray) -> list[int]:
        """The same of several threads."""
        known = self._known
        held = [known.get(thread, 0) for thread in threads.tolist()]
        h = held[0]
        if held.count(h) < len(held):
            return [self.meaning(thread) for thread in threads.tolist()]
        seen = self.clocks.rows[threads, SEEN]
        while h < self.current:
            phase = self.phases[h]
            short = (seen[:, phase.components] < phase.epochs).any(axis=1)
            if short.all():
                break
            if short.any():
                return [self.meaning(thread) for thread in threads.tolist()]
            h += 1
        known.update(dict.fromkeys(threads.tolist(), h))
        return [h] * len(held)

    @property
    def used(self) -> bool:
        """Whether anybody has come to it, or waited."""
        return bool(self._known)

    def _meet(self, thread: int, site: Any) -> None:
        """Who uses the barrier for the first time must know that it has been made."""
        if self.made is not None and thread not in self._known:
            component, epoch, where = self.made
            if self.clocks.rows[thread, SEEN, component] < epoch:
                self._report(Kind.UNMADE, site, where, {})

    def publish(self, component: int) -> None:
        """Who made it has published that, if this is who."""
        if self.made is not None and self.made[0] == component:
            self.published = True

    def check_published(self, site: Any) -> None:
        """A copy or a peer comes to the barrier: a fence must have published it."""
        if not self.published:
            assert self.made is not None
            self._report(Kind.UNMADE, site, self.made[2], {"fence": True})
            self.published = True

    # ---- contributions ---------------------------------------------------------------------

    def arrive(
        self, thread: int, count: int, site: Any, also: int | None = None, ordered: bool = True
    ) -> None:
        """`count` arrivals by a thread (of a warp whose lanes are two threads, `also`). Without
        `ordered` they publish nothing but that they came, and what agents have done."""
        self.come(self.intend(thread, count, site, also, ordered))

    def arrive_each(self, threads: np.ndarray, count: int, site: Any, ordered: bool = True) -> None:
        """`count` arrivals by each of several threads."""
        for thread in threads.tolist():
            self._meet(thread, site)
        meant = self.meanings(threads)
        h, total = meant[0], count * len(meant)
        late = h < self.current or self.phase(h).arrivals + total > self.count
        if late or meant.count(h) < len(meant):
            for thread in threads.tolist():
                self.arrive(thread, count, site, None, ordered)
            return
        own = self.clocks.own[threads]
        made = list(zip(own.tolist(), self.clocks.rows[threads, SEEN, own].tolist(), strict=True))
        known = self.clocks.release(threads)
        if not ordered:
            known = self.clocks.unordered(known)
        far = ordered and not self._here(int(threads[0]))
        self.come(Arrival(h, total, made, known, site, far))

    def intend(
        self, thread: int, count: int, site: Any, also: int | None = None, ordered: bool = True
    ) -> Arrival:
        """Arrivals that mean a phase now, and may come later."""
        threads = np.array([thread] if also is None else [thread, also])
        self._meet(thread, site)
        h = self.meaning(thread)
        made = [(int(self.clocks.own[t]), self.clocks.epoch(t)) for t in threads]
        known = self.clocks.release(threads)
        if not ordered:
            known = self.clocks.unordered(known)
        return Arrival(h, count, made, known, site, ordered and not self._here(thread))

    def come(self, arrival: Arrival) -> None:
        """Arrivals come."""
        h, count, site = arrival.phase, arrival.arrivals, arrival.site
        if h < self.current:
            late = {"phase": h, "current": self.current}
            self._report(Kind.ARRIVAL, site, self._last_site(h), late)
            return
        phase = self.phase(h)
        if phase.arrivals + count > self.count:
            facts = {"phase": h, "count": self.count, "came": phase.arrivals, "more": count}
            self._report(Kind.MANY_ARRIVALS, site, self._last_site(h), facts)
            return
        phase.arrivals += count
        for component, epoch in arrival.made:
            phase.contribute(component, epoch)
        phase.sites.append(site)
        phase.learn(arrival.known, arrival.far)
        phase.arrived = joined(phase.arrived, arrival.known[SEEN])
        self._settle()

    def expect(self, thread: int, size: int, site: Any) -> None:
        """A thread announces bytes of the phase that it means."""
        self._meet(thread, site)
        h = self.meaning(thread)
        if h < self.current:
            late = {"phase": h, "current": self.current}
            self._report(Kind.ARRIVAL, site, self._last_site(h), late)
            return
        phase = self.phase(h)
        phase.expected += size
        phase.announced.append((int(self.clocks.own[thread]), self.clocks.epoch(thread), site))

    def issue(self, thread: int, size: int, site: Any) -> int:
        """Bytes are on their way to the phase that the issuer means; gives that phase."""
        self._meet(thread, site)
        h = self.meaning(thread)
        phase = self.phase(h)
        phase.carried.append(site)
        if h < self.current:
            other = phase.announced[0][2] if phase.announced else self._last_site(h)
            facts = {"phase": h, "size": size, "current": self.current}
            self._report(Kind.BYTES, site, other, facts)
        else:
            phase.issued += size
        return h

    def land(
        self, h: int, size: int, agent: tuple[int, int], issued: np.ndarray, sender: int | None
    ) -> None:
        """Bytes of phase h have come, brought by an agent; `issued` is what it publishes of what
        its issuer knew, `sender` the thread that has sent them (None: the copy engine brings
        them)."""
        if h < self.current:
            return  # found when they were issued, or when their phase completed
        phase = self.phase(h)
        phase.landed += size
        phase.contribute(*agent)
        known = np.zeros((ROWS, max(issued.shape[1], agent[0] + 1)), np.int32)
        known[:, : issued.shape[1]] = issued
        known[: SEEN + 1, agent[0]] = agent[1]
        phase.learn(known, sender is not None and not self._here(sender))
        if phase.arrivals == self.count and phase.landed > phase.expected:
            self._bytes_wrong(h)
        self._settle()

    def _bytes_wrong(self, h: int) -> None:
        """Report bytes that do not fit, and go on as if they did."""
        phase = self.phases[h]
        site = phase.carried[-1] if phase.carried else self._last_site(h)
        other = phase.announced[0][2] if phase.announced else self._last_site(h)
        facts = {"phase": h, "expected": phase.expected, "issued": phase.issued}
        self._report(Kind.BYTES, site, other, facts)
        phase.expected = phase.landed

    def _settle(self) -> None:
        """Complete the current phase, and those after it, once nothing is missing."""
        while True:
            phase = self.phase(self.current)
            if phase.arrivals < self.count:
                return
            if phase.landed > phase.expected:
                self._bytes_wrong(self.current)
            if phase.landed < phase.expected:
                return
            if phase.issued > phase.expected:
                self._bytes_wrong(self.current)
            self._complete(phase)

    def _complete(self, phase: Phase) -> None:
        assert phase.known is not None
        assert phase.arrived is not None
        number = self.current
        for component, epoch, site in phase.announced:
            if entry(phase.arrived, component) < epoch:
                self._report(Kind.EXPECT, site, phase.sites[-1], {"phase": number})
        seen = phase.known[SEEN]
        for components, epochs, site in phase.before:
            if (entries(seen, components) < epochs).any():
                self._report(Kind.WAIT, site, phase.sites[-1], {"phase": number - 1})
                break
        phase.components = np.array(phase.components, np.intp)
        phase.epochs = np.array(phase.epochs, np.int32)
        self.current += 1

    def _last_site(self, h: int) -> Any:
        sites = self.phases[h].sites
        return sites[-1] if sites else None

    # ---- waits -----------------------------------------------------------------------------

    def means(self, threads: np.ndarray, parity: int, site: Any) -> list[int]:
        """The phase that a wait for a parity means, of each thread: of the last one that it knows
        and the one after it; -1 is the one before the first, which has completed."""
        for thread in threads.tolist():
            self._meet(thread, site)
        return [h - 1 if (h - 1) & 1 == parity else h for h in self.meanings(threads)]

    def begin_wait(self, threads: np.ndarray, number: int, site: Any) -> None:
        """Threads begin to wait for a phase."""
        if number + 1 < self.current:
            facts = {"phase": number, "current": self.current}
            for _ in threads:
                self._report(Kind.WAIT, site, self._last_site(number + 1), facts)
            return
        own = self.clocks.own[threads]
        mark = (own, self.clocks.rows[threads, SEEN, own], site)
        self.phase(number + 1).before.append(mark)

    def take(self, taker: Any, number: int, site: Any) -> None:
        """The item of a phase belongs to somebody, from here on to nobody else."""
        phase = self.phase(number)
        if phase.taken is None:
            phase.taken = (taker, site)
        elif phase.taken[0] is not taker:
            self._report(Kind.TAKEN, site, phase.taken[1], {"phase": number})

    def completed(self, number: int) -> bool:
        """Whether a phase has completed."""
        return number < self.current

    def acquire(self, threads: np.ndarray, number: int, near: bool = False) -> None:
        """Threads have waited for a phase: they know what its contributions knew; `near`: a wait
        that reaches the block only sees that those of peers are over."""
        if number >= 0:
            phase = self.phases[number]
            known = phase.known
            assert known is not None
            if near and phase.near is not None:
                self.clocks.see(threads, known[SEEN])
                known = phase.near
            self.clocks.acquire(threads, known)
            self.waited = max(self.waited, number)

    # ---- the end ---------------------------------------------------------------------------

    def close(self) -> None:
        """No more will come: the barrier must not be inside a phase."""
        phase = self.phase(self.current)
        if phase.arrivals or phase.expected or phase.landed:
            site = phase.sites[-1] if phase.sites else None
            if site is None and phase.announced:
                site = phase.announced[0][2]
            facts = {
                "phase": self.current,
                "came": phase.arrivals,
                "count": self.count,
                "bytes": phase.expected - phase.landed,
            }
            self._report(Kind.LEFT, site, self.made and self.made[2], facts)
        over = self.phases[: self.current]
        if any(phase.taken for phase in over):
            for number, phase in enumerate(over):
                if phase.taken is None:
                    self._report(Kind.TAKEN, self._last_site(number), None, {"phase": number})
                    return

    def unknown(self, cause: np.ndarray) -> Any:
        """The site of an arrival that one who knows so much does not know to be over; None: all
        are. Somebody has waited for its phase, or it happens before."""
        for phase in self.phases[self.waited + 1 :]:
            for component, epoch in zip(phase.components, phase.epochs, strict=True):
                if component in self.clocks.threads and entry(cause, component) < epoch:
                    return phase.sites[-1]
        return None

    def live(self) -> list[int]:
        """Components that phases name which some thread does not know yet."""
        found: list[int] = []
        first = max(self.current - _REMEMBERED, min(self._known.values(), default=0), 0)
        for phase in self.phases[first:]:
            found += list(phase.components)
        return found

    def _report(self, kind: Kind, site: Any, other: Any, facts: dict[str, Any]) -> None:
        self._found(Problem(kind, site, other, self.name, facts))

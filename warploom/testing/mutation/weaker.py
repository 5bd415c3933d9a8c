"""Operations that order less than they do, and are otherwise as they were: what stands in for a
mutant that survives is found by taking away the order of another operation alone.

A dropped wait changes which phase comes next; one that only keeps to itself what it has learnt does
not. Knows the clocks of the engine of order, and no kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from warploom.ir.op import Op
from warploom.ir.ops import flagged, flags, global_memory, remote, sync
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.order.clocks import SEEN
from warploom.sim.order.engine import Engine, Flight
from warploom.sim.order.phases import Book
from warploom.sim.rules.remote import Sent


class Less(Enum):
    """What an operation does not do; the value says it in a report."""

    HEARS = "where nobody learns from `{}`"
    TELLS = "where `{}` tells of the first warp only"


# What learns from others besides waits and barriers of a family.
_HEARERS = (flags.Poll, flagged.Take, global_memory.Atomic, sync.Barrier, sync.WarpSync)
_FAMILIES = {"mbarrier.wait", "mbarrier.test", "cluster.sync", "wgmma.wait_group", "wgmma.drain"}
_FAMILIES |= {"tma.wait", "cp_async.wait"}


@dataclass(frozen=True, slots=True)
class Weaker:
    """Operations of a kernel that do less."""

    ops: tuple[Op, ...]
    less: Less

    def step(self, step: Step) -> Step:
        """The step of one of them, made to do less."""
        if self.less is Less.TELLS:
            return _tells_less(step)
        return _keeps(step)


def ways(op: Op) -> tuple[Less, ...]:
    """How an operation could order less than it does and stand for a mutant elsewhere."""
    if isinstance(op, remote.SendGroups):
        return (Less.TELLS,)
    return (Less.HEARS,) * (isinstance(op, _HEARERS) or op.OPCODE in _FAMILIES)


class _Held:
    """What the threads of an actor know before something."""

    def __init__(self, m: Batch) -> None:
        booking = m.state.booking
        self.engine: Engine = booking.engine
        self.threads = booking.warps(m.actor).all
        self._known = self.engine.clocks.rows[self.threads]
        self._common = self.engine.clocks.common[self.threads]
        self._learnt = len(self.engine.learnt)
        self._heard = {t: len(self.engine.heard.get(t, ())) for t in self.threads.tolist()}
        self._waited: list[tuple[Book, int]] = [(b, b.waited) for b in self.engine.books.values()]

    def back(self) -> None:
        """Let them know no more than then, but that what they have waited for is over."""
        self.engine.clocks.forget(self.threads, self._known)
        self.engine.clocks.common[self.threads] = self._common
        del self.engine.learnt[self._learnt :]
        for thread, count in self._heard.items():
            del self.engine.heard.get(thread, [])[count:]
        for book, waited in self._waited:
            book.waited = waited


def _keeps(step: Step) -> Step:
    """A step behind which its threads know nothing more."""
    if not isinstance(step, Resumable):

        def at_once(s: Slots, m: Batch) -> None:
            held = _Held(m)
            step(s, m)
            held.back()

        return at_once
    resumed: Callable[[Slots, Batch], Run] = step.start

    def start(s: Slots, m: Batch) -> Run:
        run = resumed(s, m)
        while True:
            held = _Held(m)
            try:
                wait = next(run)
            except StopIteration:
                held.back()
                return
            yield wait

    return Resumable(start)


def _tells_less(step: Step) -> Step:
    """Stores to peers that carry what the first warp has read, and not what the others have."""

    def run(s: Slots, m: Batch) -> None:
        engine, loads = m.state.booking.engine, m.state.cluster.resident.loads
        old = len(loads)
        step(s, m)
        for load in loads[old:]:
            if isinstance(load, Sent) and load.warp:
                agent = load.booked.agent
                flight = engine.flying[agent]
                known = np.zeros_like(flight.known)
                known[SEEN] = flight.known[SEEN]
                engine.flying[agent] = Flight(known, flight.sender)

    return run


__all__ = ["Less", "Weaker", "ways"]

"""Events of descriptors that a kernel makes. Making one is a write, and each copy by it reads it
until it is done; besides, somebody has acquired it before the copy, who happens-before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warploom.ir.ops import descriptor, tma
from warploom.ir.ops.descriptor import WORDS
from warploom.sim import order_faults
from warploom.sim.booking import Piece, Site
from warploom.sim.cells import Touched
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.order.clocks import CAUSE, entry
from warploom.sim.order.engine import Agent
from warploom.sim.order.history import Does
from warploom.sim.order_table import before, orders, who_executes

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_BYTES = 8 * WORDS


class Known:
    """One descriptor as it was made last: where, and the agents that have acquired it since."""

    __slots__ = ("by", "made")

    def __init__(self, made: Site) -> None:
        self.made = made
        self.by: list[Agent] = []


def _cells(piece: Piece, row: int) -> slice:
    first = piece.start + _BYTES * row
    return slice(first // piece.unit, -(-(first + _BYTES) // piece.unit))


def _place(s: Slots, m: Batch, room: int, number: int) -> tuple[Piece, int]:
    piece = m.state.booking.tensor(s[room])
    assert piece is not None, "a kernel that makes descriptors writes them"
    return piece, int(s[number])


def _by_warp(m: Batch, who: str) -> tuple[int, Agent]:
    """The thread that stands for the warp, which meets, and its present epoch."""
    booking = m.state.booking
    booking.engine.warp_sync(booking.warps(m.actor))
    thread = int(booking.threads(m.actor, who)[0])
    clocks = booking.engine.clocks
    return thread, (int(clocks.own[thread]), clocks.epoch(thread))


@orders(descriptor.Write)
def write(t: Translator, op: descriptor.Write, step: Step) -> Step:
    room, number, address, who = *map(t.slot, (op.room, op.number, op.address)), who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        booking, site = m.state.booking, Site.here(m, op)
        piece, row = _place(s, m, room, number)
        thread, agent = _by_warp(m, who)
        shared, first = booking.shared(m.state), m.state.byte_at(s[address])
        cells = slice(first // shared.unit, -(-(first + _BYTES) // shared.unit))
        booking.touch(m, op, shared, Does.WRITE, who, [Touched(cells)])
        # Released to the copy engine: what follows needs no other fence than the acquire.
        engine = booking.engine
        engine.copy_access(piece.history, _cells(piece, row), Does.WRITE, agent, thread, site)
        booking.descriptors[piece.history, row] = Known(site)
        engine.warp_sync(booking.warps(m.actor))  # all lanes make the copy to its place

    return before(step, event)


@orders(descriptor.Acquire)
def acquire(t: Translator, op: descriptor.Acquire, step: Step) -> Step:
    room, number, who = t.slot(op.room), t.slot(op.number), who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        booking, site = m.state.booking, Site.here(m, op)
        piece, row = _place(s, m, room, number)
        for thread in map(int, booking.threads(m.actor, who)):
            clocks = booking.engine.clocks
            agent = int(clocks.own[thread]), clocks.epoch(thread)
            cells = _cells(piece, row)
            booking.engine.copy_access(piece.history, cells, Does.READ, agent, thread, site)
            known = booking.descriptors.get((piece.history, row))
            if known is not None and all(own != agent[0] for own, _ in known.by):
                known.by.append(agent)

    return before(step, event)


class Reads:
    """What a copy by a descriptor does to it; false where the launch has made it."""

    def __init__(self, t: Translator, op: Any) -> None:
        self.op = op
        self.room, self.number = -1, -1
        if isinstance(op, tma.LoadBox | tma.StoreBox):
            self.room, self.number = t.optional(op.room), t.optional(op.number)

    def __bool__(self) -> bool:
        return self.room >= 0

    def book(self, s: Slots, m: Batch, thread: int, agent: Agent | None) -> None:
        """A copy begins: by its own agent, or in the bulk group of a thread (None)."""
        booking, site = m.state.booking, Site.here(m, self.op)
        engine = booking.engine
        piece, row = _place(s, m, self.room, self.number)
        known = booking.descriptors.get((piece.history, row))
        if known is not None:
            clock = engine.clocks.rows[thread][CAUSE]
            if not any(entry(clock, own) >= epoch for own, epoch in known.by):
                order_faults.not_acquired(site, known.made)
        cells = _cells(piece, row)
        if agent is None:
            engine.store_reads(thread, piece.history, cells, site)
        else:
            engine.copy_access(piece.history, cells, Does.READ, agent, thread, site)

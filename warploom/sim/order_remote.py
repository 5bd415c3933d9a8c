"""Events of accesses to the shared memory of peers: ordinary ones, stores that are done later,
copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warploom.ir.ops import remote
from warploom.sim.booking import ALL, BookedLoad, Site
from warploom.sim.cells import chunk_cells, element_cells
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.order.history import Does
from warploom.sim.order_accesses import book_load, cells_of
from warploom.sim.order_table import before, orders, who_executes
from warploom.sim.rules.remote import Ends, Remote, Sent

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


@orders(remote.LoadGroups, remote.StoreGroups)
def access_peer(t: Translator, op: Any, step: Step) -> Step:
    place, who = Remote(t, op).place, who_executes(t)
    does = Does.WRITE if isinstance(op, remote.StoreGroups) else Does.READ

    def event(s: Slots, m: Batch) -> None:
        found = place(s, m)
        if found is not None:
            booking, (block, at) = m.state.booking, found
            piece = booking.shared(block)
            booking.touch(m, op, piece, does, who, cells_of(m, at, piece, who))

    return before(step, event)


@orders(remote.SendGroups)
def send(t: Translator, op: remote.SendGroups, step: Step) -> Step:
    """Each warp is the issuer of what its lanes send."""
    who = who_executes(t)

    def run(s: Slots, m: Batch) -> None:
        booking, loads = m.state.booking, m.state.cluster.resident.loads
        old = len(loads)
        step(s, m)
        warps, engine, site = booking.warps(m.actor), booking.engine, Site.here(m, op)
        for load in loads[old:]:
            assert isinstance(load, Sent)
            thread = int((warps.lanes if who == ALL else warps.alone)[load.warp])
            piece = booking.shared(load.block)
            agent = engine.begin_send(thread)
            cells = element_cells(load.numbers, load.memory, piece)
            engine.copy_access(piece.history, cells, Does.WRITE, agent, thread, site, generic=True)
            book = booking.book(load.barrier)
            book.check_published(site)
            phase = book.issue(thread, load.size, site)
            load.booked = BookedLoad(booking, load, agent, phase)

    return run


@orders(remote.CopyBytes)
def copy(t: Translator, op: remote.CopyBytes, step: Step) -> Step:
    """A copy reads this block's memory and writes the peer's until its bytes have counted there."""
    ends, who = Ends(t, op), who_executes(t)

    def run(s: Slots, m: Batch) -> None:
        booking, loads = m.state.booking, m.state.cluster.resident.loads
        old = len(loads)
        step(s, m)
        found = ends.places(s, m) if len(loads) > old else None
        if found is None:
            return
        _, here, there = found
        threads, own = booking.threads(m.actor, who), booking.shared(m.state)
        for number in range(old, len(loads)):
            thread = int(threads[(number - old) % len(threads)])
            agent = book_load(m, op, loads[number], thread, there, peer=True)
            cells, site = chunk_cells(here, own), Site.here(m, op)
            booking.engine.copy_access(own.history, cells, Does.READ, agent, thread, site)

    return run

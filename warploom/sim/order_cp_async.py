"""Events of copies that threads begin for themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.ops import cp_async
from warploom.sim.booking import ALL, Site
from warploom.sim.cells import cells_by_warp
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.order.history import Does
from warploom.sim.order_table import after, before, orders, who_executes
from warploom.sim.rules.cp_async import Ends
from warploom.sim.rules.mbarrier import barrier_at

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


@orders(cp_async.CopyGroups)
def copy_groups(t: Translator, op: cp_async.CopyGroups, step: Step) -> Step:
    ends, who = Ends(t, op), who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        booking, site = m.state.booking, Site.here(m, op)
        engine = booking.engine
        source, target = ends.source(s, m), ends.target(s, m)
        piece, read = booking.shared(m.state), booking.tensor(source.memory)
        written = cells_by_warp(target, piece, alone=who != ALL)
        held = None if read is None else cells_by_warp(source, read, alone=who != ALL)
        for number, thread in enumerate(booking.warps(m.actor).lanes):
            own = written[number % len(written)]
            engine.thread_copy(int(thread), piece.history, own.cells, Does.WRITE, site, own.lanes)
            if read is not None and held is not None:
                own = held[number % len(held)]
                engine.thread_copy(int(thread), read.history, own.cells, Does.READ, site, own.lanes)

    return before(step, event)


@orders(cp_async.Commit)
def commit(t: Translator, op: cp_async.Commit, step: Step) -> Step:
    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        for thread in booking.warps(m.actor).lanes:
            booking.engine.copies(int(thread)).close()

    return before(step, event)


@orders(cp_async.Wait)
def wait(t: Translator, op: cp_async.Wait, step: Step) -> Step:
    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        for thread in booking.warps(m.actor).lanes:
            booking.engine.wait_copies(int(thread), op.pending)

    return after(step, event)


@orders(cp_async.Arrive)
def arrive(t: Translator, op: cp_async.Arrive, step: Step) -> Step:
    """The arrivals mean their phase now and come when the copies are done."""
    a = t.slot(op.barrier)

    def run(s: Slots, m: Batch) -> None:
        barrier, loads = barrier_at(m, op, s[a]), m.state.cluster.resident.loads
        step(s, m)
        if barrier is None:
            return
        booking, site = m.state.booking, Site.here(m, op)
        begun = m.actor.copies.begun()
        book = booking.book(barrier)
        warps = booking.warps(m.actor)
        coming = [
            booking.engine.arrive_behind(int(thread), int(alone), book, 32, site)
            for thread, alone in zip(warps.lanes, warps.alone, strict=True)
        ]

        def land() -> None:
            for copy in begun:
                copy.finish()
            for arrival in coming:
                book.come(arrival)
            booking.follow(barrier)

        loads[-1].arrive = land

    return run

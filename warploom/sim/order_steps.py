"""Events of actors and barriers: roles, warp syncs, fences, named barriers, mbarriers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warploom.ir.op import Op
from warploom.ir.ops import cluster, control, mbarrier, roles, sync
from warploom.sim.actors import Actor, Helper
from warploom.sim.booking import Site
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.order_table import after, before, orders, who_executes
from warploom.sim.rules.cluster import at_peer
from warploom.sim.rules.mbarrier import BarrierWait, barrier_at, parity_of

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

# ---- actors ------------------------------------------------------------------------------------


@orders(roles.Split)
def split(t: Translator, op: roles.Split, step: Step) -> Step:
    first = dict(zip(op.names, op.first, strict=True))

    def run(s: Slots, m: Batch) -> None:
        step(s, m)
        for actor in m.state.cluster.scheduler.actors:
            if actor.role and actor.block is m.state:
                at = first[actor.role] + actor.replica * actor.warps
                m.state.booking.split(m.actor, actor, at)

    return run


@orders(control.OneThread, sync.WarpSync)
def warp_sync(t: Translator, op: Op, step: Step | None) -> Step:
    """The lanes of each warp meet, also before one of them goes on alone."""

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        booking.engine.warp_sync(booking.warps(m.actor))

    return before(step, event)


@orders(sync.Agree)
def agree(t: Translator, op: sync.Agree, step: Step) -> Step:
    return before(step, _meet)


def _meet(s: Slots, m: Batch) -> None:
    """All warps of a role, or of a block without roles, meet."""
    booking = m.state.booking
    booking.engine.meet(booking.warps(m.actor))


@orders(sync.Fence)
def fence(t: Translator, op: sync.Fence, step: Step | None) -> Step:
    who = who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        scope = sync.SCOPES.index(op.scope)
        booking.engine.fence_order(booking.threads(m.actor, who), scope)

    return before(step, event)


@orders(sync.FenceAsync)
def fence_async(t: Translator, op: sync.FenceAsync, step: Step | None) -> Step:
    who = who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        booking.engine.fence(booking.threads(m.actor, who), op.space)

    return before(step, event)


# ---- named barriers ----------------------------------------------------------------------------


@orders(sync.Barrier)
def barrier(t: Translator, op: sync.Barrier, step: Step) -> Step:
    if op.threads == 32 * t.warps:
        return before(step, _meet)
    assert isinstance(step, Resumable)
    resumed = step.start

    def start(s: Slots, m: Batch) -> Run:
        number = op.id + (m.actor.replica if op.per_replica else 0)
        book, phase = _come(m, op, number, op.threads)
        booking = m.state.booking
        booking.engine.begin_meeting(book, booking.warps(m.actor), Site.here(m, op))
        yield from resumed(s, m)
        if book.completed(phase):
            book.acquire(booking.warps(m.actor).all, phase)

    return Resumable(start)


@orders(sync.Arrive)
def arrive_named(t: Translator, op: sync.Arrive, step: Step) -> Step:
    def event(s: Slots, m: Batch) -> None:
        _come(m, op, op.id, op.threads)

    return before(step, event)


def _come(m: Batch, op: Op, number: int, threads: int) -> Any:
    """All threads of an actor come to a named barrier; its book, and the phase that they mean."""
    booking = m.state.booking
    engine, warps = booking.engine, booking.warps(m.actor)
    key = (m.state, number)
    book = engine.books.get(key)
    if book is None:
        book = engine.make(key, threads, f"barrier {number}")
    phase = book.meaning(int(warps.all[0]))
    engine.arrive_all(book, warps, 32, Site.here(m, op))
    return book, phase


# ---- mbarriers ---------------------------------------------------------------------------------


@orders(mbarrier.Init)
def init(t: Translator, op: mbarrier.Init, step: Step) -> Step:
    a, who = t.slot(op.barrier), who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        byte = m.state.byte_at(s[a])
        m.state.booking.make(m, op, m.state.barriers[byte], byte, who)

    return after(step, event)


@orders(sync.FenceBarrierInit)
def fence_barrier_init(t: Translator, op: sync.FenceBarrierInit, step: Step | None) -> Step:
    who = who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        booking.engine.publish(booking.threads(m.actor, who))

    return before(step, event)


@orders(mbarrier.Arrive)
def arrive(t: Translator, op: mbarrier.Arrive, step: Step) -> Step:
    a, who = t.slot(op.barrier), who_executes(t)

    def run(s: Slots, m: Batch) -> None:
        found = barrier_at(m, op, s[a])
        if found is not None:
            m.state.booking.arrive(m, op, found, who, op.count)

    return run


@orders(mbarrier.Expect)
def expect(t: Translator, op: mbarrier.Expect, step: Step) -> Step:
    a, who = t.slot(op.barrier), who_executes(t)

    def run(s: Slots, m: Batch) -> None:
        found = barrier_at(m, op, s[a])
        if found is not None:
            m.state.booking.expect(m, op, found, who, op.bytes)

    return run


class MeantWait(BarrierWait):
    """A wait for the phase that it means."""

    __slots__ = ("book", "number")

    def ready(self) -> bool:
        return self.book.completed(self.number)

    def words(self) -> str:
        if self.number == self.barrier.phase:
            return super().words()
        return f"phase {self.number} of {super().words()}"

    def came(self, waiter: Actor) -> list[Helper]:
        """Who has arrived in the phase that runs."""
        if not self.barrier.pending:
            return super().came(waiter)
        phase = self.book.phase(self.book.current)
        return list(dict.fromkeys(Helper(site.m.actor, site.op) for site in phase.sites))


@orders(mbarrier.Wait)
def wait(t: Translator, op: mbarrier.Wait, step: Step) -> Step:
    a, p, who = t.slot(op.barrier), t.slot(op.parity), who_executes(t)

    def start(s: Slots, m: Batch) -> Run:
        parity = parity_of(m, op, int(s[p]))
        found = barrier_at(m, op, s[a])
        if found is None:
            return
        if m.state.shuffles:
            yield None
        booking = m.state.booking
        book, threads = booking.book(found), booking.threads(m.actor, who)
        number = booking.engine.begin_wait(book, threads, parity, Site.here(m, op))
        if not book.completed(number):
            waits = MeantWait(m, op, found, s[a], parity)
            waits.book, waits.number = book, number
            yield waits
        book.acquire(threads, number, op.scope == "block")
        if op.takes:
            book.take(m.actor, number, Site.here(m, op))
        booking.waited[m.actor] = Site.here(m, op)

    return Resumable(start)


@orders(mbarrier.Test)
def test(t: Translator, op: mbarrier.Test, step: Step) -> Step:
    """A yes is a wait; a no says nothing."""
    a, p, d, who = t.slot(op.barrier), t.slot(op.parity), t.slot(op.result), who_executes(t)

    def start(s: Slots, m: Batch) -> Run:
        yield None
        found = barrier_at(m, op, s[a])
        s[d] = False
        if found is None:
            return
        booking, parity = m.state.booking, parity_of(m, op, int(s[p]))
        book, threads = booking.book(found), booking.threads(m.actor, who)
        number = max(book.means(threads, parity, Site.here(m, op)))
        if book.completed(number):
            s[d] = True
            booking.engine.begin_wait(book, threads, parity, Site.here(m, op))
            book.acquire(threads, number, op.scope == "block")

    return Resumable(start)


# ---- clusters ----------------------------------------------------------------------------------


@orders(cluster.Arrive)
def arrive_at_peer(t: Translator, op: cluster.Arrive, step: Step) -> Step:
    a, who = t.slot(op.barrier), who_executes(t)

    def run(s: Slots, m: Batch) -> None:
        block, address = at_peer(m, op, int(s[a]))
        found = None if block is None else barrier_at(m, op, address, block)
        if found is not None:
            m.state.booking.book(found).check_published(Site.here(m, op))
            m.state.booking.arrive(m, op, found, who, op.count, op.ordered)

    return run


@orders(cluster.Sync)
def cluster_sync(t: Translator, op: cluster.Sync, step: Resumable) -> Step:
    resumed = step.start

    def start(s: Slots, m: Batch) -> Run:
        booking, cluster = m.state.booking, m.state.cluster
        opening = (cluster, cluster.gathering.generation)
        booking.come(m.actor, opening, op.ordered, Site.here(m, op))
        yield from resumed(s, m)
        booking.gathered(m.actor, opening)

    return Resumable(start)

"""Synchronisation. One operation runs for all warps of a role before the next one starts, so that
order inside a role is the program's; its own barrier is counted and moves nothing. A barrier of
more threads is one where several roles meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.op import Op
from warploom.ir.ops import sync
from warploom.sim import sync_faults
from warploom.sim.actors import Actor, Helper
from warploom.sim.barriers import NamedBarrier
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.registry import simulates

if TYPE_CHECKING:
    from warploom.sim.block import BlockState
    from warploom.sim.translate import Translator


@simulates(sync.Barrier)
def barrier(t: Translator, op: sync.Barrier) -> Step:
    own = 32 * t.warps
    if not t.waits:

        def step(s: Slots, m: Batch) -> None:
            m.barriers[0] += m.count

        return step
    if op.threads != own:
        return _meeting(op, own)

    def alone(s: Slots, m: Batch) -> None:
        m.barriers[0] += 1
        number = op.id + (m.actor.replica if op.per_replica else 0)
        named = m.state.named.setdefault(number, NamedBarrier())
        if m.actor.role:
            named.users.add(m.actor.name)
            if len(named.users) > 1:
                sync_faults.mixed_barrier(m, op, number, op.threads, sorted(named.users))

    return alone


@simulates(sync.Agree)
def agree(t: Translator, op: sync.Agree) -> Step:
    """All warps of a role see the same here."""
    a, d = t.slot(op.condition), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = s[a]
        m.barriers[0] += 1

    return step


class AtNamed:
    """What waits at the named barrier of a `number` have in common."""

    __slots__ = ("number",)

    def came(self, waiter: Actor) -> list[Helper]:
        """Who has come, as far as it is known."""
        return []

    def helpers(self, waiter: Actor) -> list[Helper]:
        """Whose text comes to the barrier."""
        block: BlockState = waiter.block
        return block.helpers(block.signallers.named.get(self.number, []))

    def advice(self) -> str:
        """What to do where nobody else comes."""
        return "let the barrier count the threads of all roles that come, and no others"


class Meeting(AtNamed):
    """An actor that waits at a named barrier for other roles."""

    __slots__ = ("barrier", "generation", "op")

    def __init__(self, op: Op, number: int, barrier: NamedBarrier) -> None:
        self.op, self.number, self.barrier = op, number, barrier
        self.generation = barrier.generation

    def ready(self) -> bool:
        return self.barrier.generation != self.generation

    def words(self) -> str:
        barrier = self.barrier
        return f"barrier {self.number}: {barrier.arrived} of {barrier.threads} threads have come"

    def came(self, waiter: Actor) -> list[Helper]:
        """Who waits there, or has only arrived, as far as it is known."""
        waits = [(a, a.wait) for a in waiter.block.cluster.scheduler.actors]
        there = [(a, w) for a, w in waits if isinstance(w, Meeting) and w.barrier is self.barrier]
        return [Helper(a, w.op) for a, w in there]


def _meeting(op: sync.Barrier, own: int) -> Step:
    def start(s: Slots, m: Batch) -> Run:
        m.barriers[0] += 1
        number = op.id + (m.actor.replica if op.per_replica else 0)
        named = m.state.named.setdefault(number, NamedBarrier())
        if _overfull(m, op, number, named, own):
            return
        wait = Meeting(op, number, named)
        named.users.add(m.actor.name)
        named.arrive(own, op.threads)
        if not wait.ready():
            yield wait

    return Resumable(start)


@simulates(sync.Arrive)
def arrive(t: Translator, op: sync.Arrive) -> Step | None:
    own = 32 * t.warps
    if not t.waits:
        return None

    def step(s: Slots, m: Batch) -> None:
        named = m.state.named.setdefault(op.id, NamedBarrier())
        if not _overfull(m, op, op.id, named, own):
            named.users.add(m.actor.name)
            named.arrive(own, op.threads)

    return step


def _overfull(
    m: Batch, op: sync.Barrier | sync.Arrive, number: int, named: NamedBarrier, own: int
) -> bool:
    """Whether more threads come, or others are counted, than the barrier still awaits: a
    finding."""
    others = named.arrived and named.threads != op.threads
    if not others and named.arrived + own <= op.threads:
        return False
    users = sorted({*named.users, m.actor.name})
    sync_faults.mixed_barrier(m, op, number, op.threads, users)
    return True


@simulates(sync.WarpSync)
def warp_sync(t: Translator, op: sync.WarpSync) -> None:
    """Lanes of a warp never run apart here."""


@simulates(sync.FenceAsync)
def fence_async(t: Translator, op: sync.FenceAsync) -> None:
    """Accesses take place in program order here; checked mode asks for the fence (`order`)."""


@simulates(sync.Fence)
def fence(t: Translator, op: sync.Fence) -> None:
    """Accesses take place in program order here, and all see them at once."""


@simulates(sync.FenceBarrierInit)
def fence_barrier_init(t: Translator, op: sync.FenceBarrierInit) -> None:
    """A barrier is seen by all once it is made."""

"""mbarriers by their address in shared memory. A wait is where an actor lets others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.op import Op
from warploom.ir.ops import mbarrier
from warploom.sim import sync_faults
from warploom.sim.actors import Actor, Helper
from warploom.sim.barriers import Mbarrier
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.registry import simulates
from warploom.sim.signallers import ARRIVALS, COPIES

if TYPE_CHECKING:
    from warploom.sim.block import BlockState
    from warploom.sim.translate import Translator


def barrier_at(m: Batch, op: Op, address: int, block: BlockState | None = None) -> Mbarrier | None:
    """The barrier at an address of a block, the actor's own unless given; none there is a
    finding."""
    where, byte = block or m.state, m.state.byte_at(address)
    found = where.barriers.get(byte)
    if found is None:
        sync_faults.no_barrier(m, op, byte, where)
    return found


def arrive_at(m: Batch, op: Op, block: BlockState, address: int, count: int) -> None:
    """Arrivals at a barrier of a block of the cluster."""
    barrier = barrier_at(m, op, address, block)
    if barrier is not None:
        add_arrivals(m, op, barrier, count)


@simulates(mbarrier.Init)
def init(t: Translator, op: mbarrier.Init) -> Step:
    a = t.slot(op.barrier)

    def step(s: Slots, m: Batch) -> None:
        address, barriers = m.state.byte_at(s[a]), m.state.barriers
        if address in barriers:
            sync_faults.made_twice(m, op, barriers[address])
        buffer = m.state.buffer_of(address)
        name = m.state.name_of(address)
        barriers[address] = Mbarrier(name, buffer, op.arrivals, op.loc.line)

    return step


@simulates(mbarrier.Arrive)
def arrive(t: Translator, op: mbarrier.Arrive) -> Step:
    a, count = t.slot(op.barrier), op.count * t.acting

    def step(s: Slots, m: Batch) -> None:
        barrier = barrier_at(m, op, s[a])
        if barrier is not None:
            add_arrivals(m, op, barrier, count)

    return step


@simulates(mbarrier.Expect)
def expect(t: Translator, op: mbarrier.Expect) -> Step:
    a, count, size = t.slot(op.barrier), t.acting, op.bytes * t.acting

    def step(s: Slots, m: Batch) -> None:
        barrier = barrier_at(m, op, s[a])
        if barrier is not None:
            barrier.expect(size)
            add_arrivals(m, op, barrier, count)

    return step


def add_arrivals(m: Batch, op: Op, barrier: Mbarrier, count: int) -> None:
    """Arrivals at the current phase; more than it takes, or bytes left over, are a finding."""
    if count > barrier.pending:
        sync_faults.too_many_arrivals(m, op, barrier, count, barrier.phase, barrier.pending)
        return
    barrier.came.append(Helper(m.actor, op))
    barrier.arrive(count)
    if barrier.overrun():
        sync_faults.bytes_left(m, op, barrier)
        barrier.forgive()


class BarrierWait:
    """An actor that waits for a phase of an mbarrier."""

    __slots__ = ("address", "barrier", "op", "parity", "state")

    def __init__(self, m: Batch, op: Op, barrier: Mbarrier, address: int, parity: int) -> None:
        self.op, self.barrier, self.parity = op, barrier, parity
        self.state, self.address = m.state, m.state.byte_at(address)

    def ready(self) -> bool:
        return self.barrier.passed(self.parity)

    def words(self) -> str:
        barrier = self.barrier
        return (
            f"{barrier.name}, parity {self.parity}: it is in phase {barrier.phase}, which lacks "
            f"{barrier.missing()}"
        )

    def came(self, waiter: Actor) -> list[Helper]:
        """Who has arrived in this phase: all of them where only bytes are missing."""
        if not self.barrier.pending:
            return self._who(ARRIVALS)
        return list(dict.fromkeys(self.barrier.came))

    def helpers(self, waiter: Actor) -> list[Helper]:
        """Who arrives at the barrier, or copies to it where only bytes are missing."""
        return self._who(ARRIVALS if self.barrier.pending else COPIES)

    def _who(self, kinds: tuple[type[Op], ...]) -> list[Helper]:
        """The actors of this block, and of others that reach it, that do such things to it."""
        able = [s for s in self.state.signallers_at(self.address) if isinstance(s.op, kinds)]
        found = self.state.helpers(able)
        for block in self.state.cluster.blocks:
            if block is not self.state:
                found += block.helpers([s for s in able if s.far])
        return found

    def first_lap(self) -> bool:
        """Whether nothing has come to the barrier yet, and it is no item that is waited for."""
        barrier = self.barrier
        untouched = barrier.phase == 0 and barrier.pending == barrier.count
        return untouched and not getattr(self.op, "takes", False)

    def advice(self) -> str:
        barrier = self.barrier
        if not barrier.pending:
            return f"announce the bytes that copies bring to {barrier.buffer}, no more"
        came = barrier.count - barrier.pending
        if not came:
            return f"let somebody arrive at {barrier.buffer}"
        where = f" (line {barrier.line})" if barrier.line else ""
        return f"{came} of {barrier.count} come: let others arrive, or make it for {came}{where}"


def parity_of(m: Batch, op: Op, number: int) -> int:
    """The parity that an operation is given; another number is a finding."""
    if number not in (0, 1):
        sync_faults.no_parity(m, op, number)
    return number & 1


@simulates(mbarrier.Wait)
def wait(t: Translator, op: mbarrier.Wait) -> Step:
    a, p = t.slot(op.barrier), t.slot(op.parity)

    def start(s: Slots, m: Batch) -> Run:
        barrier = barrier_at(m, op, s[a])
        if barrier is None:
            return
        if m.state.shuffles:
            yield None
        parity = parity_of(m, op, int(s[p]))
        if not barrier.passed(parity):
            yield BarrierWait(m, op, barrier, s[a], parity)

    return Resumable(start)


@simulates(mbarrier.Test)
def test(t: Translator, op: mbarrier.Test) -> Step:
    a, p, d = t.slot(op.barrier), t.slot(op.parity), t.slot(op.result)

    def start(s: Slots, m: Batch) -> Run:
        yield None  # who polls lets others go on
        barrier = barrier_at(m, op, s[a])
        s[d] = barrier is not None and barrier.passed(parity_of(m, op, int(s[p])))

    return Resumable(start)

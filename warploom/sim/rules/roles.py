"""Roles: every replica becomes an actor with registers of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.addresses import buffer_behind
from warploom.ir.kernel import walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import cluster, mbarrier, roles, tma
from warploom.sim import sync_faults
from warploom.sim.block import launched_registers, started
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step, sequence
from warploom.sim.registry import simulates

if TYPE_CHECKING:
    from warploom.sim.block import BlockState
    from warploom.sim.translate import Translator


@simulates(roles.Split)
def split(t: Translator, op: roles.Split) -> Step:
    parts: list[tuple[str, int, int, Step]] = []
    for name, warps, replicas, body in zip(op.names, op.warps, op.replicas, op.bodies, strict=True):
        with t.role(warps):
            parts.append((name, warps, replicas, sequence(t.steps(body))))
        for buffer in _signalled(body):
            t.signallers.setdefault(buffer, []).append(name)

    def step(s: Slots, m: Batch) -> None:
        state = m.state
        for name, warps, replicas, body in parts:
            state.replicas[name] = replicas
            for number in range(replicas):
                actor = state.actor(name, number, warps, m.actor.registers)
                actor.run = started(body, s.copy(), m.for_actor(actor))
                state.begin(actor)

    return step


def _signalled(body: Block) -> list[Value]:
    """The buffers whose barriers a role helps to complete."""
    found: dict[Value, None] = {}
    for op in walk(body):
        if isinstance(op, mbarrier.Arrive | mbarrier.Expect | tma.LoadBox | cluster.Arrive):
            buffer = buffer_behind(op.barrier)
            if buffer is not None:
                found[buffer] = None
    return list(found)


@simulates(roles.Replica)
def replica(t: Translator, op: roles.Replica) -> Step:
    d = t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = m.actor.replica

    return step


class RegisterWait:
    """An actor that waits for registers that others give back."""

    __slots__ = ("needed", "op", "state")

    def __init__(self, op: Op, state: BlockState, needed: int) -> None:
        self.op, self.state, self.needed = op, state, needed

    def ready(self) -> bool:
        return self.state.pool >= self.needed

    def words(self) -> str:
        return f"{self.needed:,} registers: others have given back {self.state.pool:,}"


@simulates(roles.SetRegisters)
def set_registers(t: Translator, op: roles.SetRegisters) -> Step:
    """Registers that a role gives back are a pool of the block; who wants more waits for them. How
    many a thread begins with is the assembler's choice: at most what launch bounds allow, which is
    taken here, so that only later changes can be judged."""
    begun = launched_registers(t.kernel.warps)

    def start(s: Slots, m: Batch) -> Run:
        actor, state = m.actor, m.state
        more = (op.count - actor.registers) * actor.threads
        if more < 0 if op.grow else more > 0:
            if actor.registers != begun:
                sync_faults.wrong_way(m, op)
            more = 0
        if more > state.pool:
            yield RegisterWait(op, state, more)
        state.pool -= more
        actor.registers = op.count

    return Resumable(start)

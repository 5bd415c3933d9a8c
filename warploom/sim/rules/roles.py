"""Roles: every replica becomes an actor with registers of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.op import Op
from warploom.ir.ops import roles
from warploom.sim import sync_faults
from warploom.sim.actors import Actor, Helper
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

    def step(s: Slots, m: Batch) -> None:
        state = m.state
        for name, warps, replicas, body in parts:
            state.replicas[name] = replicas
            for number in range(replicas):
                actor = state.actor(name, number, warps, m.actor.registers)
                actor.run = started(body, s.copy(), m.for_actor(actor))
                state.begin(actor)

    return step


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

    def came(self, waiter: Actor) -> list[Helper]:
        """Whoever has given some back."""
        return []

    def helpers(self, waiter: Actor) -> list[Helper]:
        """All others that may have some to give."""
        running = self.state.cluster.scheduler.actors
        return [Helper(a, None) for a in running if a.block is self.state and a is not waiter]

    def advice(self) -> str:
        return "take fewer registers, or let other roles keep fewer"


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

"""Flags in global memory. A wait is where an actor lets others go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.ir.ops import flags
from warploom.ir.ops.watch import Flag
from warploom.sim import faults
from warploom.sim.actors import Actor, Helper
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.memory import Memory
from warploom.sim.order.signals import Signal
from warploom.sim.registry import simulates

if TYPE_CHECKING:
    from warploom.sim.block import BlockState
    from warploom.sim.translate import Translator

Element = Callable[[Slots, Batch], tuple[Memory, int] | None]


def element_of(t: Translator, op: flags.Post | flags.Poll | Flag) -> Element:
    """Where the flag is; None where the operation leaves it alone."""
    tensor, base, predicate = t.slot(op.tensor), t.slot(op.base), t.optional(op.predicate)

    def find(s: Slots, m: Batch) -> tuple[Memory, int] | None:
        if predicate >= 0 and not s[predicate]:
            return None
        memory: Memory = s[tensor]
        place = int(s[base]) + memory.origin
        if not 0 <= place < memory.size:
            bad = np.ones((1, 1, 1), bool)
            faults.out_of_bounds(m, op, memory, np.full((1, 1, 1), place), bad)
            return None
        return memory, place

    return find


@simulates(flags.Post)
def post(t: Translator, op: flags.Post) -> Step:
    find, v, adds = element_of(t, op), t.slot(op.value), op.kind == "add"

    def step(s: Slots, m: Batch) -> None:
        found = find(s, m)
        if found is None:
            return
        memory, place = found
        if not memory.writable:
            faults.read_only(m, op, memory)
            return
        value = np.int32(s[v])
        with np.errstate(over="ignore"):
            memory.flat[place] = memory.flat[place] + value if adds else value
        if memory.shadow is not None:
            memory.shadow.flat[place] = True

    return step


class AtTensor:
    """What waits for what others put into the tensor of its operation have in common."""

    __slots__ = ("op",)

    op: Any

    def came(self, waiter: Actor) -> list[Helper]:
        """Who puts something there may have done so any number of times."""
        return []

    def helpers(self, waiter: Actor) -> list[Helper]:
        """Who puts something into this tensor, in all blocks that run."""
        block: BlockState = waiter.block
        scheduler, puts = block.cluster.scheduler, block.signallers.flags.get(self.op.tensor, [])
        actors = (*scheduler.actors, *scheduler.ended)
        return [Helper(a, s.op) for a in actors for s in puts if a.role == s.role]

    def advice(self) -> str:
        """What to do where nobody does."""
        return f"let somebody signal by `{self.op.tensor.name}`, or wait for less"


def stopped(stop: Memory | None) -> bool:
    """Whether the word that ends waits says so."""
    return stop is not None and bool(stop.flat[stop.origin])


class FlagWait(AtTensor):
    """An actor that waits for a flag."""

    __slots__ = ("memory", "place", "stop", "target")

    def __init__(
        self, op: Any, memory: Memory, place: int, target: int, stop: Memory | None = None
    ) -> None:
        self.op, self.memory, self.place, self.target = op, memory, place, target
        self.stop = stop

    def ready(self) -> bool:
        """Whether the flag has come to the target, or waits shall end."""
        return stopped(self.stop) or not Signal.behind(
            int(self.memory.flat[self.place]), self.target
        )

    def words(self) -> str:
        element = self.place - self.memory.origin
        return (
            f"element {element} of `{self.memory.name}` to be at least {self.target}: it is "
            f"{int(self.memory.flat[self.place])}"
        )


@simulates(flags.Poll)
def poll(t: Translator, op: flags.Poll) -> Step:
    find, target, stop = element_of(t, op), t.slot(op.target), t.optional(op.stop)

    def start(s: Slots, m: Batch) -> Run:
        found = find(s, m)
        if found is None:
            return
        if m.state.shuffles:
            yield None
        wait = FlagWait(op, *found, int(s[target]), s[stop] if stop >= 0 else None)
        if not wait.ready():
            yield wait

    return Resumable(start)

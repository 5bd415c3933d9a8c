"""Copies that threads begin for themselves: done when they wait, or any time before."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.ir.op import Op
from warploom.ir.ops import cp_async
from warploom.sim.accesses import Place, guard, locate, masked
from warploom.sim.barriers import Mbarrier
from warploom.sim.block import Load, Store
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.memory import Memory, Span, read_where
from warploom.sim.registry import simulates
from warploom.sim.rules.global_memory import get, put
from warploom.sim.rules.mbarrier import add_arrivals, barrier_at
from warploom.sim.shadow import written
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


class ThreadCopy(Store):
    """Copies that the threads of a role have begun together."""

    __slots__ = ("done",)

    def __init__(self, m: Batch, op: Op, read: Any, write: Any) -> None:
        super().__init__(m, op, read, write)
        self.done = False

    def finish(self) -> None:
        if not self.done:
            self.done = True
            super().finish()


class Ends:
    """Both ends of a copy: what is read, and where it goes."""

    def __init__(self, t: Translator, op: cp_async.CopyGroups) -> None:
        self.op, self.vec = op, op.vec
        self.axis = max(len(op.offset.type.extents) - 1, 0)  # type: ignore[union-attr]
        self.tensor, self.buffer = t.slot(op.tensor), t.slot(op.buffer)
        self.base, self.offset, self.place = t.slot(op.base), t.slot(op.offset), t.slot(op.place)
        self.inside, self.predicate = t.optional(op.inside), t.optional(op.predicate)

    def source(self, s: Slots, m: Batch) -> Place:
        memory: Memory = s[self.tensor]
        mask = masked(s, self.inside, self.axis, self.vec)
        if self.predicate >= 0:
            acting = masked(s, self.predicate, self.axis, self.vec)
            if acting is not None:
                mask = dense(acting) if mask is None else dense(mask) & dense(acting)
        plan, shift = locate(s[self.offset], self.axis, self.vec)
        span = Span(shift + int(s[self.base]) + memory.origin)
        return Place(memory, plan, span, guard(m, self.op, memory, plan, span, mask))

    def target(self, s: Slots, m: Batch) -> Place:
        memory: Memory = s[self.buffer]
        mask = masked(s, self.predicate, self.axis, self.vec)
        plan, shift = locate(s[self.place], self.axis, self.vec)
        mask = guard(m, self.op, memory, plan, Span(shift), mask)
        return Place(memory, plan, Span(shift + m.rows * memory.pitch + memory.origin), mask)


@simulates(cp_async.CopyGroups)
def copy_groups(t: Translator, op: cp_async.CopyGroups) -> Step:
    ends = Ends(t, op)

    def step(s: Slots, m: Batch) -> None:
        source, target = ends.source(s, m), ends.target(s, m)
        if target.memory.shadow is not None:
            zero = np.zeros((1,) * target.plan.elements.ndim, target.memory.shadow.flat.dtype)
            put(Place(target.memory.shadow, target.plan, target.span, target.mask), zero)
        made = ThreadCopy(m, op, lambda: get(source), _writing(source, target))
        m.actor.copies.open.append(made)

    return step


def _writing(source: Place, target: Place) -> Callable[[np.ndarray], None]:
    def write(held: np.ndarray) -> None:
        put(target, held)
        shadow = target.memory.shadow
        if shadow is None:
            return
        good = written(target.memory)
        state = np.full((1,) * held.ndim, good, shadow.flat.dtype)
        if source.memory.shadow is not None:
            mask = np.bool_(True) if source.mask is None else source.mask
            given = read_where(source.memory.shadow, source.plan, source.span, mask, good)
            state = np.where(given == good, good, 0).astype(shadow.flat.dtype)
        put(Place(shadow, target.plan, target.span, target.mask), state)

    return write


@simulates(cp_async.Commit)
def commit(t: Translator, op: cp_async.Commit) -> Step:
    def step(s: Slots, m: Batch) -> None:
        m.actor.copies.commit()

    return step


@simulates(cp_async.Wait)
def wait(t: Translator, op: cp_async.Wait) -> Step:
    def start(s: Slots, m: Batch) -> Run:
        if m.state.shuffles:
            yield None
        m.actor.copies.wait(op.pending, reads=False)

    return Resumable(start)


class Arrival(Load):
    """Arrivals that come when all copies begun before are done."""

    __slots__ = ()

    def land(self) -> None:
        self.arrive()


@simulates(cp_async.Arrive)
def arrive(t: Translator, op: cp_async.Arrive) -> Step:
    a, count = t.slot(op.barrier), t.acting

    def step(s: Slots, m: Batch) -> None:
        barrier = barrier_at(m, op, s[a])
        if barrier is None:
            return
        copies = m.actor.copies
        before = copies.begun()
        made = Arrival(m, op, 0, m.state, barrier, lambda: _arrive(m, op, before, barrier, count))
        m.state.cluster.resident.loads.append(made)

    return step


def _arrive(
    m: Batch, op: cp_async.Arrive, before: list[Store], barrier: Mbarrier, count: int
) -> None:
    for copy in before:
        copy.finish()
    add_arrivals(m, op, barrier, count)

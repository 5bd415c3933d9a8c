"""Buffers in shared memory: each block of the batch has its own piece of one array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.cluster import ALONE
from warploom.ir.ops import shared_memory
from warploom.sim.accesses import Place, guard, locate, masked
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.memory import Memory, Span, read, read_where
from warploom.sim.registry import simulates
from warploom.sim.rules.global_memory import put
from warploom.sim.shadow import shadow_memory
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


@simulates(shared_memory.BufferOp)
def buffer(t: Translator, op: shared_memory.BufferOp) -> Step:
    d, first, name = t.slot(op.result), t.byte_of(op), op.result.name
    pitch = op.pitch if op.copies > 1 else 0

    def step(s: Slots, m: Batch) -> None:
        arena, at = m.arena, first
        if pitch:
            at += m.actor.replica * pitch
        memory = arena.buffers.get((op, at))
        if memory is None:
            memory = Memory(arena.raw, op.dtype, at // op.dtype.bytes, name, at)
            arena.buffers[op, at] = memory
            memory.pitch, memory.limit = m.pitch // op.dtype.bytes, op.elements
            if arena.written is not None:
                memory.shadow = shadow_memory(arena.written, memory)
        memory.spoilt = None
        s[d] = memory

    return step


@simulates(shared_memory.Address)
def address(t: Translator, op: shared_memory.Address) -> Step:
    a, d = t.slot(op.buffer), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        memory: Memory = s[a]
        s[d] = memory.origin * memory.itemsize

    def in_cluster(s: Slots, m: Batch) -> None:
        step(s, m)
        s[d] += m.state.window

    return step if t.kernel.cluster == ALONE else in_cluster


class Shared:
    """Where an access of shared memory goes."""

    def __init__(self, t: Translator, op: shared_memory.Load | shared_memory.Store) -> None:
        self.op = op
        self.buffer, self.offset = t.slot(op.buffer), t.slot(op.offset)
        self.predicate = t.optional(op.predicate)
        self.axis, self.vec = op.axis, op.vec

    def place(self, s: Slots, m: Batch) -> Place:
        """Plan, span and mask of this access; faults of its addresses are found here."""
        memory: Memory = s[self.buffer]
        mask = masked(s, self.predicate, self.axis, self.vec)
        plan, shift = locate(s[self.offset], self.axis, self.vec)
        mask = guard(m, self.op, memory, plan, Span(shift), mask)
        return Place(memory, plan, Span(shift + m.rows * memory.pitch + memory.origin), mask)


@simulates(shared_memory.Load)
def load(t: Translator, op: shared_memory.Load) -> Step:
    place, d = Shared(t, op).place, t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        at = place(s, m)
        if at.mask is None:
            s[d] = read(at.memory, at.plan, at.span)
        else:
            s[d] = read_where(at.memory, at.plan, at.span, at.mask, 0)

    return step


@simulates(shared_memory.Store)
def store(t: Translator, op: shared_memory.Store) -> Step:
    place, value = Shared(t, op).place, t.slot(op.value)

    def step(s: Slots, m: Batch) -> None:
        put(place(s, m), dense(s[value]))

    return step

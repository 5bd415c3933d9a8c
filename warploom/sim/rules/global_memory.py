"""Accesses to global memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.base.dtypes import Kind
from warploom.ir.ops import global_memory
from warploom.sim import faults
from warploom.sim.accesses import Place, guard, locate, masked
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.memory import Memory, Span, read, read_where, write, write_where
from warploom.sim.registry import simulates
from warploom.sim.shadow import written
from warploom.sim.values import carrier, dense, scalar_array

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


class Global:
    """Where an access of global memory goes."""

    def __init__(self, t: Translator, op: global_memory.Load | global_memory.Store) -> None:
        self.op = op
        self.tensor, self.base, self.offset = t.slot(op.tensor), t.slot(op.base), t.slot(op.offset)
        self.predicate = t.optional(op.predicate)
        self.axis, self.vec = op.axis, op.vec

    def place(self, s: Slots, m: Batch) -> Place:
        """Plan, span and mask of this access; faults of its addresses are found here."""
        memory: Memory = s[self.tensor]
        mask = masked(s, self.predicate, self.axis, self.vec)
        plan, shift = locate(s[self.offset], self.axis, self.vec)
        base = s[self.base]
        if type(base) is not int:
            base = base.astype(np.int64)
        span = Span(shift + base + memory.origin)
        mask = guard(m, self.op, memory, plan, span, mask)
        return Place(memory, plan, span, mask)


@simulates(global_memory.Load)
def load(t: Translator, op: global_memory.Load) -> Step:
    access, d = Global(t, op), t.slot(op.result)
    place, other = access.place, t.optional(op.other)

    def step(s: Slots, m: Batch) -> None:
        at = place(s, m)
        if at.mask is None:
            s[d] = read(at.memory, at.plan, at.span)
        else:
            filler = s[other] if other >= 0 else 0
            s[d] = read_where(at.memory, at.plan, at.span, at.mask, filler)

    return step


@simulates(global_memory.Store)
def store(t: Translator, op: global_memory.Store) -> Step:
    place, value = Global(t, op).place, t.slot(op.value)

    def step(s: Slots, m: Batch) -> None:
        at = place(s, m)
        if not at.memory.writable:
            faults.read_only(m, op, at.memory)
            return
        put(at, dense(s[value]))
        if at.memory.shadow is not None:
            mark(at)

    return step


def put(at: Place, array: np.ndarray) -> None:
    """Store an array at a place."""
    if at.mask is None:
        write(at.memory, at.plan, at.span, array)
    else:
        write_where(at.memory, at.plan, at.span, array, at.mask)


def mark(at: Place) -> None:
    """Note that a place has been written."""
    assert at.memory.shadow is not None
    flag = np.full((1,) * (len(at.plan.shape[0]) + 3), written(at.memory))
    put(Place(at.memory.shadow, at.plan, at.span, at.mask), flag)


# ---- one element -------------------------------------------------------------------------------


@simulates(global_memory.LoadScalar)
def load_scalar(t: Translator, op: global_memory.LoadScalar) -> Step:
    tensor, base, d = t.slot(op.tensor), t.slot(op.base), t.slot(op.result)
    predicate, other = t.optional(op.predicate), t.optional(op.other)
    is_float = op.result.type.dtype.is_float

    def step(s: Slots, m: Batch) -> None:
        memory: Memory = s[tensor]
        allowed = True if predicate < 0 else s[predicate]
        filler = s[other] if other >= 0 else zero_of(memory)
        if type(s[base]) is int and type(allowed) is not np.ndarray:
            if not allowed:
                s[d] = filler
                return
            place = s[base] + memory.origin
            if not 0 <= place < memory.size:
                bad = np.ones((1, 1, 1), bool)
                faults.out_of_bounds(m, op, memory, np.full((1, 1, 1), place), bad)
                s[d] = filler
                return
            found = memory.flat[place]
            s[d] = found if is_float else found.item()
            return
        s[d] = load_blocks(m, op, memory, np.asarray(s[base], np.int64), allowed, filler)

    return step


def zero_of(memory: Memory) -> Any:
    """What a load gives under a false predicate."""
    if memory.dtype.kind is Kind.BOOL:
        return False
    return carrier(memory.dtype).type(0) if memory.dtype.is_float else 0


def load_blocks(
    m: Batch, op: Any, memory: Memory, base: np.ndarray, allowed: Any, filler: Any
) -> np.ndarray:
    """One element for each block."""
    places = np.broadcast_to(base + memory.origin, (m.count, 1, 1))
    flags = np.broadcast_to(allowed, places.shape)
    outside = (places < 0) | (places >= memory.size)
    if (flags & outside).any():
        faults.out_of_bounds(m, op, memory, places, flags & outside)
    flags = flags & ~outside
    if memory.size == 0:
        return np.broadcast_to(scalar_array(filler, memory.dtype, 0), places.shape)
    found = memory.flat.take(np.where(flags, places, 0))
    return np.where(flags, found, scalar_array(filler, memory.dtype, 0))

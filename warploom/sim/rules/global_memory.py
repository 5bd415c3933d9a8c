"""Accesses to global memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from warploom.base.dtypes import Kind
from warploom.ir.ops import flagged, global_memory, watch
from warploom.ir.ops.scalar import scalar_of
from warploom.sim import faults
from warploom.sim.accesses import Place, guard, locate, masked
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.memory import Memory, Span, read, read_where, write, write_where
from warploom.sim.registry import simulates
from warploom.sim.shadow import written
from warploom.sim.values import carrier, dense, scalar_array

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


Access: TypeAlias = (
    global_memory.Load
    | global_memory.Store
    | global_memory.Atomic
    | global_memory.Prefetch
    | flagged.Put
    | flagged.Look
    | flagged.Take
    | watch.Words
)


class Global:
    """Where an access of global memory goes."""

    def __init__(self, t: Translator, op: Access) -> None:
        self.op = op
        self.tensor, self.base, self.offset = t.slot(op.tensor), t.slot(op.base), t.slot(op.offset)
        self.predicate = t.optional(op.predicate)
        self.axis, self.vec = 0, 1
        if not isinstance(op, global_memory.Prefetch):
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
        s[d] = get(at, s[other] if other >= 0 else 0)

    return step


@simulates(global_memory.Prefetch)
def prefetch(t: Translator, op: global_memory.Prefetch) -> Step:
    """A matter of time only, but for addresses that lie outside."""
    place = Global(t, op).place

    def step(s: Slots, m: Batch) -> None:
        place(s, m)

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


def get(at: Place, filler: Any = 0) -> np.ndarray:
    """Load an array from a place, `filler` where its mask does not hold."""
    if at.mask is None:
        return read(at.memory, at.plan, at.span)
    return read_where(at.memory, at.plan, at.span, at.mask, filler)


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


# ---- atomic ------------------------------------------------------------------------------------


@simulates(global_memory.Atomic)
def atomic(t: Translator, op: global_memory.Atomic) -> Step:
    """One element after the other, block by block, in the order of registers, warps and lanes."""
    place, value, d = Global(t, op).place, t.slot(op.value), t.slot(op.result)
    expected, change = t.optional(op.expected), _CHANGES[op.kind]

    def step(s: Slots, m: Batch) -> None:
        at = place(s, m)
        given = dense(s[value])
        wanted = given if expected < 0 else dense(s[expected])
        flags = np.array(True) if at.mask is None else dense(at.mask)
        if not at.memory.writable:
            faults.read_only(m, op, at.memory)
            flags = np.array(False)  # found: nothing changes, the result is 0
        arrays = (at.plan.elements + at.span.shift, given, wanted, flags)
        # Every block does it, even where all name one element.
        shape = np.broadcast_shapes(*(a.shape for a in arrays), (m.count, 1, 1))
        places, given, wanted, flags = (
            np.moveaxis(np.broadcast_to(a, shape), -3, 0) for a in arrays
        )
        found = np.zeros(places.shape, given.dtype)
        for index in zip(*np.nonzero(flags), strict=True):
            old = at.memory.flat[places[index]]
            found[index] = old
            at.memory.flat[places[index]] = change(old, given[index], wanted[index])
        s[d] = np.moveaxis(found, 0, -3)
        if at.memory.shadow is not None and at.memory.writable and op.kind == "exchange":
            mark(at)

    return step


def _sum(old: Any, new: Any, _: Any) -> Any:
    """Integers wrap; the unit that adds f32 in memory takes denormals for zero."""
    with np.errstate(all="ignore"):
        if np.asarray(old).dtype != np.float32:
            return old + new
        return _flushed(_flushed(old) + _flushed(new))


def _flushed(x: np.float32) -> np.float32:
    return np.copysign(np.float32(0), x) if abs(x) < np.finfo(np.float32).tiny else x


_CHANGES: dict[str, Any] = {
    "add": _sum,
    "max": lambda old, new, _: max(old, new),
    "min": lambda old, new, _: min(old, new),
    "and": lambda old, new, _: old & new,
    "or": lambda old, new, _: old | new,
    "xor": lambda old, new, _: old ^ new,
    "exchange": lambda old, new, _: new,
    "cas": lambda old, new, expected: new if old == expected else old,
}


# ---- one element -------------------------------------------------------------------------------


@simulates(global_memory.LoadScalar)
def load_scalar(t: Translator, op: global_memory.LoadScalar) -> Step:
    tensor, base, d = t.slot(op.tensor), t.slot(op.base), t.slot(op.result)
    predicate, other = t.optional(op.predicate), t.optional(op.other)
    is_float = scalar_of(op.result).dtype.is_float

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

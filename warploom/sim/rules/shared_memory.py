"""Buffers in shared memory: each block of the batch has its own piece of one array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warploom.ir.cluster import ALONE
from warploom.ir.ops import shared_memory
from warploom.ir.ops.registers import regs_of
from warploom.sim.accesses import Place, guard, locate, masked
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.memory import Memory, Span
from warploom.sim.registry import simulates
from warploom.sim.rules.global_memory import get, put
from warploom.sim.shadow import shadow_memory
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_WARPGROUP = 4  # warps


@simulates(shared_memory.BufferOp)
def buffer(t: Translator, op: shared_memory.BufferOp) -> Step:
    d, first = t.slot(op.result), t.byte_of(op)
    pitch = op.pitch if op.copies > 1 else 0

    def step(s: Slots, m: Batch) -> None:
        at = first + m.actor.replica * pitch if pitch else first
        memory = buffer_at(m, op, at)
        memory.spoilt = None
        if op.region >= 0:
            memory.others = t.on_bytes_of(op)
        s[d] = memory

    return step


def buffer_at(m: Batch, op: shared_memory.BufferOp, at: int) -> Memory:
    """A buffer that begins at a byte of the shared memory of each block of a batch."""
    arena = m.arena
    memory = arena.buffers.get((op, at))
    if memory is None:
        memory = Memory(arena.raw, op.dtype, at // op.dtype.bytes, op.result.name, at)
        arena.buffers[op, at] = memory
        memory.pitch, memory.limit = m.pitch // op.dtype.bytes, op.elements
        memory.mark = op.content + 1
        if arena.written is not None:
            memory.shadow = shadow_memory(arena.written, memory)
    return memory


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


Access = (
    shared_memory.Load
    | shared_memory.Store
    | shared_memory.LoadMatrices
    | shared_memory.StoreMatrices
)


class Shared:
    """Where an access of shared memory goes."""

    def __init__(self, t: Translator, op: Access) -> None:
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
        s[d] = get(place(s, m))

    return step


@simulates(shared_memory.Store)
def store(t: Translator, op: shared_memory.Store) -> Step:
    place, value = Shared(t, op).place, t.slot(op.value)

    def step(s: Slots, m: Batch) -> None:
        put(place(s, m), dense(s[value]))

    return step


# ---- matrices of 8 x 8 ---------------------------------------------------------------------------

# Axes of an accumulator: (block, half, group, side, pair element, blocks, warp, row, quarter) as
# registers have them, and as lanes that hold a row of a matrix each have them: eight elements of
# (quarter, pair element), lane (side, half, row); turned: eight rows, lane (side, half, column).
_ROWS = (0, 2, 8, 4, 5, 6, 3, 1, 7)
_COLUMNS = (0, 7, 2, 5, 6, 3, 1, 8, 4)


def as_rows(array: np.ndarray, extents: tuple[int, ...], turned: bool) -> np.ndarray:
    """A register tile of an accumulator's layout with the rows of its matrices in lanes."""
    blocks, groups = extents[0] // 2, extents[1] // 4
    batch, warps = array.shape[-3], _WARPGROUP
    full = np.broadcast_to(array, (*extents, batch, warps, 32))
    parts = full.reshape(blocks, 2, groups, 2, 2, batch, warps, 8, 4)
    parts = parts.transpose(_COLUMNS if turned else _ROWS)
    shape = (8 * blocks, groups) if turned else (blocks, 8 * groups)
    return parts.reshape(*shape, batch, warps, 32)


def from_rows(array: np.ndarray, extents: tuple[int, ...], turned: bool) -> np.ndarray:
    """The reverse of `as_rows`."""
    blocks, groups = extents[0] // 2, extents[1] // 4
    batch, warps = array.shape[-3], _WARPGROUP
    order = _COLUMNS if turned else _ROWS
    shape = (8 * blocks, groups) if turned else (blocks, 8 * groups)
    full = np.broadcast_to(array, (*shape, batch, warps, 32))
    sizes = (blocks, 2, groups, 2, 2, batch, warps, 8, 4)
    parts = full.reshape([sizes[axis] for axis in order]).transpose(np.argsort(order))
    return parts.reshape(*extents, batch, warps, 32)


@simulates(shared_memory.StoreMatrices)
def store_matrices(t: Translator, op: shared_memory.StoreMatrices) -> Step:
    place, value = Shared(t, op).place, t.slot(op.value)
    extents, turned = regs_of(op.value).extents, op.turned

    def step(s: Slots, m: Batch) -> None:
        put(place(s, m), as_rows(dense(s[value]), extents, turned))

    return step


@simulates(shared_memory.LoadMatrices)
def load_matrices(t: Translator, op: shared_memory.LoadMatrices) -> Step:
    place, d = Shared(t, op).place, t.slot(op.result)
    extents, turned = regs_of(op.result).extents, op.turned

    def step(s: Slots, m: Batch) -> None:
        s[d] = from_rows(get(place(s, m)), extents, turned)

    return step

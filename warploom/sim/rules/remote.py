"""Shared memory of peers: loads and stores done at once, stores and copies done later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from warploom.ir.op import Op
from warploom.ir.ops import remote
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.shared_memory import ADDRESS_BITS, BufferOp
from warploom.sim import sync_faults
from warploom.sim.accesses import Place, guard, locate, masked
from warploom.sim.barriers import Mbarrier
from warploom.sim.block import BlockState, Load
from warploom.sim.boxes import CHUNK, chunks_of
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.memory import Memory, Span
from warploom.sim.registry import simulates
from warploom.sim.rules.cluster import at_peer, peer
from warploom.sim.rules.global_memory import get, put
from warploom.sim.rules.mbarrier import barrier_at
from warploom.sim.rules.shared_memory import buffer_at
from warploom.sim.shadow import holds, written
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

Access: TypeAlias = remote.LoadGroups | remote.StoreGroups | remote.SendGroups


def reach(m: Batch, op: Op, address: int) -> tuple[BlockState | None, int]:
    """The block of an address in the cluster whose memory is reached (none after a finding), and
    the byte there. In checked mode order decides whether it has begun."""
    rank, byte = divmod(address, 1 << ADDRESS_BITS)
    block = peer(m, op, rank)
    if block is not None and not m.launch.checked and not block.batch.actor.begun:
        sync_faults.before_its_start(m, op, block)
        return None, byte
    return block, byte


class Remote:
    """Where an access of a peer's shared memory goes."""

    def __init__(self, t: Translator, op: Access) -> None:
        self.op = op
        assert isinstance(op.buffer.owner, BufferOp)
        self.buffer = op.buffer.owner
        self.address, self.offset = t.slot(op.address), t.slot(op.offset)
        self.predicate = t.optional(op.predicate)
        self.axis, self.vec = op.axis, op.vec

    def place(self, s: Slots, m: Batch) -> tuple[BlockState, Place] | None:
        """The block, and plan, span and mask of this access there; None after a finding of the
        block. Faults of its addresses are found here."""
        block, byte = reach(m, self.op, int(s[self.address]))
        if block is None:
            return None
        memory = buffer_at(block.batch, self.buffer, byte)
        mask = masked(s, self.predicate, self.axis, self.vec)
        plan, shift = locate(s[self.offset], self.axis, self.vec)
        mask = guard(m, self.op, memory, plan, Span(shift), mask)
        return block, Place(memory, plan, Span(shift + memory.origin), mask)


@simulates(remote.LoadGroups)
def load_groups(t: Translator, op: remote.LoadGroups) -> Step:
    place, d = Remote(t, op).place, t.slot(op.result)
    rank = len(regs_of(op.result).extents)

    def step(s: Slots, m: Batch) -> None:
        found = place(s, m)
        if found is None:
            memory: Memory = buffer_at(m, _buffer(op), 0)
            s[d] = np.zeros((1,) * (rank + 3), memory.flat.dtype)
        else:
            s[d] = get(found[1])

    return step


def _buffer(op: Access) -> BufferOp:
    assert isinstance(op.buffer.owner, BufferOp)
    return op.buffer.owner


@simulates(remote.StoreGroups)
def store_groups(t: Translator, op: remote.StoreGroups) -> Step:
    place, value = Remote(t, op).place, t.slot(op.value)

    def step(s: Slots, m: Batch) -> None:
        found = place(s, m)
        if found is not None:
            put(found[1], dense(s[value]))

    return step


# ---- asynchronous stores -------------------------------------------------------------------------


class Sent(Load):
    """What the lanes of one warp have sent to a peer: `numbers` of elements of `memory` there."""

    __slots__ = ("memory", "numbers", "warp")

    def __init__(
        self,
        m: Batch,
        op: Op,
        block: BlockState,
        barrier: Mbarrier,
        warp: int,
        memory: Memory,
        numbers: np.ndarray,
        values: np.ndarray,
        states: np.ndarray | None,
    ) -> None:
        self.memory, self.numbers, self.warp = memory, numbers, warp

        def arrive() -> None:
            memory.flat[numbers] = values
            if memory.shadow is not None:
                memory.shadow.flat[numbers] = written(memory) if states is None else states

        super().__init__(m, op, numbers.size * memory.itemsize, block, barrier, arrive)
        if memory.shadow is not None:
            memory.shadow.flat[numbers] = 0  # in flight from here on


@simulates(remote.SendGroups)
def send_groups(t: Translator, op: remote.SendGroups) -> Step:
    place, value, b = Remote(t, op).place, t.slot(op.value), t.slot(op.barrier)
    extents, warps, acting = regs_of(op.value).extents, t.warps, t.acting

    def step(s: Slots, m: Batch) -> None:
        found = place(s, m)
        there, byte = at_peer(m, op, int(s[b]))
        if found is None or there is None:
            return
        block, at = found
        barrier = barrier_at(m, op, byte, there)
        if barrier is None:
            return
        shape = (*extents, 1, warps, 32)
        numbers = np.broadcast_to(at.plan.elements + at.span.shift, shape)
        flags = np.broadcast_to(True if at.mask is None else dense(at.mask), shape)
        values = np.broadcast_to(dense(s[value]), shape)
        states = _states(m, value, at.memory, shape)
        for warp in range(warps if acting >= warps else 1):
            lanes = slice(None) if acting >= 32 * warps else slice(1)
            part = (..., warp, lanes)
            chosen = flags[part]
            if chosen.any():
                state = None if states is None else states[part][chosen]
                place_of = numbers[part][chosen]
                made = Sent(
                    *(m, op, block, barrier, warp, at.memory, place_of),
                    *(values[part][chosen], state),
                )
                m.state.cluster.resident.loads.append(made)

    return step


def _states(m: Batch, value: int, memory: Memory, shape: tuple[int, ...]) -> np.ndarray | None:
    """In checked mode, written-ness of what is sent; None where all of it is written."""
    shadow = m.shadow[value] if m.shadow else None
    if shadow is None or memory.shadow is None:
        return None
    memory.spoilt = shadow.origin
    state = np.where(shadow.flags, written(memory), 0).astype(memory.shadow.flat.dtype)
    return np.broadcast_to(state, shape)


# ---- copies --------------------------------------------------------------------------------------


class Ends:
    """Both ends of a copy from a block to a peer."""

    def __init__(self, t: Translator, op: remote.CopyBytes) -> None:
        self.op = op
        self.source, self.target = t.slot(op.source), t.slot(op.target)
        self.marks = t.mark_of(op.source), max(t.mark_of(op.target), 1)

    def places(self, s: Slots, m: Batch) -> tuple[BlockState, slice, slice] | None:
        """The peer, and the chunks of shared memory here and there; None after a finding."""
        block, byte = reach(m, self.op, int(s[self.target]))
        here = self._chunks(m, m.state.byte_at(s[self.source]))
        there = self._chunks(m, byte)
        if block is None or here is None or there is None:
            return None
        return block, here, there

    def _chunks(self, m: Batch, byte: int) -> slice | None:
        size = self.op.bytes
        if byte % CHUNK:
            message = "a bulk copy does not start at a multiple of 16 bytes of shared memory"
            note = f"{m.state.part_of(byte)}, byte {byte}"
            sync_faults.misaligned(m, self.op, message, note)
            return None
        if byte < 0 or byte + size > m.pitch:
            sync_faults.outside(m, self.op, "this copy", byte, size)
            return None
        return slice(byte // CHUNK, (byte + size) // CHUNK)


@simulates(remote.CopyBytes)
def copy_bytes(t: Translator, op: remote.CopyBytes) -> Step:
    ends, b, copies = Ends(t, op), t.slot(op.barrier), t.acting

    def step(s: Slots, m: Batch) -> None:
        found = ends.places(s, m)
        owner, byte = at_peer(m, op, int(s[b]))
        if found is None or owner is None:
            return
        block, here, there = found
        barrier = barrier_at(m, op, byte, owner)
        if barrier is None:
            return
        target = block.batch.arena
        if target.written is not None:
            chunks_of(target.written)[there] = 0  # in flight from here on
        for _ in range(copies):
            arrive = _moving(m, op, block, here, there, ends.marks)
            load = Load(m, op, op.bytes, block, barrier, arrive)
            m.state.cluster.resident.loads.append(load)

    return step


def _moving(
    m: Batch,
    op: remote.CopyBytes,
    block: BlockState,
    here: slice,
    there: slice,
    marks: tuple[int, int],
) -> Callable[[], Any]:
    def arrive() -> None:
        source, target = m.arena, block.batch.arena
        chunks_of(target.raw)[there] = chunks_of(source.raw)[here]
        if source.written is not None and target.written is not None:
            state = np.asarray(chunks_of(source.written)[here]).view(np.uint8).reshape(-1)
            known = holds(state, marks[0])
            chunks_of(target.written)[there] = chunks_of(
                known.astype(np.uint8) * np.uint8(marks[1])
            )
            if not known.all():
                at = int((~known).argmax())
                first, over = here.start * CHUNK + at, bool(state[at])
                sync_faults.unwritten(m, op, "is copied here", first, over)

    return arrive

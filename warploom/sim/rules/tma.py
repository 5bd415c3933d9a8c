"""The copy engine: loads and stores of boxes that are issued here and done later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.base.dtypes import DType
from warploom.ir.kernel import TensorMap
from warploom.ir.ops import tma
from warploom.sim import arithmetic, faults, sync_faults
from warploom.sim.barriers import Mbarrier
from warploom.sim.block import BlockState, Load, Moves, Store
from warploom.sim.boxes import (
    CHUNK,
    Box,
    alignment,
    chunks_of,
    places_of,
    reach_of,
    unaligned_start,
)
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.memory import Memory
from warploom.sim.registry import simulates
from warploom.sim.rules.cluster import peer
from warploom.sim.rules.descriptor import Made
from warploom.sim.rules.mbarrier import barrier_at
from warploom.sim.shadow import holds, written
from warploom.sim.values import carrier

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_ALIGN = 128  # bytes of a box's place in shared memory
_MOST_BLOCKS = 16  # of a mask


class Copy:
    """What loads and stores share: map, tensor, coordinates and place."""

    def __init__(self, t: Translator, op: tma.LoadBox | tma.StoreBox) -> None:
        self.op = op
        self.map: TensorMap = t.kernel.maps[op.map]
        self.tensor, self.address = t.slot(op.tensor), t.slot(op.address)
        self.mark = t.mark_of(op.address)
        self.coordinates = [t.slot(c) for c in op.coordinates]
        self.made = Made(t, op)

    def place(self, s: Slots, m: Batch) -> tuple[Box, Any, Any] | None:
        """The box and the chunks of shared memory that it fills, in its order and in any; None
        after a finding."""
        memory: Memory = s[self.tensor]
        starts = tuple(int(s[c]) for c in self.coordinates)
        address, op = m.state.byte_at(s[self.address]), self.op
        region = self.made.region(s, m)
        if self.made and region is None:
            return None
        box = Box(self.map, memory, starts, region)
        wrong = "" if self.made else alignment(self.map, memory)
        if wrong:
            message = f"the copy engine cannot move boxes of `{memory.name}`"
            sync_faults.misaligned(m, op, message, wrong)
            return None
        wrong = unaligned_start(starts[0], memory)
        if wrong:
            message = f"a box of `{memory.name}` starts between two multiples of 16 bytes of a row"
            sync_faults.misaligned(m, op, message, wrong)
            return None
        row = self.map.box[0] * memory.itemsize
        if row % CHUNK:
            message = f"rows of a box of `{memory.name}` are no multiples of 16 bytes"
            sync_faults.misaligned(m, op, message, f"{row} bytes")
            return None
        if address % _ALIGN:
            message = "a box does not start at a multiple of 128 bytes of shared memory"
            sync_faults.misaligned(m, op, message, f"{m.state.name_of(address)}, byte {address}")
            return None
        if address < 0 or address + box.size > m.pitch:
            sync_faults.outside(m, op, "this copy", address, box.size)
            return None
        at = address, box.size, self.map.swizzle
        return box, places_of(*at), reach_of(*at)


@simulates(tma.PrefetchMap)
def prefetch_map(t: Translator, op: tma.PrefetchMap) -> Step:
    """A matter of time only."""

    def step(s: Slots, m: Batch) -> None:
        return None

    return step


@simulates(tma.PrefetchBox)
def prefetch_box(t: Translator, op: tma.PrefetchBox) -> Step:
    """A matter of time only, but for what the engine cannot take."""
    described: TensorMap = t.kernel.maps[op.map]
    tensor, made = t.slot(op.tensor), Made(t, op)

    def step(s: Slots, m: Batch) -> None:
        if made:
            made.region(s, m)
            return
        memory: Memory = s[tensor]
        wrong = alignment(described, memory)
        if wrong:
            message = f"the copy engine cannot read boxes of `{memory.name}`"
            sync_faults.misaligned(m, op, message, wrong)

    return step


@simulates(tma.LoadBox)
def load_box(t: Translator, op: tma.LoadBox) -> Step:
    copy, b = Copy(t, op), t.slot(op.barrier)
    blocks, copies = t.optional(op.multicast), t.acting

    def step(s: Slots, m: Batch) -> None:
        placed = copy.place(s, m)
        if placed is None:
            return
        address = int(s[b])
        for block in _targets(m, op, None if blocks < 0 else int(s[blocks])):
            barrier = barrier_at(m, op, address, block)
            if barrier is not None:
                for _ in range(copies):
                    _issue(m, op, block, barrier, placed, copy)

    return step


def _targets(m: Batch, op: tma.LoadBox, mask: int | None) -> list[BlockState]:
    """The blocks that a copy goes to: its own, or those of a mask."""
    if mask is None:
        return [m.state]
    ranks = [rank for rank in range(_MOST_BLOCKS) if mask >> rank & 1]
    found = (peer(m, op, rank) for rank in ranks)
    return [block for block in found if block is not None]


def _issue(
    m: Batch,
    op: tma.LoadBox,
    block: BlockState,
    barrier: Mbarrier,
    placed: tuple[Box, Any, Any],
    copy: Copy,
) -> None:
    """A copy to one block is under way."""
    there, (box, places, reach) = block.batch, placed
    if there.arena.written is not None:
        chunks_of(there.arena.written)[reach] = 0  # in flight from here on
    arrive = _arrival(there, box, places, copy)
    load = Load(m, op, box.size, block, barrier, arrive, Moves(box, reach))
    block.cluster.resident.loads.append(load)


def _arrival(m: Batch, box: Box, places: Any, copy: Copy) -> Callable[[], None]:
    outside = _not_a_number(box.memory.dtype) if copy.map.nan else 0
    mark = max(copy.mark, 1)

    def arrive() -> None:
        held = box.gather(box.memory, outside)
        chunks_of(m.arena.raw)[places] = _chunks(held)
        if m.arena.written is not None:
            shadow, good = box.memory.shadow, written(box.memory)
            state = np.full(box.shape, good, f"u{box.memory.itemsize}")
            if shadow is not None:
                state = box.gather(shadow, good)
            chunks_of(m.arena.written)[places] = _chunks(state * state.dtype.type(mark))

    return arrive


def _not_a_number(dtype: DType) -> Any:
    """NaN as memory holds it."""
    return np.array(np.nan, dtype.numpy).view(carrier(dtype))[()]


def _chunks(array: np.ndarray) -> np.ndarray:
    return chunks_of(array.reshape(-1).view(np.uint8))


# ---- stores ------------------------------------------------------------------------------------


@simulates(tma.StoreBox)
def store_box(t: Translator, op: tma.StoreBox) -> Step:
    copy, copies = Copy(t, op), t.acting

    def step(s: Slots, m: Batch) -> None:
        placed = copy.place(s, m)
        if placed is None:
            return
        box, places, reach = placed
        if not box.memory.writable:
            faults.read_only(m, op, box.memory)
            return
        for _ in range(copies):
            read, write = _reading(m, op, box, places, copy.mark), _writing(op, box)
            made = Store(m, op, read, write, Moves(box, reach))
            m.actor.bulk.open.append(made)

    return step


def _reading(
    m: Batch, op: tma.StoreBox, box: Box, places: Any, mark: int
) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        if m.arena.written is not None:
            state = m.arena.written.reshape(-1, CHUNK)[places]
            flags = holds(state, mark)
            if not flags.all():
                chunk = int((~flags.all(axis=1)).argmax())
                first = np.arange(len(m.arena.raw) // CHUNK)[places][chunk] * CHUNK
                over = bool(state[chunk].any())
                sync_faults.unwritten(m, op, "is stored here", int(first), over)
        held = np.array(chunks_of(m.arena.raw)[places])
        return held.view(box.memory.flat.dtype).reshape(box.shape)

    return read


def _writing(op: tma.StoreBox, box: Box) -> Callable[[np.ndarray], None]:
    combine = arithmetic.binary(op.reduce, box.memory.dtype) if op.reduce else None

    def write(held: np.ndarray) -> None:
        target, part = box.window(box.memory), held[box.part]
        if target.size == 0:
            return
        target[...] = part if combine is None else combine(target.copy(), part)
        if box.memory.shadow is not None:
            box.window(box.memory.shadow)[...] = written(box.memory)

    return write


@simulates(tma.Commit)
def commit(t: Translator, op: tma.Commit) -> Step:
    def step(s: Slots, m: Batch) -> None:
        m.actor.bulk.commit()

    return step


@simulates(tma.Wait)
def wait(t: Translator, op: tma.Wait) -> Step:
    def start(s: Slots, m: Batch) -> Run:
        if m.state.shuffles:
            yield None
        m.actor.bulk.wait(op.pending, op.reads)

    return Resumable(start)

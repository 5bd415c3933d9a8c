"""Bulk copies of bytes in one piece: issued here, done later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.ir.ops import bulk
from warploom.sim import arithmetic, faults, sync_faults
from warploom.sim.barriers import Mbarrier
from warploom.sim.block import Load, Moves, Store
from warploom.sim.boxes import CHUNK, chunks_of
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.memory import Memory
from warploom.sim.registry import simulates
from warploom.sim.rules.mbarrier import barrier_at
from warploom.sim.shadow import holds, written

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


class Run:
    """Elements first … first + count − 1 of a tensor's memory."""

    __slots__ = ("memory", "part")

    def __init__(self, memory: Memory, first: int, count: int) -> None:
        self.memory = memory
        self.part = slice(first, first + count)

    def numbers(self, every: int) -> np.ndarray:
        """Places of its elements, one of `every` in a row."""
        return np.arange(self.part.start, self.part.stop, every)

    @classmethod
    def of(cls, m: Batch, op: Any, memory: Memory, base: int) -> Run | None:
        """The run of a copy; None after a finding."""
        count, first = op.bytes // memory.itemsize, base + memory.origin
        over = (first + memory.unit) * memory.itemsize % CHUNK
        if over:
            message = f"a bulk copy of `{memory.name}` does not start at a multiple of 16 bytes"
            sync_faults.misaligned(m, op, message, f"it starts {over} bytes after one")
            return None
        places = np.arange(first, first + count).reshape(-1, 1, 1, 1)
        outside = (places < 0) | (places >= memory.limit)
        if outside.any():
            faults.out_of_bounds(m, op, memory, places, outside)
            return None
        return cls(memory, first, count)


def places_of(m: Batch, op: bulk.LoadBytes | bulk.StoreBytes, address: int) -> slice | None:
    """The chunks of shared memory at a byte address; None after a finding."""
    if address % CHUNK:
        message = "a bulk copy does not start at a multiple of 16 bytes of shared memory"
        sync_faults.misaligned(m, op, message, f"{m.state.name_of(address)}, byte {address}")
        return None
    if address < 0 or address + op.bytes > m.pitch:
        sync_faults.outside(m, op, "this copy", address, op.bytes)
        return None
    return slice(address // CHUNK, (address + op.bytes) // CHUNK)


@simulates(bulk.LoadBytes)
def load_bytes(t: Translator, op: bulk.LoadBytes) -> Step:
    tensor, base = t.slot(op.tensor), t.slot(op.base)
    address, b, copies = t.slot(op.address), t.slot(op.barrier), t.acting
    mark = t.mark_of(op.address)

    def step(s: Slots, m: Batch) -> None:
        barrier = barrier_at(m, op, s[b])
        run = Run.of(m, op, s[tensor], int(s[base]))
        places = places_of(m, op, m.state.byte_at(s[address]))
        if barrier is None or places is None:
            return
        if run is None:  # found: let its bytes count, so that nobody waits for ever
            m.state.cluster.resident.loads.append(_load(m, op, barrier, lambda: None, None))
            return
        if m.arena.written is not None:
            chunks_of(m.arena.written)[places] = 0  # in flight from here on
        for _ in range(copies):
            arrive = _arrival(m, run, places, max(mark, 1))
            made = _load(m, op, barrier, arrive, Moves(run, places))
            m.state.cluster.resident.loads.append(made)

    return step


def _load(
    m: Batch,
    op: bulk.LoadBytes,
    barrier: Mbarrier,
    arrive: Callable[[], None],
    moves: Moves | None,
) -> Load:
    return Load(m, op, op.bytes, m.state, barrier, arrive, moves)


def _arrival(m: Batch, run: Run, places: slice, mark: int) -> Callable[[], None]:
    def arrive() -> None:
        memory = run.memory
        chunks_of(m.arena.raw)[places] = chunks_of(memory.flat[run.part].view(np.uint8))
        if m.arena.written is not None:
            count, unit = run.part.stop - run.part.start, f"u{memory.itemsize}"
            state = np.full(count, written(memory), unit)
            if memory.shadow is not None:
                state = memory.shadow.flat[run.part]
            chunks_of(m.arena.written)[places] = chunks_of(state.view(np.uint8) * np.uint8(mark))

    return arrive


@simulates(bulk.StoreBytes)
def store_bytes(t: Translator, op: bulk.StoreBytes) -> Step:
    tensor, base, address = t.slot(op.tensor), t.slot(op.base), t.slot(op.address)
    copies, mark = t.acting, t.mark_of(op.address)

    def step(s: Slots, m: Batch) -> None:
        memory: Memory = s[tensor]
        run = Run.of(m, op, memory, int(s[base]))
        places = places_of(m, op, m.state.byte_at(s[address]))
        if run is None or places is None:
            return
        if not memory.writable:
            faults.read_only(m, op, memory)
            return
        for _ in range(copies):
            read, write = _reading(m, op, memory, places, mark), _writing(op, run)
            made = Store(m, op, read, write, Moves(run, places))
            m.actor.bulk.open.append(made)

    return step


def _reading(
    m: Batch, op: bulk.StoreBytes, memory: Memory, places: slice, mark: int
) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        if m.arena.written is not None:
            state = m.arena.written.reshape(-1, CHUNK)[places]
            flags = holds(state, mark)
            if not flags.all():
                chunk = int((~flags.all(axis=1)).argmax())
                first, over = (places.start + chunk) * CHUNK, bool(state[chunk].any())
                sync_faults.unwritten(m, op, "is stored here", first, over)
        return np.array(chunks_of(m.arena.raw)[places]).view(memory.flat.dtype)

    return read


def _writing(op: bulk.StoreBytes, run: Run) -> Callable[[np.ndarray], None]:
    memory = run.memory
    combine = arithmetic.binary(op.reduce, memory.dtype) if op.reduce else None

    def write(held: np.ndarray) -> None:
        target = memory.flat[run.part]
        target[...] = held if combine is None else combine(target.copy(), held)
        if memory.shadow is not None:
            memory.shadow.flat[run.part] = written(memory)

    return write


@simulates(bulk.PrefetchBytes)
def prefetch_bytes(t: Translator, op: bulk.PrefetchBytes) -> Step:
    """A matter of time only, but for what lies outside."""
    tensor, base = t.slot(op.tensor), t.slot(op.base)

    def step(s: Slots, m: Batch) -> None:
        Run.of(m, op, s[tensor], int(s[base]))

    return step

"""Events of accesses: copies, products, ordinary loads and stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.ir.op import Op
from warploom.ir.ops import bulk, global_memory, shared_memory, tma, wgmma
from warploom.ir.ops.sync import SCOPES
from warploom.sim.accesses import Place
from warploom.sim.booking import (
    ALL,
    BookedLoad,
    Piece,
    Site,
    chunk_cells,
    element_cells,
)
from warploom.sim.boxes import Box
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.matrix import places
from warploom.sim.memory import Memory
from warploom.sim.order.engine import Agent
from warploom.sim.order.history import Does
from warploom.sim.order_table import after, before, orders, who_executes
from warploom.sim.rules.bulk import Run as RunOfBytes
from warploom.sim.rules.bulk import places_of
from warploom.sim.rules.global_memory import Global
from warploom.sim.rules.shared_memory import Shared
from warploom.sim.rules.tma import Copy
from warploom.sim.rules.wgmma import left_operand, right_operand
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.block import Load
    from warploom.sim.translate import Translator

# ---- copies ------------------------------------------------------------------------------------


@orders(tma.LoadBox)
def load_box(t: Translator, op: tma.LoadBox, step: Step) -> Step:
    return _loading(op, step, who_executes(t), _box_parts(t, op))


@orders(bulk.LoadBytes)
def load_bytes(t: Translator, op: bulk.LoadBytes, step: Step) -> Step:
    return _loading(op, step, who_executes(t), _run_parts(t, op))


def _box_parts(t: Translator, op: tma.LoadBox | tma.StoreBox) -> FindParts:
    copy = Copy(t, op)

    def parts(s: Slots, m: Batch) -> Parts | None:
        placed = copy.place(s, m)
        if placed is None:
            return None
        box, at = placed
        return at, box.memory, lambda piece: window_cells(box, piece)

    return parts


def _run_parts(t: Translator, op: bulk.LoadBytes | bulk.StoreBytes) -> FindParts:
    tensor, base, address = t.slot(op.tensor), t.slot(op.base), t.slot(op.address)

    def parts(s: Slots, m: Batch) -> Parts | None:
        run = RunOfBytes.of(m, op, s[tensor], int(s[base]))
        at = places_of(m, op, m.state.byte_at(s[address]))
        if run is None or at is None:
            return None
        numbers = np.arange(run.part.start, run.part.stop)
        return at, run.memory, lambda piece: element_cells(numbers, run.memory, piece)

    return parts


Parts = tuple[Any, Memory, Callable[[Piece], np.ndarray]]
"""Of a copy: chunks of shared memory, the tensor, and its cells there."""
FindParts = Callable[[Slots, Batch], Parts | None]


def _loading(op: Op, step: Step, who: str, parts: FindParts) -> Step:
    """A copy to shared memory: what it issues is under way from there on."""

    def run(s: Slots, m: Batch) -> None:
        booking, loads = m.state.booking, m.state.cluster.resident.loads
        old = len(loads)
        step(s, m)
        found = parts(s, m) if len(loads) > old else None
        threads = booking.threads(m.actor, who)
        for number in range(old, len(loads)):
            thread = int(threads[(number - old) % len(threads)])
            agent = book_load(m, op, loads[number], thread, None if found is None else found[0])
            source = None if found is None else booking.tensor(found[1])
            if found is not None and source is not None:
                history, cells = source.history, found[2](source)
                booking.engine.copy_access(history, cells, Does.READ, agent, thread, Site(m, op))

    return run


def book_load(m: Batch, op: Op, load: Load, thread: int, places: Any) -> Agent:
    """A load is under way from here on, and with it its write to shared memory (None: there is
    none, after a finding)."""
    booking, site = m.state.booking, Site(m, op)
    engine, piece = booking.engine, booking.shared(load.block)
    agent = engine.begin_copy(thread)
    if places is not None:
        cells = chunk_cells(places, piece)
        engine.copy_access(piece.history, cells, Does.WRITE, agent, thread, site)
    phase = booking.book(load.barrier).issue(thread, load.size, site)
    load.booked = BookedLoad(booking, load, agent, phase)
    return agent


def window_cells(box: Box, piece: Piece) -> np.ndarray:
    """The cells of a box that lie in its tensor."""
    at = np.asarray(box.offset, np.int64)
    for count, step in zip(box.within, box.strides, strict=True):
        at = np.add.outer(at, np.arange(count) * step)
    return element_cells(at, box.memory, piece)


@orders(tma.StoreBox)
def store_box(t: Translator, op: tma.StoreBox, step: Step) -> Step:
    return _storing(op, step, who_executes(t), _box_parts(t, op), bool(op.reduce))


@orders(bulk.StoreBytes)
def store_bytes(t: Translator, op: bulk.StoreBytes, step: Step) -> Step:
    return _storing(op, step, who_executes(t), _run_parts(t, op), bool(op.reduce))


def _storing(op: Op, step: Step, who: str, parts: FindParts, reduces: bool) -> Step:
    """A copy from shared memory by bulk groups."""
    does = Does.REDUCE if reduces else Does.WRITE

    def event(s: Slots, m: Batch) -> None:
        found = parts(s, m)
        if found is None:
            return
        at, memory, cells = found
        booking = m.state.booking
        piece, target = booking.shared(m.state), booking.tensor(memory)
        source = (piece.history, chunk_cells(at, piece))
        written = None if target is None else (target.history, cells(target))
        for thread in booking.threads(m.actor, who):
            booking.engine.store(int(thread), source, written, does, Site(m, op))

    return before(step, event)


@orders(tma.Commit)
def commit_copies(t: Translator, op: tma.Commit, step: Step) -> Step:
    who = who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        for thread in booking.threads(m.actor, who):
            booking.engine.commit_bulk(int(thread))

    return before(step, event)


@orders(tma.Wait)
def wait_copies(t: Translator, op: tma.Wait, step: Step) -> Step:
    who = who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        for thread in booking.threads(m.actor, who):
            booking.engine.wait_bulk(int(thread), op.pending, op.reads)

    return after(step, event)


# ---- products ----------------------------------------------------------------------------------


@orders(wgmma.Mma, wgmma.MmaRegisters)
def multiply(t: Translator, op: wgmma.Mma | wgmma.MmaRegisters, step: Step) -> Step:
    operands = [(right_operand(op), t.slot(op.b))]
    if isinstance(op, wgmma.Mma):
        operands.append((left_operand(op), t.slot(op.a)))

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        piece = booking.shared(m.state)
        cells = []
        for operand, address in operands:
            at, last = places(operand, int(s[address]))
            if last <= m.pitch:
                cells.append(chunk_cells(at, piece))
        unit, warps = booking.engine.products(m.actor), booking.warps(m.actor)
        booking.engine.multiply(unit, warps, piece.history, cells, Site(m, op))

    return before(step, event)


@orders(wgmma.Commit)
def commit_products(t: Translator, op: wgmma.Commit, step: Step) -> Step:
    def event(s: Slots, m: Batch) -> None:
        engine = m.state.booking.engine
        engine.commit(engine.products(m.actor))

    return before(step, event)


@orders(wgmma.WaitGroup, wgmma.Drain)
def wait_products(t: Translator, op: wgmma.WaitGroup | wgmma.Drain, step: Step) -> Step:
    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        unit = booking.engine.products(m.actor)
        booking.engine.retire(unit, op.pending, booking.warps(m.actor))

    return after(step, event)


# ---- ordinary accesses -------------------------------------------------------------------------


def cells_by_warp(at: Place, piece: Piece, base: Any, who: str) -> list[np.ndarray]:
    """The cells that each warp touches; `base` is what addresses count from."""
    numbers = at.plan.elements + at.span.shift - base
    flags = None
    if at.mask is not None:
        numbers, flags = np.broadcast_arrays(numbers, dense(at.mask))
    result = []
    for warp in range(numbers.shape[-2]):
        own = numbers[..., warp, :]
        if who != ALL:
            own = own[..., :1]
        if flags is not None:
            chosen = flags[..., warp, :]
            own = own[chosen if who == ALL else chosen[..., :1]]
        result.append(element_cells(own, at.memory, piece))
    return result


def _by_warps(cells: list[np.ndarray], warps: int) -> list[np.ndarray]:
    return cells * warps if len(cells) == 1 else cells


_STORES = (shared_memory.Store, shared_memory.StoreMatrices)


@orders(shared_memory.Load, shared_memory.LoadMatrices, *_STORES)
def access_shared(t: Translator, op: Any, step: Step) -> Step:
    place, who = Shared(t, op).place, who_executes(t)
    does = Does.WRITE if isinstance(op, _STORES) else Does.READ

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        piece, at = booking.shared(m.state), place(s, m)
        cells = cells_by_warp(at, piece, m.rows * at.memory.pitch, who)
        booking.touch(m, op, piece, does, who, _by_warps(cells, m.actor.warps))

    return before(step, event)


@orders(global_memory.Load, global_memory.Store)
def access_global(t: Translator, op: Any, step: Step) -> Step:
    tensor, place, who = t.slot(op.tensor), Global(t, op).place, who_executes(t)
    does = Does.WRITE if isinstance(op, global_memory.Store) else Does.READ

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        piece = booking.tensor(s[tensor])
        if piece is not None:
            cells = cells_by_warp(place(s, m), piece, 0, who)
            booking.touch(m, op, piece, does, who, _by_warps(cells, m.actor.warps))

    return before(step, event)


@orders(global_memory.LoadScalar)
def load_scalar(t: Translator, op: global_memory.LoadScalar, step: Step) -> Step:
    tensor, base, allowed = t.slot(op.tensor), t.slot(op.base), t.optional(op.predicate)
    who = who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        memory: Memory = s[tensor]
        booking = m.state.booking
        piece = booking.tensor(memory)
        if piece is None or (allowed >= 0 and not np.all(s[allowed])):
            return
        number = int(np.reshape(s[base], (-1,))[0]) + memory.origin
        if 0 <= number < memory.size:
            cells = element_cells(np.array([number]), memory, piece)
            booking.touch(m, op, piece, Does.READ, who, cells)

    return before(step, event)


@orders(global_memory.Atomic)
def atomic(t: Translator, op: global_memory.Atomic, step: Step) -> Step:
    """Atomic operations commute with each other. One with release publishes what its thread knows
    at the element, one with acquire learns what has been published there."""
    tensor, place, who = t.slot(op.tensor), Global(t, op).place, who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        piece = booking.tensor(s[tensor])
        if piece is None:
            return
        cells = _by_warps(cells_by_warp(place(s, m), piece, 0, who), m.actor.warps)
        booking.touch(m, op, piece, Does.REDUCE, who, cells, SCOPES.index(op.scope))
        booking.exchange(m, op, piece, who, cells)

    return before(step, event)

"""Events of accesses: copies, products, ordinary loads and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.ir.op import Op
from warploom.ir.ops import bulk, global_memory, shared_memory, tma, wgmma
from warploom.ir.ops.sync import SCOPES
from warploom.sim.accesses import Place
from warploom.sim.booking import ALL, BookedLoad, Piece, Site
from warploom.sim.cells import (
    ALL_LANES,
    Touched,
    cells_by_warp,
    chunk_cells,
    element_cells,
    part_cells,
)
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.matrix import places
from warploom.sim.memory import Memory
from warploom.sim.order.engine import Agent
from warploom.sim.order.history import Does
from warploom.sim.order_descriptors import Reads
from warploom.sim.order_table import after, before, orders, who_executes
from warploom.sim.rules.global_memory import Global
from warploom.sim.rules.shared_memory import Shared
from warploom.sim.rules.wgmma import left_operand, right_operand

if TYPE_CHECKING:
    from warploom.sim.block import Load
    from warploom.sim.translate import Translator

# ---- copies ------------------------------------------------------------------------------------


@orders(tma.LoadBox, bulk.LoadBytes)
def load(t: Translator, op: tma.LoadBox | bulk.LoadBytes, step: Step) -> Step:
    """A copy to shared memory: what it issues is under way from there on."""
    who, made_by = who_executes(t), Reads(t, op)

    def run(s: Slots, m: Batch) -> None:
        booking, loads = m.state.booking, m.state.cluster.resident.loads
        old = len(loads)
        step(s, m)
        threads = booking.threads(m.actor, who)
        for number, made in enumerate(loads[old:]):
            thread = int(threads[number % len(threads)])
            moves = made.moves
            agent = book_load(m, op, made, thread, None if moves is None else moves.chunks)
            if made_by:
                made_by.book(s, m, thread, agent)
            source = None if moves is None else booking.tensor(moves.part.memory)
            if moves is not None and source is not None:
                history, cells = source.history, part_cells(moves.part, source)
                booking.engine.copy_access(
                    history, cells, Does.READ, agent, thread, Site.here(m, op)
                )

    return run


def book_load(m: Batch, op: Op, load: Load, thread: int, chunks: Any, peer: bool = False) -> Agent:
    """A load is under way from here on, and with it its write to shared memory (None: there is
    none, after a finding). `peer`: it comes from the shared memory of another block."""
    booking, site = m.state.booking, Site.here(m, op)
    engine, piece = booking.engine, booking.shared(load.block)
    agent = engine.begin_copy(thread, peer)
    if chunks is not None:
        cells = chunk_cells(chunks, piece)
        engine.copy_access(piece.history, cells, Does.WRITE, agent, thread, site)
    booking.book(load.barrier).check_published(site)
    phase = booking.book(load.barrier).issue(thread, load.size, site)
    load.booked = BookedLoad(booking, load, agent, phase)
    return agent


@orders(tma.StoreBox, bulk.StoreBytes)
def store(t: Translator, op: tma.StoreBox | bulk.StoreBytes, step: Step) -> Step:
    """A copy from shared memory by bulk groups."""
    does, who = Does.REDUCE if op.reduce else Does.WRITE, who_executes(t)
    made_by = Reads(t, op)

    def run(s: Slots, m: Batch) -> None:
        booking, stores = m.state.booking, m.actor.bulk.open
        old = len(stores)
        step(s, m)
        threads = booking.threads(m.actor, who)
        for number, made in enumerate(stores[old:]):
            part, chunks = made.moves
            piece, target = booking.shared(m.state), booking.tensor(part.memory)
            source = (piece.history, chunk_cells(chunks, piece))
            written = None if target is None else (target.history, part_cells(part, target))
            thread = int(threads[number % len(threads)])
            if made_by:
                made_by.book(s, m, thread, None)
            booking.engine.store(thread, source, written, does, Site.here(m, op))

    return run


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
        booking.engine.multiply(unit, warps, piece.history, cells, Site.here(m, op))

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


def cells_of(m: Batch, at: Place, piece: Piece, who: str) -> list[Touched]:
    """The cells that each warp of an actor touches."""
    cells = cells_by_warp(at, piece, alone=who != ALL)
    return cells * m.actor.warps if len(cells) == 1 else cells


_STORES = (shared_memory.Store, shared_memory.StoreMatrices)


@orders(shared_memory.Load, shared_memory.LoadMatrices, *_STORES)
def access_shared(t: Translator, op: Any, step: Step) -> Step:
    """Matrices are moved by a warp as a whole: a lane gets what another one has addressed."""
    place, who = Shared(t, op).place, who_executes(t)
    does = Does.WRITE if isinstance(op, _STORES) else Does.READ
    together = isinstance(op, shared_memory.LoadMatrices | shared_memory.StoreMatrices)

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        piece, at = booking.shared(m.state), place(s, m)
        cells = cells_of(m, at, piece, who)
        if together:
            cells = [own.by_all() for own in cells]
        booking.touch(m, op, piece, does, who, cells)

    return before(step, event)


@orders(global_memory.Load, global_memory.Store)
def access_global(t: Translator, op: Any, step: Step) -> Step:
    tensor, place, who = t.slot(op.tensor), Global(t, op).place, who_executes(t)
    does = Does.WRITE if isinstance(op, global_memory.Store) else Does.READ

    def event(s: Slots, m: Batch) -> None:
        booking = m.state.booking
        piece = booking.tensor(s[tensor])
        if piece is not None:
            booking.touch(m, op, piece, does, who, cells_of(m, place(s, m), piece, who))

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
            own = Touched(cells, ALL_LANES)
            booking.touch(m, op, piece, Does.READ, who, [own] * m.actor.warps)

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
        cells = cells_of(m, place(s, m), piece, who)
        booking.touch(m, op, piece, Does.REDUCE, who, cells, SCOPES.index(op.scope))
        booking.exchange(m, op, piece, who, cells)

    return before(step, event)

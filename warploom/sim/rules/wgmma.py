"""The matrix unit: products are issued here and computed when their group is waited for, from what
shared memory holds then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from warploom.base.dtypes import DType, f32, i32
from warploom.ir.op import Op
from warploom.ir.ops import control, wgmma
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.shared_memory import MATRIX_BITS
from warploom.ir.types import Regs
from warploom.sim import sync_faults
from warploom.sim.boxes import CHUNK, chunks_of
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.matrix import (
    ROWS,
    Accumulator,
    Operand,
    Product,
    added,
    elements,
    fragment,
    places,
)
from warploom.sim.registry import simulates
from warploom.sim.shadow import holds
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_WARPGROUP = 4  # warps


@simulates(wgmma.Fence)
def fence(t: Translator, op: wgmma.Fence) -> Step:
    def step(s: Slots, m: Batch) -> None:
        m.actor.fenced = True

    return step


def _products(t: Translator, op: wgmma.Mma | wgmma.MmaRegisters) -> _Begin:
    """What begins a product on an accumulator, given how its operands are found."""
    if t.warps != _WARPGROUP:
        raise ValueError(f"a product runs in {_WARPGROUP} warps, not in {t.warps}")
    acc, d = t.slot(op.acc), t.slot(op.result)
    extents, block, fresh = regs_of(op.acc).extents, op.block, op.fresh
    sums = regs_of(op.acc).dtype.numpy

    def begin(s: Slots, m: Batch, run: Callable[[], np.ndarray] | None) -> None:
        value = s[acc]
        if type(value) is not Accumulator:
            if not m.actor.fenced:
                sync_faults.no_fence(m, op)
            held = np.zeros((1,) * 5, sums) if fresh else dense(value)
            value = Accumulator(held, extents)
        s[d] = value
        if run is not None:
            m.actor.matrix.issue(Product(op, value, block, run, fresh))

    return begin


_Begin = Callable[[Slots, Batch, Callable[[], np.ndarray] | None], None]


def left_operand(op: wgmma.Mma) -> Operand:
    """How A lies in shared memory."""
    return Operand(ROWS, op.a_swizzle, op.a_lead, op.a_stride, op.a_transposed)


def right_operand(op: wgmma.Mma | wgmma.MmaRegisters) -> Operand:
    """How B lies in shared memory."""
    return Operand(op.n, op.b_swizzle, op.b_lead, op.b_stride, op.b_transposed)


@simulates(wgmma.Mma)
def multiply(t: Translator, op: wgmma.Mma) -> Step:
    begin, a, b, sums = _products(t, op), t.slot(op.a), t.slot(op.b), regs_of(op.acc).dtype
    left, right = left_operand(op), right_operand(op)
    marks = t.mark_of(op.a), t.mark_of(op.b)

    def step(s: Slots, m: Batch) -> None:
        first = _reading(m, op, left, int(s[a]), op.a_dtype, marks[0])
        second = _reading(m, op, right, int(s[b]), op.b_dtype, marks[1])
        if first is None or second is None:
            begin(s, m, None)
        else:
            begin(s, m, lambda: added(first(), second(), sums))

    return step


@simulates(wgmma.MmaRegisters)
def multiply_registers(t: Translator, op: wgmma.MmaRegisters) -> Step:
    begin, a, b, sums = _products(t, op), t.slot(op.a), t.slot(op.b), regs_of(op.acc).dtype
    right, mark = right_operand(op), t.mark_of(op.b)

    def step(s: Slots, m: Batch) -> None:
        left = fragment(dense(s[a]), op.block, op.step, op.run, op.a_dtype)
        second = _reading(m, op, right, int(s[b]), op.b_dtype, mark)
        if second is None:
            begin(s, m, None)
        else:
            begin(s, m, lambda: added(left, second(), sums))

    return step


def _reading(
    m: Batch, op: Op, operand: Operand, address: int, dtype: DType, mark: int
) -> Callable[[], np.ndarray] | None:
    """An operand that is read later; None where it leaves shared memory."""
    at, last = places(operand, address)
    # Bits that a descriptor has no place for would change its other numbers.
    if last > m.pitch or address >> MATRIX_BITS:
        sync_faults.outside(m, op, "an operand", address, last - address)
        return None

    def read() -> np.ndarray:
        raw, written = m.arena.raw, m.arena.written
        if written is not None:
            state = chunks_of(written).take(at).view(np.uint8)
            if not (holds(state, mark) if mark else state).all():
                _unwritten(m, op, written, at, mark)
        return elements(raw, operand, at, dtype)

    return read


def _unwritten(m: Batch, op: Op, written: np.ndarray, at: np.ndarray, mark: int) -> None:
    """An operand of which something has not been written."""
    state = written.reshape(-1, CHUNK)[at]
    bad = ~holds(state, mark).all(axis=-1)
    first, over = int(at[bad].min()) * CHUNK, bool(state[bad].any())
    sync_faults.unwritten(m, op, "reads it as an operand", first, over)


@simulates(wgmma.Commit)
def commit(t: Translator, op: wgmma.Commit) -> Step:
    def step(s: Slots, m: Batch) -> None:
        m.actor.matrix.commit()
        m.actor.fenced = False

    return step


@simulates(wgmma.WaitGroup)
def wait_group(t: Translator, op: wgmma.WaitGroup) -> Step:
    acc, d, pending = t.slot(op.acc), t.slot(op.result), op.pending

    def start(s: Slots, m: Batch) -> Run:
        if m.state.shuffles:
            yield None
        unit, value = m.actor.matrix, s[acc]
        unit.wait(pending)
        if type(value) is Accumulator:
            if unit.valid(value):
                value = value.registers()
            else:
                value.waited = op
        s[d] = value

    return Resumable(start)


@simulates(wgmma.Drain)
def drain(t: Translator, op: wgmma.Drain) -> Step:
    def start(s: Slots, m: Batch) -> Run:
        if m.state.shuffles:
            yield None
        m.actor.matrix.wait(op.pending)

    return Resumable(start)


# ---- accumulators read by others ---------------------------------------------------------------

_PASS_ON = (wgmma.Mma, wgmma.MmaRegisters, wgmma.WaitGroup, control.For, control.While, control.If)


def settled(t: Translator, op: Op, step: Step) -> Step:
    """The step of an operation that may read an accumulator: one whose products have not been
    waited for is a finding, whether they have retired in this run or not."""
    if isinstance(op, control.Assign) and op.source.storage == op.target.storage:
        return step  # nothing is copied
    slots = [
        t.slot(v)
        for v in op.operand_values()
        if isinstance(v.type, Regs) and v.type.dtype in (f32, i32) and len(v.type.extents) == 2
    ]
    if not slots or isinstance(op, _PASS_ON) or isinstance(step, Resumable):
        return step

    def checked(s: Slots, m: Batch) -> None:
        for slot in slots:
            value = s[slot]
            if type(value) is Accumulator:
                if not m.actor.matrix.valid(value):
                    sync_faults.in_flight(m, op, value)
                s[slot] = value.registers()
        step(s, m)

    return checked

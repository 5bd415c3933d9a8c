"""The matrix unit: products are issued here and computed when their group is waited for, from what
shared memory holds then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from warploom.base.dtypes import f32
from warploom.ir.op import Op
from warploom.ir.ops import control, wgmma
from warploom.ir.ops.registers import regs_of
from warploom.ir.types import Regs
from warploom.sim import sync_faults
from warploom.sim.boxes import CHUNK
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.matrix import ROWS, Accumulator, Operand, Product, elements, places, unretired
from warploom.sim.registry import simulates
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_WARPGROUP = 4  # warps


@simulates(wgmma.Fence)
def fence(t: Translator, op: wgmma.Fence) -> Step:
    def step(s: Slots, m: Batch) -> None:
        m.actor.fenced = True

    return step


@simulates(wgmma.Mma)
def multiply(t: Translator, op: wgmma.Mma) -> Step:
    if t.warps != _WARPGROUP:
        raise ValueError(f"a product runs in {_WARPGROUP} warps, not in {t.warps}")
    acc, d, a, b = (t.slot(v) for v in (op.acc, op.result, op.a, op.b))
    left = Operand(ROWS, op.a_swizzle, op.a_lead, op.a_stride, op.a_transposed)
    right = Operand(op.n, op.b_swizzle, op.b_lead, op.b_stride, op.b_transposed)
    extents = regs_of(op.acc).extents

    def step(s: Slots, m: Batch) -> None:
        value = s[acc]
        if type(value) is not Accumulator:
            if not m.actor.fenced:
                sync_faults.no_fence(m, op)
            value = Accumulator(dense(value), extents)
        s[d] = value
        run = _computing(m, op, (left, right), (int(s[a]), int(s[b])))
        m.actor.matrix.issue(Product(op, value, op.block, run))

    return step


def _computing(
    m: Batch, op: wgmma.Mma, operands: tuple[Operand, Operand], addresses: tuple[int, int]
) -> Callable[[], np.ndarray]:
    def run() -> np.ndarray:
        parts = []
        for operand, address in zip(operands, addresses, strict=True):
            at = places(operand, address)
            last = (int(at.max()) + 1) * CHUNK
            if last > m.pitch:
                sync_faults.outside(m, op, "an operand", address, last - address)
                return np.full((ROWS, op.n), np.nan, np.float32)
            if m.arena.written is not None:
                flags = m.arena.written.reshape(-1, CHUNK)[at].all(axis=-1)
                if not flags.all():
                    first = int(at[~flags].min()) * CHUNK
                    sync_faults.unwritten(m, op, "reads it as an operand", first)
            parts.append(elements(m.arena.raw, operand, at, op.dtype))
        left, right = parts
        return left @ right.T

    return run


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
        m.actor.matrix.wait(pending)
        value = s[acc]
        settled = type(value) is Accumulator and not unretired(value)
        s[d] = value.registers() if settled else value

    return Resumable(start)


@simulates(wgmma.Drain)
def drain(t: Translator, op: wgmma.Drain) -> Step:
    def start(s: Slots, m: Batch) -> Run:
        if m.state.shuffles:
            yield None
        m.actor.matrix.wait(op.pending)

    return Resumable(start)


# ---- accumulators read by others ---------------------------------------------------------------

_PASS_ON = (wgmma.Mma, wgmma.WaitGroup, control.Assign, control.Duplicate, control.For, control.If)


def settled(t: Translator, op: Op, step: Step) -> Step:
    """The step of an operation that may read an accumulator: one whose products have not retired is
    a finding."""
    slots = [
        t.slot(v)
        for v in op.operand_values()
        if isinstance(v.type, Regs) and v.type.dtype == f32 and len(v.type.extents) == 2
    ]
    if not slots or isinstance(op, _PASS_ON) or isinstance(step, Resumable):
        return step

    def checked(s: Slots, m: Batch) -> None:
        for slot in slots:
            value = s[slot]
            if type(value) is Accumulator:
                if unretired(value):
                    sync_faults.in_flight(m, op)
                s[slot] = value.registers()
        step(s, m)

    return checked

"""Prints and assertions. Lines are kept with their block and come out in block order after the
launch; their form is that of the GPU's printf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.base.dtypes import DType, Kind, boolean
from warploom.base.errors import CheckError
from warploom.ir.layout.layout import parse as parse_layout
from warploom.ir.ops import debug
from warploom.ir.ops.scalar import scalar_of
from warploom.ir.types import Regs, Scalar
from warploom.sim import faults
from warploom.sim.conversions import wide
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.prompt import Shown
from warploom.sim.registry import simulates
from warploom.sim.values import dense, scalar_array

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


def shown(value: Any, dtype: DType) -> str:
    """A number as `printf` shows it: floats with %g."""
    if dtype.kind is Kind.BOOL:
        return "True" if value else "False"
    if dtype.is_float:
        return f"{float(wide(value, dtype)):g}"
    return str(int(value))


@simulates(debug.Print)
def print_scalars(t: Translator, op: debug.Print) -> Step:
    values = [(t.slot(v), scalar_of(v).dtype) for v in op.values]

    def step(s: Slots, m: Batch) -> None:
        arrays = [
            np.broadcast_to(scalar_array(s[a], dtype, 0), (m.count, 1, 1)) for a, dtype in values
        ]
        for place, block in enumerate(m.linear):
            words = [
                shown(array[place, 0, 0], dtype)
                for array, (_, dtype) in zip(arrays, values, strict=True)
            ]
            m.launch.printed.append((int(block), debug.print_line(op.text, words)))

    return step


def full(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array of a register tile in its full shape, blocks first."""
    return np.moveaxis(np.broadcast_to(array, shape), -3, 0)


@simulates(debug.PrintTile)
def print_tile(t: Translator, op: debug.PrintTile) -> Step:
    value, predicate = t.slot(op.value), t.optional(op.predicate)
    coordinates = [t.slot(v) for v in op.coordinates]
    assert isinstance(op.value.type, Regs)
    dtype, extents = op.value.type.dtype, op.value.type.extents
    head, warps = f"{op.text} " if op.text else "", t.warps

    def step(s: Slots, m: Batch) -> None:
        shape = (*extents, m.count, warps, 32)
        held = full(dense(s[value]), shape)
        places = [full(dense(s[a]), shape) for a in coordinates]
        flags = full(dense(s[predicate]), shape) if predicate >= 0 else np.ones(held.shape, bool)
        for place, block in enumerate(m.linear):
            chosen = flags[place]
            rows = zip(
                *(axis[place][chosen].tolist() for axis in places),
                held[place][chosen],
                strict=True,
            )
            for *index, number in sorted(rows, key=lambda row: row[:-1]):
                at = ", ".join(map(str, index))
                m.launch.printed.append((int(block), f"{head}[{at}] {shown(number, dtype)}"))

    return step


@simulates(debug.Clock)
def clock(t: Translator, op: debug.Clock) -> Step:
    d = t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = m.clock[0]

    return step


@simulates(debug.Record)
def record(t: Translator, op: debug.Record) -> Step:
    trace, count, value = t.slot(op.trace), t.slot(op.at), t.optional(op.value)
    first, rows, entries, waits = op.row, op.rows, op.entries, t.waits

    def step(s: Slots, m: Batch) -> None:
        held = s[trace]
        row = first + (m.actor.replica if waits else 0)
        at = _each(s[count], m)
        values = _each(s[value], m) if value >= 0 else np.zeros(m.count, np.int64)
        place = 2 * ((m.linear.astype(np.int64) * rows + row) * entries + at)
        kept = (at < entries) & (place < held.size)
        flat, place = held.flat, place[kept] + held.origin
        flat[place] = m.clock[0]
        flat[place + 1] = (op.event << 32) | (values[kept] & 0xFFFFFFFF)
        s[count] = s[count] + 1

    return step


def _each(value: Any, m: Batch) -> np.ndarray:
    """An integer scalar as one number a block of the batch."""
    return np.broadcast_to(np.asarray(value, np.int64).reshape(-1), (m.count,))


@simulates(debug.Breakpoint)
def stop(t: Translator, op: debug.Breakpoint) -> Step:
    values = [
        (name, t.slot(v), v.type, text)
        for name, v, text in zip(op.names, op.values, op.layouts, strict=True)
    ]
    params = t.memories()

    def step(s: Slots, m: Batch) -> None:
        names = {}
        for name, slot, type, text in values:
            layout = parse_layout(text) if text else None
            assert isinstance(type, Scalar | Regs)
            names[name] = Shown(s[slot], type.dtype, layout, isinstance(type, Scalar))
        memories = {name: s[slot] for name, slot in params if s[slot] is not None}
        m.launch.prompt.stop(t.stop(op.loc, m, names, memories, op.constants))

    return step


def _element(op: debug.Assert, index: tuple[int, ...]) -> str:
    """The element of the asserted tile at an index of its array, where the layout is known."""
    type = op.condition.type
    if not isinstance(type, Regs) or type.layout is None or not type.extents:
        return ""
    *registers, _, warp, lane = index
    coordinates = [
        int(type.layout.coordinates(axis)[register, warp, lane])
        for axis, register in enumerate(registers)
    ]
    return f"element [{', '.join(map(str, coordinates))}]"


@simulates(debug.Assert)
def assertion(t: Translator, op: debug.Assert) -> Step:
    condition, predicate = t.slot(op.condition), t.optional(op.predicate)

    def step(s: Slots, m: Batch) -> None:
        held = s[condition]
        if not isinstance(op.condition.type, Regs):
            held = scalar_array(held, boolean, 0)
        failed = ~dense(held)
        if predicate >= 0:
            failed = failed & dense(s[predicate])
        if not failed.any():
            return
        index, block = faults.first_in_block_order(failed, m)
        found = faults.failed_assertion(m, op, block, _element(op, index))
        if not m.launch.checked:
            raise CheckError(found)
        m.launch.find(found, op.loc)

    return step

"""What accesses and values do wrong, as reports: place in the source, block, tensor, element."""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.base.diagnostics import Report, Span
from warploom.base.errors import report
from warploom.ir.op import Loc, Op
from warploom.sim.machine import Batch
from warploom.sim.memory import Memory


def _first(bad: np.ndarray, m: Batch) -> tuple[tuple[np.ndarray, ...], int]:
    """The first true element in block order, as an index of `bad`, and its linear block."""
    at = np.nonzero(np.moveaxis(bad, -3, 0))
    first = tuple(int(axis[0]) for axis in at)
    index = first[1:-2] + (first[0],) + first[-2:]
    place = first[0] if bad.shape[-3] > 1 else 0
    return index, int(m.linear[place])  # type: ignore[return-value]


def element_name(memory: Memory, place: int) -> str:
    """An element of a tensor by its indices, where its place has some, else by its offset."""
    offset = place - memory.origin
    shape, strides = memory.shape, memory.strides
    if not shape:
        return f"element {offset}"
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    found = [0] * len(shape)
    rest = offset
    for axis in order:
        step = strides[axis]
        if step == 0 or shape[axis] == 1:
            continue
        found[axis] = int(rest / step) if step > 0 else -int(rest / -step)
        found[axis] = min(max(found[axis], 0), shape[axis] - 1)
        rest -= found[axis] * step
    if rest:
        return f"element at offset {offset}"
    return f"element [{', '.join(map(str, found))}]"


def _about(memory: Memory) -> str:
    name = f"`{memory.name}`" if memory.name else "the buffer"
    if memory.pitch:
        return f"{name} has {memory.limit} elements of {memory.dtype}"
    return f"{name} has shape {memory.shape}, strides {memory.strides}, {memory.dtype}"


def out_of_bounds(m: Batch, op: Op, memory: Memory, places: np.ndarray, bad: np.ndarray) -> None:
    """An address outside the tensor or buffer under a true predicate."""
    places = np.broadcast_to(places, bad.shape)
    index, block = _first(bad, m)
    offset = int(places[index]) - (0 if memory.pitch else memory.origin)
    verb = "writes to" if op.OPCODE.endswith("store") else "reads"
    name = f"`{memory.name}`" if memory.name else "a shared buffer"
    found = report(
        "M001",
        f"`{m.launch.kernel}` {verb} {name} out of bounds",
        op.loc,
        label=f"offset {offset}",
        notes=(
            f"block {m.launch.name_block(block)}, offset {offset} in elements from the first one",
            _about(memory),
        ),
        block=block,
        tensor=memory.name,
        element=offset,
    )
    m.launch.find(found, op.loc)


def misaligned(m: Batch, op: Op, memory: Memory, vec: int, places: Any, bad: np.ndarray) -> None:
    """A vector access that does not start at a multiple of its width."""
    index, block = _first(bad, m)
    place = int(np.broadcast_to(places, bad.shape)[index])
    found = report(
        "M003",
        f"`{m.launch.kernel}` accesses `{memory.name}` misaligned",
        op.loc,
        notes=(
            f"block {m.launch.name_block(block)}, {element_name(memory, place)}: an access of "
            f"{vec * memory.itemsize} bytes starts at address {(place + memory.unit) * memory.itemsize}"
            " (modulo 64 where it starts)",
            _about(memory),
        ),
        block=block,
        tensor=memory.name,
    )
    m.launch.find(found, op.loc)


def read_only(m: Batch, op: Op, memory: Memory) -> None:
    """A store to an array that must not be written."""
    found = report(
        "M005",
        f"`{m.launch.kernel}` writes to `{memory.name}`, which is read-only",
        op.loc,
        notes=(_about(memory),),
        tensor=memory.name,
    )
    m.launch.find(found, op.loc)


class Origin:
    """Where an unwritten value came from."""

    __slots__ = ("block", "element", "loc", "name")

    def __init__(self, loc: Loc, name: str, element: str, block: int) -> None:
        self.loc, self.name, self.element, self.block = loc, name, element, block


def origin_of(m: Batch, op: Op, memory: Memory, places: np.ndarray, bad: np.ndarray) -> Origin:
    """The first unwritten element that an access reads."""
    index, block = _first(bad, m)
    place = int(np.broadcast_to(places, bad.shape)[index])
    return Origin(op.loc, memory.name or "a shared buffer", element_name(memory, place), block)


def unwritten(m: Batch, op: Op, use: str, origin: Origin) -> None:
    """An unwritten value that matters. `use` says what it reached."""
    where = f"`{origin.name}`" if " " not in origin.name else origin.name
    first = Span.at(op.loc, label=use)
    spans = [first]
    if (origin.loc.file, origin.loc.line) != (op.loc.file, op.loc.line):
        spans.append(Span.at(origin.loc, label="read here"))
    found = report(
        "M002",
        f"`{m.launch.kernel}` uses memory of {where} that was never written",
        *spans,
        notes=(f"block {m.launch.name_block(origin.block)}, {origin.element} of {where}",),
        hint="write it before it is read, or mask the read",
        block=origin.block,
        tensor=origin.name,
    )
    m.launch.find(found, op.loc)


def failed_assertion(m: Batch, op: Any, block: int, element: str) -> Report:
    """The report of an `assert` that does not hold."""
    text = op.text or "the condition does not hold"
    notes = [f"block {m.launch.name_block(block)}"]
    if element:
        notes[0] += f", {element}"
    return report(
        "M004", f"assertion failed in `{m.launch.kernel}`: {text}", op.loc, notes=notes, block=block
    )

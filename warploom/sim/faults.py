"""What accesses and values do wrong, as reports: place in the source, block, tensor, element."""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.base.diagnostics import Report, Span
from warploom.base.errors import report
from warploom.ir.op import Op
from warploom.sim.machine import Batch
from warploom.sim.memory import Memory


def first_in_block_order(bad: np.ndarray, m: Batch) -> tuple[tuple[int, ...], int]:
    """The first true element in block order, as an index of `bad`, and its linear block."""
    at = np.nonzero(np.moveaxis(bad, -3, 0))
    block, *rest = (int(axis[0]) for axis in at)
    index = (*rest[:-2], block, *rest[-2:])
    return index, int(m.linear[block if bad.shape[-3] > 1 else 0])


def element_name(memory: Memory, place: int) -> str:
    """An element of a tensor by its indices, where its place has some, else by its offset."""
    shape, strides = memory.shape, memory.strides
    if not shape:
        return f"element {place - memory.origin}"
    found = [0] * len(shape)
    rest = place  # counts from the lowest address, so axes that run backwards count from their end
    for axis in sorted(range(len(shape)), key=lambda axis: -abs(strides[axis])):
        step = abs(strides[axis])
        if step and shape[axis] > 1:
            digit = min(max(rest // step, 0), shape[axis] - 1)
            rest -= digit * step
            found[axis] = digit if strides[axis] > 0 else shape[axis] - 1 - digit
    if rest:
        return f"the element at offset {place - memory.origin}"
    return f"element [{', '.join(map(str, found))}]"


def _about(memory: Memory) -> str:
    name = f"`{memory.name}`" if memory.name else "the buffer"
    if memory.pitch:
        return f"{name} has {memory.limit} elements of {memory.dtype}"
    return f"{name} has shape {memory.shape}, strides {memory.strides}, {memory.dtype}"


def out_of_bounds(m: Batch, op: Op, memory: Memory, places: np.ndarray, bad: np.ndarray) -> None:
    """An address outside the tensor or buffer under a true predicate."""
    places = np.broadcast_to(places, bad.shape)
    index, block = first_in_block_order(bad, m)
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
        hint="compare the index with the extent first, or use a window: `wl.ds(start, SIZE)`",
    )
    m.launch.find(found, op.loc)


def misaligned(m: Batch, op: Op, memory: Memory, vec: int, places: Any, bad: np.ndarray) -> None:
    """A vector access that does not start at a multiple of its width."""
    index, block = first_in_block_order(bad, m)
    place = int(np.broadcast_to(places, bad.shape)[index])
    over = (place + memory.unit) % vec * memory.itemsize
    found = report(
        "M003",
        f"`{m.launch.kernel}` accesses `{memory.name}` misaligned",
        op.loc,
        notes=(
            f"block {m.launch.name_block(block)}, {element_name(memory, place)}: an access of "
            f"{vec * memory.itemsize} bytes starts {over} bytes after a multiple of its width",
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
        hint="np.array(x) makes a copy that can be written",
    )
    m.launch.find(found, op.loc)


WRITTEN_OVER = "use the tiles one after the other, or give each bytes of its own"


class Origin:
    """What an access read that nobody had written: places and flags, blocks by `linear`. `over`:
    another tile on the same bytes was written to since."""

    __slots__ = ("bad", "linear", "loc", "memory", "over", "places")

    def __init__(
        self,
        m: Batch,
        op: Op,
        memory: Memory,
        places: np.ndarray,
        bad: np.ndarray,
        over: bool = False,
    ):
        self.loc, self.memory, self.linear, self.over = op.loc, memory, m.linear, over
        self.places, self.bad = np.broadcast_arrays(places, bad)

    @property
    def name(self) -> str:
        """The tensor or buffer in words."""
        return f"`{self.memory.name}`" if self.memory.name else "a shared buffer"

    def first(self, block: int) -> int:
        """The lowest unwritten place that this block read, or that any block read."""
        bad = self.bad
        if bad.shape[-3] > 1:
            own = bad & (self.linear == block).reshape(-1, 1, 1)
            bad = own if own.any() else bad
        return int(self.places[bad].min())


def unwritten(m: Batch, op: Op, use: str, origin: Origin, loose: np.ndarray) -> None:
    """An unwritten value that matters at the elements `loose`. `use` says what it reached."""
    _, block = first_in_block_order(loose, m)
    spans = [Span.at(op.loc, label=use)]
    if (origin.loc.file, origin.loc.line) != (op.loc.file, op.loc.line):
        spans.append(Span.at(origin.loc, label="read here"))
    element = element_name(origin.memory, origin.first(block))
    code, done = "M002", "was never written"
    notes = [f"block {m.launch.name_block(block)}, {element} of {origin.name}"]
    hint = "write it before it is read, or mask the read"
    if origin.over:
        code, done, hint = "M033", "was written over", WRITTEN_OVER
        names = " and ".join(f"`{name}`" for name in origin.memory.others)
        notes.append(f"on the same bytes: {names}")
    found = report(
        code,
        f"`{m.launch.kernel}` uses memory of {origin.name} that {done}",
        *spans,
        notes=notes,
        hint=hint,
        block=block,
        tensor=origin.memory.name,
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


def endless_loop(m: Batch, op: Op, place: int) -> None:
    """A `while` that has taken more trips than are let pass, by the block at a place of the
    batch."""
    trips = f"{m.launch.most_trips:,} trips, and its condition still holds"
    hint = (
        "let something in its body decide its condition, or wait with an operation that waits: "
        "`barrier.wait`, `wl.wait`"
    )
    _endless(m, op, place, trips, hint)


def step_of_zero(m: Batch, op: Op, place: int) -> None:
    """A `wl.range` whose step is 0 in this launch, in the block at a place of the batch."""
    _endless(m, op, place, "its step is 0", "give a step from 1 up, or from -1 down")


def _endless(m: Batch, op: Op, place: int, why: str, hint: str) -> None:
    block = int(m.linear[place if m.count > 1 else 0])
    actor = getattr(m, "actor", None)  # blocks without roles have none
    found = report(
        "D002",
        f"a loop of `{m.launch.kernel}` does not end",
        Span.at(op.loc, label="this loop", role=actor.role if actor else ""),
        notes=(f"block {m.launch.name_block(block)}: {why}",),
        hint=hint,
        block=block,
    )
    m.launch.find(found, op.loc)


def matters(m: Batch, op: Op, use: str, *slots: int) -> None:
    """Find operands whose unwritten values decide something; `use` says what."""
    for a in slots:
        shadow = m.shadow[a] if a >= 0 else None
        if shadow is not None and not shadow.flags.all():
            unwritten(m, op, use, shadow.origin, ~shadow.flags)
            m.shadow[a] = None

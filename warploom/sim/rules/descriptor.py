"""Descriptors that a kernel makes. Here a row holds, instead of what the hardware keeps to itself,
a mark and the numbers: where the part of the tensor begins, its extents and its strides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warploom.ir.ops import descriptor, tma
from warploom.ir.ops.descriptor import MOST_AXES, WORDS
from warploom.sim import sync_faults
from warploom.sim.boxes import CHUNK, Region
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.memory import Memory
from warploom.sim.registry import simulates

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_GOOD, _BAD = 1, -1  # the mark; 0 where nobody has made one
_SHAPE, _STRIDES = 2, 2 + MOST_AXES  # where they stand in a row
_LONGEST = 1 << 40  # bytes of a stride


class Made:
    """The descriptor of an operation that copies by one; false where the launch has made it."""

    def __init__(self, t: Translator, op: tma.LoadBox | tma.StoreBox | tma.PrefetchBox) -> None:
        self.op, self.rank = op, len(op.coordinates)
        self.room, self.number = t.optional(op.room), t.optional(op.number)

    def __bool__(self) -> bool:
        return self.room >= 0

    def region(self, s: Slots, m: Batch) -> Region | None:
        """What it describes; None after a finding, or where there is no descriptor."""
        if not self:
            return None
        row = row_of(s[self.room], int(s[self.number]))
        if not row[0]:
            sync_faults.found(
                m,
                self.op,
                "M037",
                "a copy goes by a descriptor that nobody has made",
                label="this copy",
                hint="`d.make(start, shape)` comes first, in a role of one warp",
            )
        if row[0] != _GOOD:
            return None  # what is wrong has been said where it was made
        shape = row[_SHAPE : _SHAPE + self.rank]
        strides = row[_STRIDES : _STRIDES + self.rank]
        return Region(int(row[1]), tuple(map(int, shape)), tuple(map(int, strides)))


def row_of(room: Memory, number: int) -> np.ndarray:
    """The words of a descriptor."""
    first = room.origin + number * WORDS
    return room.flat[first : first + WORDS]


@simulates(descriptor.Write)
def write(t: Translator, op: descriptor.Write) -> Step:
    room, number, tensor = t.slot(op.room), t.slot(op.number), t.slot(op.tensor)
    start = t.slot(op.start)
    extents, strides = ([t.slot(v) for v in many] for many in (op.extents, op.strides))

    def step(s: Slots, m: Batch) -> None:
        memory: Memory = s[tensor]
        shape = tuple(int(s[n]) for n in reversed(extents))
        steps = (*(int(s[n]) for n in reversed(strides)), 1)
        first = int(s[start])
        wrong, note = _cannot(memory, Region(memory.origin + first, shape, steps))
        if wrong:
            message = f"a descriptor of a part of `{memory.name}` {wrong}"
            notes = (note, f"start {first}, shape {shape}, strides {steps} (elements)")
            hint = "16 bytes are the unit of the copy engine: pad what is packed more tightly"
            found = sync_faults.found
            found(m, op, "M036", message, *notes, label="made here", hint=hint)
        row = row_of(s[room], int(s[number]))
        row[:] = 0
        row[0], row[1] = _BAD if wrong else _GOOD, memory.origin + first
        row[_SHAPE : _SHAPE + len(shape)] = shape
        row[_STRIDES : _STRIDES + len(steps)] = steps

    return step


def _cannot(memory: Memory, region: Region) -> tuple[str, str]:
    """What the copy engine cannot take, and the numbers; empty where all is well."""
    size = memory.itemsize
    for axis, count in enumerate(region.shape):
        if count < 1:
            return "has an empty axis", f"extent {count} (axis {axis}): pass over what is empty"
    off = (memory.unit + region.origin) * size % CHUNK
    if off:
        return "starts off 16 bytes", f"its first element lies {off} bytes after a multiple of 16"
    last = region.origin
    for axis, (count, step) in enumerate(zip(region.shape, region.strides, strict=True)):
        last += (count - 1) * step
        given = step * size
        if axis < len(region.shape) - 1 and (given % CHUNK or not 0 < given < _LONGEST):
            return "has a stride off 16 bytes", f"stride {given} bytes (axis {axis})"
    if region.origin < 0 or last >= memory.size:
        note = f"it ends with element {last - memory.origin} of {memory.size}"
        return "reaches beyond it", note
    return "", ""


@simulates(descriptor.Acquire, descriptor.Prefetch)
def acquire(t: Translator, op: descriptor.Acquire | descriptor.Prefetch) -> Step:
    """A matter of order, or of time, only."""

    def step(s: Slots, m: Batch) -> None:
        return None

    return step

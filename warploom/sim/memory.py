"""Memory as accesses see it: a flat array of carriers with bounds, and how addresses become
strided views, gathers or scatters. Knows no operation; `rules/global_memory` and
`rules/shared_memory` do."""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.base.dtypes import DType
from warploom.sim.values import Fixed, carrier, dense, scalar_array


class Memory:
    """A flat piece of memory. Element addresses count from `origin`; `raw` is its bytes."""

    __slots__ = (
        "dtype",
        "flat",
        "itemsize",
        "limit",
        "mark",
        "name",
        "origin",
        "others",
        "pitch",
        "raw",
        "shadow",
        "shape",
        "size",
        "spoilt",
        "strides",
        "unit",
        "writable",
    )

    def __init__(
        self, raw: np.ndarray, dtype: DType, origin: int = 0, name: str = "", address: int = 0
    ) -> None:
        self.raw = raw
        self.flat = raw.view(carrier(dtype))
        self.dtype = dtype
        self.itemsize = self.flat.itemsize
        self.size = self.limit = self.flat.size
        self.origin = origin
        self.name = name
        self.shape: tuple[int, ...] = ()
        self.strides: tuple[int, ...] = ()
        self.pitch = 0  # elements from one block's piece to the next, 0 where they share one
        self.writable = raw.flags.writeable
        # The first element's address in elements, as far as alignment is concerned.
        self.unit = address % 64 // self.itemsize
        self.mark = (
            1  # in the shadow of what was written here; other tiles on the bytes have others
        )
        self.others: tuple[str, ...] = ()  # their names
        self.shadow: Memory | None = None
        self.spoilt: Any = None  # where unwritten values came from that were stored here

    def overlaps(self, other: Memory) -> bool:
        """Whether both may hold one byte."""
        return np.may_share_memory(self.raw, other.raw)


class Span:
    """The part of an address that may differ among blocks: a number, or int64 [blocks, 1, 1].

    `digits` are (extent, stride) slowest first where the numbers count evenly, else None.
    """

    __slots__ = ("digits", "first", "hi", "lo", "shift")

    def __init__(self, shift: Any) -> None:
        if type(shift) is np.ndarray and shift.shape[0] == 1:
            shift = shift[0, 0, 0].item()
        self.shift: Any = shift
        if type(shift) is not np.ndarray:
            self.first = self.lo = self.hi = shift
            self.digits: tuple[tuple[int, int], ...] | None = ()
            return
        numbers = shift.reshape(-1)
        self.first = int(numbers[0])
        self.digits = _block_digits(numbers)
        if self.digits is None:
            self.lo, self.hi = int(numbers.min()), int(numbers.max())
        else:
            self.lo = self.first + sum(min(0, (n - 1) * d) for n, d in self.digits)
            self.hi = self.first + sum(max(0, (n - 1) * d) for n, d in self.digits)


def _block_digits(numbers: np.ndarray) -> tuple[tuple[int, int], ...] | None:
    count = len(numbers)
    steps = numbers[1:] - numbers[:-1]
    step = int(steps[0])
    even = steps == step
    if even.all():
        return ((count, step),)
    run = int(even.argmin()) + 1
    if count % run:
        return None
    starts = numbers[::run]
    jump = int(starts[1] - starts[0])
    regular = starts[0] + jump * np.arange(len(starts))
    inner = regular[:, None] + step * np.arange(run)
    if (inner.reshape(-1) == numbers).all():
        return ((count // run, jump), (run, step))
    return None


class Plan:
    """The part of an access's addresses that no block changes, in elements, one for each register.

    `front` and `back` are strided digits of the register axes and of warps and lanes, where the
    addresses are such a sum; `shape` is that of the value with the axis of blocks left out.
    """

    __slots__ = (
        "aligned",
        "axis",
        "back",
        "cells",
        "elements",
        "first",
        "front",
        "hi",
        "lo",
        "shape",
        "vec",
    )

    def __init__(self, offset: np.ndarray, axis: int, vec: int) -> None:
        self.vec, self.axis = vec, axis
        self.cells: dict[Any, Any] = {}  # in checked mode: those that each warp touches
        # All groups start at one remainder of the width, or some access is misaligned for sure.
        rest = offset.reshape(-1) % vec
        self.aligned = int(rest[0]) if (rest == rest[0]).all() else -1
        elements = offset
        if vec > 1:
            elements = np.repeat(offset, vec, axis)
            elements = elements + self.ramp(elements.shape)
        self.elements = elements.astype(np.int64)
        self.first = int(self.elements.reshape(-1)[0])
        self.lo, self.hi = int(self.elements.min()), int(self.elements.max())
        self.shape = self.elements.shape[:-3], self.elements.shape[-2:]
        # Offsets that differ among blocks (a gather's) are no sum that leaves blocks out, though
        # they may count evenly.
        digits = _digits(self.elements) if self.elements.shape[-3] == 1 else None
        self.front: tuple[tuple[int, int], ...] | None = None
        self.back: tuple[tuple[int, int], ...] = ()
        if digits is not None:
            self.front = tuple(d for axis_digits in digits[:-3] for d in axis_digits)
            self.back = tuple(d for axis_digits in digits[-2:] for d in axis_digits)

    def ramp(self, shape: tuple[int, ...]) -> np.ndarray:
        """Each register's place in its vector group."""
        extents = [1] * len(shape)
        extents[self.axis] = shape[self.axis]
        return (np.arange(shape[self.axis]) % self.vec).reshape(extents)

    @classmethod
    def of(cls, offset: Fixed, axis: int, vec: int) -> Plan:
        """The plan of offsets that recur; made once."""
        return offset.keep(("plan", axis, vec), lambda: cls(offset.array, axis, vec))


def _digits(elements: np.ndarray) -> list[list[tuple[int, int]]] | None:
    """Digits (extent, stride) of each axis where addresses are a sum over the axes."""
    total = elements.reshape(-1)[0]
    result = []
    origin = (0,) * elements.ndim
    for axis, extent in enumerate(elements.shape):
        profile = elements[origin[:axis] + (slice(None),) + origin[axis + 1 :]]
        profile = profile - profile[0]
        found = _count_evenly(profile)
        if found is None:
            return None
        result.append(found)
        shape = [1] * elements.ndim
        shape[axis] = extent
        total = total + profile.reshape(shape)
    return result if np.array_equal(np.broadcast_to(total, elements.shape), elements) else None


def _count_evenly(numbers: np.ndarray) -> list[tuple[int, int]] | None:
    """Mixed-radix digits of a sequence that starts at 0, slowest first."""
    digits: list[tuple[int, int]] = []
    while len(numbers) > 1:
        step = int(numbers[1])
        uneven = numbers != step * np.arange(len(numbers))
        run = int(uneven.argmax()) if uneven.any() else len(numbers)
        while run > 1 and len(numbers) % run:
            run -= 1
        if run == 1:
            return None
        inner = step * np.arange(run)
        starts = numbers[::run]
        if not np.array_equal((starts[:, None] + inner).reshape(-1), numbers):
            return None
        digits.append((run, step))
        numbers = starts
    return digits[::-1]


# ---- reading -----------------------------------------------------------------------------------


def view_of(memory: Memory, plan: Plan, span: Span) -> np.ndarray | None:
    """The addressed elements as a strided view, digits as axes; None where they do not count
    evenly. All must lie in the memory."""
    if plan.front is None or span.digits is None:
        return None
    digits = plan.front + span.digits + plan.back
    size = memory.itemsize
    return np.ndarray(
        tuple([n for n, _ in digits]),
        memory.flat.dtype,
        memory.raw,
        (plan.first + span.first) * size,
        tuple([stride * size for _, stride in digits]),
    )


def inside(memory: Memory, plan: Plan, span: Span) -> bool:
    """Whether all addresses of an access lie in the memory, masked ones included."""
    return bool(plan.lo + span.lo >= 0 and plan.hi + span.hi < memory.size)


def full_shape(plan: Plan, span: Span) -> tuple[int, ...]:
    """Shape of an access's value."""
    count = 1 if type(span.shift) is int else len(span.shift)
    return plan.shape[0] + (count,) + plan.shape[1]


def read(memory: Memory, plan: Plan, span: Span) -> np.ndarray:
    """The elements of an access whose addresses all lie in the memory."""
    view = view_of(memory, plan, span)
    if view is None:
        return memory.flat.take(plan.elements + span.shift)
    out = np.empty(full_shape(plan, span), memory.flat.dtype)
    out.reshape(view.shape)[...] = view
    return out


def read_where(memory: Memory, plan: Plan, span: Span, mask: Any, other: Any) -> np.ndarray:
    """The elements where the mask (of single elements) holds, else `other`. Addresses under a false
    mask may lie anywhere; what is outside under a true one gives `other` too."""
    filler = scalar_array(other, memory.dtype, len(plan.shape[0]))
    if type(mask) is Fixed and not mask.hi:
        return filler
    flags = dense(mask)
    if inside(memory, plan, span):
        out = read(memory, plan, span)
        if filler.size == 1 and fits(flags.shape, out.shape):
            np.copyto(out, filler, where=~flags)
            return out
        return np.where(flags, out, filler)
    places = plan.elements + span.shift
    if memory.size == 0:
        return filler
    flags = flags & (places >= 0) & (places < memory.size)
    return np.where(flags, memory.flat.take(np.where(flags, places, 0)), filler)


def fits(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """`shape` broadcasts to `target` without enlarging it."""
    return len(shape) == len(target) and all(
        n in (1, m) for n, m in zip(shape, target, strict=True)
    )


def of_elements(mask: Any, axis: int, vec: int) -> Any:
    """A predicate of vector groups as one of single elements."""
    if type(mask) is Fixed:
        if vec == 1 or mask.array.shape[axis] == 1:
            return mask
        return mask.keep(("repeat", axis, vec), lambda: Fixed(np.repeat(mask.array, vec, axis)))
    if vec == 1 or mask.shape[axis] == 1:
        return mask
    return np.repeat(mask, vec, axis)


# ---- writing -----------------------------------------------------------------------------------


def write(memory: Memory, plan: Plan, span: Span, value: np.ndarray) -> None:
    """Store to addresses that all lie in the memory. Where threads meet, one of them wins."""
    shape = full_shape(plan, span)
    if fits(value.shape, shape):
        view = view_of(memory, plan, span)
        if view is not None:
            view[...] = np.broadcast_to(value, shape).reshape(view.shape)
            return
    places, value = np.broadcast_arrays(plan.elements + span.shift, value)
    _put(memory.flat, places, value)


def write_where(memory: Memory, plan: Plan, span: Span, value: np.ndarray, mask: Any) -> None:
    """Store where the mask (of single elements) holds; addresses there lie in the memory."""
    if type(mask) is Fixed:
        _write_fixed(memory, plan, span, value, mask)
        return
    places, value, flags = np.broadcast_arrays(plan.elements + span.shift, value, mask)
    chosen = _blocks_first(flags)
    memory.flat[_blocks_first(places)[chosen]] = _blocks_first(value)[chosen]


def _write_fixed(memory: Memory, plan: Plan, span: Span, value: np.ndarray, mask: Fixed) -> None:
    """The same where the mask is the same for all blocks: its true places are known beforehand."""
    still = plan.shape[0] + (1,) + plan.shape[1]
    shape = np.broadcast_shapes(still, mask.array.shape, value.shape[:-3] + (1,) + value.shape[-2:])

    def places_of() -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        at = np.nonzero(np.broadcast_to(mask.array, shape))
        elements = np.broadcast_to(plan.elements, shape)[at]
        return at, elements.reshape(-1, 1)

    at, elements = mask.keep(("places", plan, shape), places_of)
    blocks = np.broadcast_to(value, shape[:-3] + (value.shape[-3],) + shape[-2:])
    chosen = blocks[at[:-3] + (slice(None),) + at[-2:]]
    if len(shape) == 3:
        chosen = chosen.T  # a leading slice stays in front
    shift = span.shift if type(span.shift) is int else span.shift.reshape(1, -1)
    places, chosen = np.broadcast_arrays(elements + shift, chosen)
    memory.flat[places.T] = chosen.T


def _put(flat: np.ndarray, places: np.ndarray, value: np.ndarray) -> None:
    flat[_blocks_first(places)] = _blocks_first(value)


def _blocks_first(array: np.ndarray) -> np.ndarray:
    return np.moveaxis(array, -3, 0)

"""Boxes of a tensor as the copy engine moves them: which elements, clipped to the tensor, and which
16-byte chunks of shared memory they fill under a swizzle. Knows no operation and no barrier.

The swizzle acts on bits of the absolute address, as in the hardware; where the target is aligned to
the pattern this is `ir.layout.shared`.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from warploom.ir.kernel import TensorMap
from warploom.sim.memory import Memory

CHUNK = 16  # bytes that a swizzle keeps together
_LINE = 128  # bytes; the swizzle takes the line's number
PERIOD = 1024  # bytes after which every swizzle repeats
_AS_CHUNK = np.dtype(np.complex128)  # any plain type of 16 bytes: copied, never computed with


def chunks_of(raw: np.ndarray) -> np.ndarray:
    """Bytes as 16-byte chunks, without a copy."""
    return raw.view(_AS_CHUNK)


def swizzled(address: Any, span: int) -> Any:
    """Byte address (numbers or arrays) under a swizzle of `span` bytes; 0 changes nothing."""
    if not span:
        return address
    mask = span // CHUNK - 1
    return address ^ ((address // _LINE & mask) * CHUNK)


@lru_cache(maxsize=256)
def chunk_order(count: int, span: int, start: int) -> np.ndarray:
    """Numbers of the chunks that a box of `count` chunks fills one after the other, from the last
    multiple of 1024 bytes; it begins `start` bytes after that."""
    return swizzled(start + CHUNK * np.arange(count), span) // CHUNK


def places_of(address: int, size: int, span: int) -> np.ndarray | slice:
    """Chunk numbers in shared memory of a box at a byte address."""
    first, count = address // CHUNK, size // CHUNK
    if not span:
        return slice(first, first + count)
    lines = address // PERIOD
    return chunk_order(count, span, address % PERIOD) + lines * (PERIOD // CHUNK)


@lru_cache(maxsize=256)
def _fills(count: int, span: int, start: int) -> bool:
    """Whether a box fills all chunks from its first address on, in whatever order."""
    order = np.sort(chunk_order(count, span, start))
    return bool((order == start // CHUNK + np.arange(count)).all())


def reach_of(address: int, size: int, span: int) -> np.ndarray | slice:
    """The same chunks in any order: in a row, where they fill one."""
    first, count = address // CHUNK, size // CHUNK
    if not span or _fills(count, span, address % PERIOD):
        return slice(first, first + count)
    return places_of(address, size, span)


class Region(NamedTuple):
    """What a descriptor says of a memory: from which element on, extents and strides in elements,
    slowest axis first."""

    origin: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, memory: Memory) -> Region:
        """All of a tensor."""
        return cls(memory.origin, memory.shape, memory.strides)


class Box:
    """One box of a tensor: `part` of the box (slices, slowest axis first) lies in the tensor."""

    __slots__ = ("memory", "offset", "part", "shape", "strides", "within")

    def __init__(
        self,
        made: TensorMap,
        memory: Memory,
        coordinates: tuple[int, ...],
        region: Region | None = None,
    ) -> None:
        self.memory = memory
        self.shape = made.box[::-1]
        whole = Region.of(memory) if region is None else region
        steps = tuple(whole.strides[a] for a in made.axes[::-1])
        ends = tuple(whole.shape[a] for a in made.axes[::-1])
        part, place, within = [], whole.origin, []
        for at, count, step, end in zip(coordinates[::-1], self.shape, steps, ends, strict=True):
            lo = min(max(0, -at), count)
            hi = max(lo, min(count, end - at))
            part.append(slice(lo, hi))
            within.append(hi - lo)
            place += (at + lo) * step
        self.part, self.within = tuple(part), tuple(within)
        self.offset, self.strides = place, steps

    @property
    def size(self) -> int:
        """Bytes of the whole box."""
        return prod(self.shape) * self.memory.itemsize

    def window(self, memory: Memory) -> np.ndarray:
        """The elements inside the tensor as a view of its memory, or of its shadow."""
        size = memory.itemsize
        if 0 in self.within:
            return np.empty(self.within, memory.flat.dtype)
        return np.ndarray(
            self.within,
            memory.flat.dtype,
            memory.raw,
            self.offset * size,
            tuple(step * size for step in self.strides),
        )

    def numbers(self, every: int) -> np.ndarray:
        """Places of the elements inside the tensor, one of `every` in a row."""
        at = np.asarray(self.offset, np.int64)
        steps = [1] * (len(self.within) - 1) + [every]
        for count, step, skip in zip(self.within, self.strides, steps, strict=True):
            at = np.add.outer(at, np.arange(0, count, skip) * step)
        return at

    def gather(self, memory: Memory, outside: Any = 0) -> np.ndarray:
        """The whole box, `outside` where it reaches over the tensor."""
        if self.within == self.shape:
            return np.ascontiguousarray(self.window(memory))
        whole = np.full(self.shape, outside, memory.flat.dtype)
        whole[self.part] = self.window(memory)
        return whole


def alignment(made: TensorMap, memory: Memory) -> str:
    """What of a tensor the copy engine cannot take, in words; empty where all is well."""
    start = (memory.unit + memory.origin) * memory.itemsize
    if memory.size and start % CHUNK:
        return f"its first element lies {start % CHUNK} bytes after a multiple of 16"
    if memory.shape[made.axes[0]] > 1 and memory.strides[made.axes[0]] != 1:
        return f"axis {made.axes[0]} is not contiguous"
    for axis in made.axes[1:]:
        step = memory.strides[axis] * memory.itemsize
        if memory.shape[axis] > 1 and (step % CHUNK or step < 0):
            return f"its stride along axis {axis} is {step} bytes, no multiple of 16"
    return ""


def unaligned_start(first: int, memory: Memory) -> str:
    """What of a start along the contiguous axis the copy engine cannot take: an H200 traps."""
    bytes_in = first * memory.itemsize
    if bytes_in % CHUNK:
        return f"element {first} along the contiguous axis, byte {bytes_in}"
    return ""

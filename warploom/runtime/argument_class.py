"""The class of a tensor argument: what a compiled variant may rely on (DESIGN 3).

Strides of axes with at most one element never move an address, so they do not count: such an axis
gets the stride that a row-major array would have there. So x[0:1], x[None, 0] and a row of its own
share one variant with whole matrices.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from warploom.base.dtypes import BY_NAME
from warploom.ir.types import Tensor, TensorClass
from warploom.runtime.arrays import View

# Offsets below this bound leave half of the range of 32 bits to what lies behind the last element:
# the rest of the last tile, and the last addition of a loop counter.
WIDE = 1 << 30
_ALIGN = 16

# dtype, letters, align, extent, aliased, wide: cheaper to hash than the type it stands for.
ClassKey = tuple[str, str, int, int, bool, bool]


def canonical_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements, those of axes with at most one element replaced."""
    empty = 0 in shape
    if not empty and 1 not in shape:
        return strides
    out: list[int] = []
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        own = stride if extent > 1 and not empty else (step if step < WIDE else 0)
        out.append(own)
        step = abs(own) * max(extent, 1) or step
    return tuple(reversed(out))


def letters(strides: tuple[int, ...]) -> str:
    """One letter an axis: "0", "1" (the last axis with stride 1 only), "n"."""
    unit = max((axis for axis, stride in enumerate(strides) if stride == 1), default=-1)
    return "".join(
        "1" if axis == unit else "0" if stride == 0 else "n" for axis, stride in enumerate(strides)
    )


def is_wide(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether some offset of an element, or an extent, reaches 2^30."""
    reach = 0
    for extent, stride in zip(shape, strides, strict=True):
        if extent > 1:
            reach += abs(stride) * (extent - 1)
    return reach >= WIDE or max(shape, default=0) >= WIDE


def power_of_two(number: int, most: int = _ALIGN) -> int:
    """The largest power of two up to `most` that divides a number (0: `most`)."""
    return min(number & -number, most) if number else most


@dataclass(frozen=True, slots=True)
class Geometry:
    """What shape, strides and the low bits of the address decide; shared by all such arguments.

    `plain` and `aliased` are the two classes, `strides` what a launch passes, `low` and `high` the
    range of bytes from the address on.
    """

    plain: ClassKey
    aliased: ClassKey
    strides: tuple[int, ...]
    low: int
    high: int


def geometry(view: View) -> Geometry:
    """The geometry of an argument."""
    dtype = view.dtype
    return _geometry(dtype.name, dtype.bytes, view.shape, view.strides, view.address % _ALIGN)


@lru_cache(maxsize=8192)
def _geometry(
    name: str, size: int, shape: tuple[int, ...], given: tuple[int, ...], address: int
) -> Geometry:
    strides = canonical_strides(shape, given)
    word = letters(strides)
    bits = 0 if 0 in shape else address
    extent = _ALIGN
    for letter, stride, n in zip(word, strides, shape, strict=True):
        if letter == "n":
            bits |= stride * size
        elif letter == "1":
            extent = power_of_two(n)
    align, wide = power_of_two(bits), is_wide(shape, strides)
    reach = [stride * (n - 1) for stride, n in zip(given, shape, strict=True)]
    low = size * sum(r for r in reach if r < 0)
    high = size * (1 + sum(r for r in reach if r > 0))
    if 0 in shape:
        low = high = 0
    plain = (name, word, align, extent, False, wide)
    return Geometry(plain, (name, word, align, extent, True, wide), strides, low, high)


@cache
def tensor_type(key: ClassKey) -> Tensor:
    """The IR type of a class."""
    name, word, align, extent, aliased, wide = key
    return Tensor(BY_NAME[name], len(word), TensorClass(word, align, extent, aliased, wide))


def overlapping(views: Sequence[View]) -> frozenset[int]:
    """Which views share a range of bytes with another one, as indices.

    Which arguments are written is known only after compilation, and the class decides what is
    compiled: so every overlap counts. Two read-only views of one array lose `ld.global.nc`.
    """
    spans: list[tuple[int, int, int]] = []
    for index, view in enumerate(views):
        shape = geometry(view)
        spans.append((view.address + shape.low, view.address + shape.high, index))
    spans.sort()
    shared: set[int] = set()
    reach = owner = -1
    for low, high, index in spans:
        if low < reach and low < high:
            shared |= {owner, index}
        if high > reach:
            reach, owner = high, index
    return frozenset(shared)


def shares_memory(a: View, b: View) -> bool:
    """Whether some element of one view lies on an element of the other.

    Exact for views that interleave, such as two halves of each row; where that question is too
    hard, the answer is yes.
    """
    (low_a, high_a), (low_b, high_b) = a.extent_bytes(), b.extent_bytes()
    if max(low_a, low_b) >= min(high_a, high_b):
        return False
    work: Any = 10_000
    try:
        return np.shares_memory(_shadow(a), _shadow(b), max_work=work)
    except np.exceptions.TooHardError:
        return True


def _shadow(view: View) -> np.ndarray:
    """A NumPy array at the addresses of a view, which nobody reads: they may be a GPU's."""
    size = view.dtype.bytes
    low, high = view.extent_bytes()
    memory: Any = (ctypes.c_char * (high - low)).from_address(low)
    strides = tuple(s * size for s in view.strides)
    return np.ndarray(view.shape, f"V{size}", memory, view.address - low, strides)

"""How the simulator holds values, and how integer register tiles stay cheap.

A register tile is an array `[r0, r1, …, blocks, warps, lanes]`; an axis of size 1 stands for any
size. A scalar is a Python or NumPy number, or an array `[blocks, 1, 1]` where it differs among
blocks. bf16 and 8-bit floats are held as their bits. Integer tiles may be an `Index`: an array
without blocks plus a scalar. Such arrays recur at every trip and launch, so what is computed from
them is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from warploom.base.dtypes import ALL, DType, Kind, bf16

_KEPT = 256
_MASK64 = (1 << 64) - 1
_FAR = 1 << 62


def carrier(dtype: DType) -> np.dtype:
    """The NumPy type that holds a dtype: its own, bits for bf16 and 8-bit floats."""
    if dtype.is_f8:
        return np.dtype(np.uint8)
    return np.dtype(np.uint16) if dtype == bf16 else dtype.numpy


def wrap(number: int, dtype: DType) -> int:
    """An integer reduced to the range of an integer dtype, two's complement."""
    bits = dtype.bits
    number &= (1 << bits) - 1
    return number - (1 << bits) if dtype.kind is Kind.INT and number >> (bits - 1) else number


def limits(dtype: DType) -> tuple[int, int]:
    """Smallest and largest number of an integer dtype."""
    return _LIMITS[dtype.name]


_LIMITS = {
    t.name: (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1)
    if t.kind is Kind.INT
    else (0, (1 << t.bits) - 1)
    for t in ALL
    if t.is_int
}


def bounded(shift: Any) -> Any:
    """A shift that int64 arrays can be added to: congruent modulo 2^64, which is enough, because a
    range that has wrapped around is noticed when it is looked at."""
    if type(shift) is not int or -_FAR < shift < _FAR:
        return shift
    shift &= _MASK64
    return shift - (1 << 64) if shift >> 63 else shift


class Fixed:
    """An array that no block changes: int64 for numbers (congruent to the value modulo 2^64) or
    bool.

    `keep` remembers what was made from it, by key, as long as the array lives.
    """

    __slots__ = ("array", "hi", "kept", "lo")

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.lo = int(array.min())
        self.hi = int(array.max())
        self.kept: dict[Any, Any] = {}

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gave when it was first called for `key`."""
        found = self.kept.get(key)
        if found is None:
            if len(self.kept) >= _KEPT:
                self.kept.clear()
            found = self.kept[key] = make()
        return found


class Index:
    """An integer register tile `fixed + shift`; shift is a number or an int64 array [blocks, 1,
    1]."""

    __slots__ = ("dtype", "fixed", "shift")

    def __init__(self, fixed: Fixed, shift: Any, dtype: DType) -> None:
        self.fixed = fixed
        self.shift = shift
        self.dtype = dtype

    def range(self) -> tuple[int, int] | None:
        """Smallest and largest value, or None where some value has wrapped around."""
        shift = self.shift
        if type(shift) is int:
            lo, hi = self.fixed.lo + shift, self.fixed.hi + shift
        else:
            lo, hi = self.fixed.lo + int(shift.min()), self.fixed.hi + int(shift.max())
        first, last = limits(self.dtype)
        return (lo, hi) if first <= lo and hi <= last else None

    def dense(self) -> np.ndarray:
        """The tile as an array of its dtype. Not to be written to."""
        shift = self.shift
        if type(shift) is int:
            return self.fixed.keep(
                ("dense", self.dtype, shift),
                lambda: (self.fixed.array + bounded(shift)).astype(self.dtype.numpy),
            )
        return (self.fixed.array + shift).astype(self.dtype.numpy)

    def frozen(self) -> Fixed | None:
        """The values as a `Fixed`, or None where they differ among blocks."""
        shift = self.shift
        if type(shift) is not int:
            return None
        if shift == 0 and self.range() is not None:
            return self.fixed
        return self.fixed.keep(
            ("frozen", self.dtype, shift), lambda: Fixed(self.dense().astype(np.int64))
        )


def constant(number: int, rank: int) -> Fixed:
    """One number (or bool) as a register tile of a rank."""
    key = (number, type(number), rank)
    found = _CONSTANTS.get(key)
    if found is None:
        kind = np.bool_ if isinstance(number, bool) else np.int64
        found = _CONSTANTS[key] = Fixed(np.full((1,) * (rank + 3), number, kind))
    return found


_CONSTANTS: dict[tuple[int, type, int], Fixed] = {}


def dense(value: Any) -> np.ndarray:
    """Any register tile as an array."""
    if type(value) is np.ndarray:
        return value
    return value.dense() if type(value) is Index else value.array


def scalar_array(value: Any, dtype: DType, rank: int) -> np.ndarray:
    """A scalar as an array that broadcasts to a register tile of a rank."""
    if type(value) is np.ndarray:
        return value.reshape((1,) * rank + value.shape) if rank else value
    return np.full((1,) * (rank + 3), value, carrier(dtype))


def take_blocks(value: Any, rows: np.ndarray) -> Any:
    """A value for some blocks of the batch only (`rows`: their places in it)."""
    if type(value) is np.ndarray:
        return value.take(rows, axis=-3) if value.shape[-3] > 1 else value
    if type(value) is Index and type(value.shift) is not int and value.shift.shape[0] > 1:
        return Index(value.fixed, value.shift.take(rows, axis=0), value.dtype)
    return value


def merge_blocks(
    parts: list[tuple[np.ndarray, Any]], count: int, dtype: DType, rank: int | None
) -> Any:
    """One value for `count` blocks from values for parts of them.

    `rank` is that of a register tile, None for a scalar.
    """
    given = [(rows, _as_array(value, dtype, rank)) for rows, value in parts]
    common = np.broadcast_shapes(*(a.shape[:-3] + (1,) + a.shape[-2:] for _, a in given))
    out = np.empty(common[:-3] + (count,) + common[-2:], given[0][1].dtype)
    for rows, array in given:
        out[..., rows, :, :] = array
    return out


def _as_array(value: Any, dtype: DType, rank: int | None) -> np.ndarray:
    if rank is None:
        return scalar_array(value, dtype, 0)
    return scalar_array(value, dtype, rank) if value is True else dense(value)


# ---- reuse of arrays ---------------------------------------------------------------------------


def _count(array: np.ndarray) -> int:
    return sys.getrefcount(array)


def _calibrate() -> int:
    slots = [np.empty(1)]
    array = slots[0]
    return _count(array)


_OWNED = _calibrate()


def owned(array: np.ndarray) -> bool:
    """Whether only one slot and the caller's variable hold the array and its memory: then a step
    may write its result there once the value is dead."""
    return sys.getrefcount(array) <= _OWNED and array.base is None

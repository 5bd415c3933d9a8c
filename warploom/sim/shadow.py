"""Which bytes of memory have been written. Arrays are taken for written unless they are marked.

A shadow holds one byte for each byte of memory, 1 where written (where shared tiles lie on one
place, a number for each of them), so that it can be read and written
through the same plans as the memory itself. Knows no operation.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from warploom.base.dtypes import BY_NAME, DType
from warploom.sim.memory import Memory

WRITTEN = {1: 0x01, 2: 0x0101, 4: 0x01010101, 8: 0x0101010101010101}
_UNSIGNED = {1: BY_NAME["u8"], 2: BY_NAME["u16"], 4: BY_NAME["u32"], 8: BY_NAME["u64"]}

# A shadow of up to so many bytes is looked through at each launch, to be dropped when it is full.
_LOOKED_THROUGH = 1 << 20

# Shadows by the identity of the array that owns the memory; an entry goes with its array.
_unwritten: dict[int, tuple[weakref.ref[np.ndarray], np.ndarray]] = {}


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array at the end of the chain of bases."""
    base: Any = array
    while True:
        below = getattr(base, "base", None)
        if below is None:
            return base
        base = below


def _start(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def mark_unwritten(array: np.ndarray) -> None:
    """Declare that nothing has been written to a contiguous array yet; fills it with NaN bytes.

    Kernels that run on the simulator mark what they write. Other writers must `mark_written`.
    """
    array.reshape(-1).view(np.uint8)[...] = 0xFF
    owner = owner_of(array)
    if not isinstance(owner, np.ndarray) or array.size == 0:
        return
    key = id(owner)
    known = _unwritten.get(key)
    if known is None:
        gone = weakref.ref(owner, lambda _: _unwritten.pop(key, None))
        known = _unwritten[key] = (gone, np.ones(owner.nbytes, np.uint8))
    start = _start(array) - _start(owner)
    known[1][start : start + array.nbytes] = 0


def mark_written(array: np.ndarray) -> None:
    """Declare that all of the memory that an array belongs to has been written."""
    _unwritten.pop(id(owner_of(array)), None)


def shadow_of(array: np.ndarray, raw: np.ndarray, memory: Memory) -> Memory | None:
    """The shadow of a piece of memory (`raw`, bytes below `array`), or None where all is
    written."""
    if not _unwritten:
        return None
    owner = owner_of(array)
    known = _unwritten.get(id(owner))
    if known is None or raw.size == 0:
        return None
    if known[1].size <= _LOOKED_THROUGH and known[1].all():
        mark_written(owner)
        return None
    start = _start(raw) - _start(owner)
    return shadow_memory(known[1][start : start + raw.size], memory)


def shadow_memory(state: np.ndarray, memory: Memory) -> Memory:
    """Bytes of state as a memory with the geometry of another one."""
    made = Memory(state, shadow_dtype(memory), memory.origin, memory.name)
    made.pitch, made.limit = memory.pitch, memory.limit
    return made


def shadow_dtype(memory: Memory) -> DType:
    """The unsigned type as wide as an element of the memory."""
    return _UNSIGNED[memory.itemsize]


def written(memory: Memory) -> int:
    """The state of a written element, as a number of that type."""
    return WRITTEN[memory.itemsize] * memory.mark


def holds(state: np.ndarray, mark: int) -> np.ndarray:
    """Which bytes of a shadow have been written, by the tile of a mark (0: by any)."""
    return state == mark if mark else state != 0

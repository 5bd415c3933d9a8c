"""Memory that library kernels need for a while: numbers without values, and counters that are zero
whenever no launch is under way. Knows no kernel.

A launch leaves its counters as it found them, so the launches of one stream share theirs, and its
other memory too. A captured launch gets its own, since its graph may be replayed beside anything.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

import numpy as np

from warploom.base.dtypes import f32, i32
from warploom.runtime import driver, memory
from warploom.runtime.arrays import SIM, View
from warploom.runtime.graph import recording

# Counters that are made at a time.
_ARENA = 1 << 16

_Shape: TypeAlias = tuple[int, ...]
_lock = threading.Lock()
_arenas: dict[int, tuple[Any, int]] = {}  # of each device: counters, and how many are given away
_full: list[Any] = []  # earlier ones: a graph that torch captured holds an address, no array


class _Kept:
    """One array for each device and stream, as large as the largest that was asked for, and views
    of it by shape."""

    def __init__(self, make: Callable[[int, int], Any]) -> None:
        self._make = make
        self._held: dict[tuple[int, int], tuple[Any, dict[_Shape, Any]]] = {}

    def view(self, device: int, stream: int, shape: _Shape) -> Any:
        """The first elements, in this shape."""
        size = prod(shape)
        held = self._held.get((device, stream))
        if held is None or held[0].size < size:
            held = self._held[device, stream] = self._make(device, size), {}
        whole, views = held
        if shape not in views:
            views[shape] = whole[:size].reshape(shape)
        return views[shape]


def for_launch(like: View, shape: _Shape, counters: int) -> tuple[Any, Any]:
    """f32 memory of a shape, and `counters` i32 that are zero, for a launch that follows the stream
    of `like` and leaves the counters at zero."""
    if like.place == SIM:
        return np.empty(shape, np.float32), np.zeros(counters, np.int32)
    device, stream = like.device, driver.current_stream(like.device, like.source)
    torch: Any = sys.modules["torch"] if like.source == "torch" else None
    with _lock:
        if torch is not None and torch.cuda.is_current_stream_capturing():
            return _captured(torch, device, shape, counters)
        if recording() is not None:  # which keeps what its launches use
            return memory.device_empty(shape, f32, device), _zeros(device, counters)
        kept = _numbers.view(device, stream, shape), _counters.view(device, stream, (counters,))
    return kept


def _captured(torch: Any, device: int, shape: _Shape, counters: int) -> tuple[Any, Any]:
    """While torch captures a graph, memory comes from the graph's own. What is there before may be
    given away; what is not, torch makes, and puts its zeroing into the graph."""
    place = f"cuda:{device}"
    made = torch.empty(shape, dtype=torch.float32, device=place)
    arena, used = _arenas.get(device, (None, 0))
    if arena is not None and used + counters <= arena.size:
        return made, _zeros(device, counters)
    return made, torch.zeros(counters, dtype=torch.int32, device=place)


def _zeros(device: int, count: int) -> Any:
    """Counters that nobody else has."""
    arena, used = _arenas.get(device, (None, 0))
    if arena is None or used + count > arena.size:
        if arena is not None:
            _full.append(arena)
        arena, used = memory.to_device(np.zeros(max(_ARENA, count), i32.numpy), device), 0
        driver.synchronize(device)
    _arenas[device] = arena, used + count
    return arena[used : used + count]


_numbers = _Kept(lambda device, size: memory.device_empty((size,), f32, device))
_counters = _Kept(_zeros)

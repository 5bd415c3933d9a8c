"""What the launches of one kernel hand on to each other: tensors behind its arguments, zero at
first, which nobody resets. Knows not what they hold.

Launches of one stream and one size of grid follow each other and share theirs. Whoever may run
beside them (a bound launch, a graph) has its own.
"""

from __future__ import annotations

import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from warploom.base.dtypes import BY_NAME
from warploom.ir.kernel import Kept
from warploom.runtime import arrays, driver, memory
from warploom.runtime.arguments import Arguments
from warploom.runtime.arrays import SIM, View
from warploom.runtime.dlpack import contiguous

# All arrays that launches hand on, while somebody has them.
_HELD: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_numbers = count()


def begin_anew(place: str) -> None:
    """Zero all that launches on a device hand on, none of which is under way: as before the first
    of them. Behind a launch that was stopped, epochs of its words may be any."""
    for array in list(_HELD.values()):
        if isinstance(array, np.ndarray):
            if place == SIM:
                array[...] = 0
        elif isinstance(array, memory.DeviceArray) and place == f"gpu:{array.device}":
            driver.copy_in(array.device, array.address, np.zeros(array.shape, array.dtype))


class _Kept(ABC):
    """The tensors of one variant, by who shares them."""

    __slots__ = ("_held", "entries")

    def __init__(self, entries: Sequence[Kept]) -> None:
        self.entries = tuple(entries)
        self._held: dict[tuple[int, int], list[View]] = {}

    def behind(self, held: Arguments, blocks: int, stream: int | None, own: bool) -> Arguments:
        """Arguments with the tensors behind them, for a launch of so many blocks."""
        if not self.entries:
            return held
        key = (blocks, self._stream(held, stream))
        if own or self._is_captured(held):
            views = self._make(held, blocks)
        elif key in self._held:
            views = self._held[key]
        else:
            views = self._held[key] = self._make(held, blocks)
        total = len(self.entries)
        return replace(
            held,
            names=(*held.names, *(f"kept {n}" for n in range(total))),
            values=[*held.values, *views],
            strides=[*held.strides, *(contiguous(v.shape) for v in views)],
        )

    def _make(self, held: Arguments, blocks: int) -> list[View]:
        found = []
        for number, entry in enumerate(self.entries):
            array = _HELD[next(_numbers)] = self._zeros(
                held, entry.shape(blocks), BY_NAME[entry.dtype].numpy
            )
            # Who has the view has the array: those of a GPU own no more than their memory.
            found.append(replace(arrays.read(array, f"kept {number}"), owner=array))
        return found

    def _stream(self, held: Arguments, stream: int | None) -> int:
        return 0

    def _is_captured(self, held: Arguments) -> bool:
        return False

    @abstractmethod
    def _zeros(self, held: Arguments, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array of zeros beside these arguments."""


class KeptOnHost(_Kept):
    """For the simulator. A launch that fails leaves its tensors inside a round, and begins anew."""

    __slots__ = ()

    def clear(self, values: Sequence[Any]) -> None:
        """Begin anew: zeros are the state before the first launch."""
        for view in values[len(values) - len(self.entries) :]:
            view.host[...] = 0

    @contextmanager
    def whole(self, values: Sequence[Any]) -> Iterator[None]:
        """Around a launch with these arguments."""
        try:
            yield
        except BaseException:
            self.clear(values)
            raise

    def _zeros(self, held: Arguments, shape: tuple[int, ...], dtype: Any) -> Any:
        return np.zeros(shape, dtype)


class KeptOnGpu(_Kept):
    """In the memory of a GPU."""

    __slots__ = ("_device",)

    def __init__(self, entries: Sequence[Kept], device: int) -> None:
        super().__init__(entries)
        self._device = device

    def _stream(self, held: Arguments, stream: int | None) -> int:
        return driver.current_stream(self._device, held.source) if stream is None else stream

    def _is_captured(self, held: Arguments) -> bool:
        torch: Any = sys.modules.get("torch") if held.source == "torch" else None
        return torch is not None and bool(torch.cuda.is_current_stream_capturing())

    def _zeros(self, held: Arguments, shape: tuple[int, ...], dtype: Any) -> Any:
        if self._is_captured(held):
            # Zeroed by each replay, in front of the launch: as good as kept.
            torch: Any = sys.modules["torch"]
            kind = getattr(torch, np.dtype(dtype).name)
            return torch.zeros(shape, dtype=kind, device=f"cuda:{self._device}")
        made = memory.to_device(np.zeros(shape, dtype), self._device)
        driver.synchronize(self._device)
        return made

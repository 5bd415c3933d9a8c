"""Data for examples: seeded, on the device that was chosen, so that one example runs on both."""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.runtime import memory, places
from warploom.runtime.arrays import SIM
from warploom.sim.shadow import mark_unwritten

Shape = int | tuple[int, ...]


class Make:
    """Makes the arrays of an example. Dtypes are NumPy's, or Warploom's such as `wl.bf16`.

    Two objects with one seed give equal data call by call, on every device.
    """

    def __init__(self, device: str = SIM, seed: int = 0) -> None:
        self.device = places.parse(device)
        self.seed = seed
        self._draw = np.random.default_rng(seed)

    def randn(self, shape: Shape, dtype: Any = np.float32) -> Any:
        """Normally distributed numbers."""
        return self._cast(self._draw.standard_normal(shape), dtype)

    def uniform(self, shape: Shape, low: float, high: float, dtype: Any = np.float32) -> Any:
        """Numbers between `low` and `high`."""
        return self._cast(self._draw.uniform(low, high, shape), dtype)

    def integers(self, low: int, high: int, shape: Shape, dtype: Any = np.int32) -> Any:
        """Whole numbers from `low` to `high` - 1, in any dtype."""
        return self._cast(self._draw.integers(low, high, shape), dtype)

    def zeros(self, shape: Shape, dtype: Any = np.float32) -> Any:
        """Zeros."""
        return self._cast(np.zeros(shape), dtype)

    def ones(self, shape: Shape, dtype: Any = np.float32) -> Any:
        """Ones."""
        return self._cast(np.ones(shape), dtype)

    def full(self, shape: Shape, value: float, dtype: Any = np.float32) -> Any:
        """One value everywhere."""
        return self._cast(np.full(shape, value), dtype)

    def arange(self, count: int, dtype: Any = np.int32) -> Any:
        """0, 1, …, count - 1."""
        return self._cast(np.arange(count), dtype)

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Given values."""
        held = np.asarray(values)
        return self._cast(held, held.dtype if dtype is None else dtype)

    def empty(self, shape: Shape, dtype: Any = np.float32) -> Any:
        """Memory that nothing has written: a checked run reports what reads it."""
        element = memory.element_type(dtype)
        if self.device != SIM:
            return memory.device_empty(shape, element, self.device)
        array = np.empty(shape, element.numpy)
        mark_unwritten(array)
        return array

    def _cast(self, values: np.ndarray, dtype: Any) -> Any:
        array = values.astype(memory.element_type(dtype).numpy)
        return array if self.device == SIM else memory.to_device(array, self.device)

"""Where a model's arrays live: the simulator (NumPy arrays) or one GPU. The only engine module
that knows the difference between the two.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.runtime import arrays, driver, memory, places, streams


@dataclass(frozen=True, slots=True)
class Place:
    """A device: `sim`, or `gpu:N`."""

    name: str

    @property
    def is_gpu(self) -> bool:
        """Whether arrays lie in the memory of a GPU."""
        return self.name != "sim"

    @property
    def default_dtype(self) -> str:
        """The dtype of weights and cache unless another one is asked for."""
        return "bf16" if self.is_gpu else "f32"

    def put(self, array: Any) -> Any:
        """The array on this device; one that lies there stays as it is."""
        if not self.is_gpu or arrays.read(array, "array").place == self.name:
            return array
        return memory.to_device(array, self.name)

    def zeros(self, shape: Sequence[int], dtype: Any) -> Any:
        """A new array of zeros."""
        if self.is_gpu:
            return memory.device_zeros(tuple(shape), dtype, self.name)
        return np.zeros(tuple(shape), dtype)

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        """A new array with whatever its memory held."""
        if self.is_gpu:
            return memory.device_empty(tuple(shape), dtype, self.name)
        return np.empty(tuple(shape), dtype)

    @property
    def free_bytes(self) -> int | None:
        """Memory of a GPU that nobody uses; None on the simulator, which takes it bit by bit."""
        return driver.free_memory(places.gpu_number(self.name)) if self.is_gpu else None

    def wait(self) -> None:
        """Waits for everything launched, so that Ctrl-C gets through: a wait in the driver would
        hold it back until the work is done."""
        if self.is_gpu:
            device = places.gpu_number(self.name)
            event = streams.Event(device)
            event.record(driver.current_stream(device, ""))
            while not event.reached:
                time.sleep(0)

    @property
    def multiprocessors(self) -> int:
        """Multiprocessors of a GPU."""
        return driver.facts(places.gpu_number(self.name)).multiprocessors

    def write(self, target: Any, values: np.ndarray) -> None:
        """Copies host values into an array of this device, in the order of its launches."""
        if self.is_gpu:
            target.copy_from(values)
        else:
            target[...] = values

    def read(self, array: Any) -> np.ndarray:
        """A host copy, after everything launched before."""
        return memory.to_numpy(array) if self.is_gpu else np.array(array)


def choose(device: str | None) -> Place:
    """The place for a device word (`sim`, `gpu`, `gpu:1`).

    By default WARPLOOM_DEVICE, else the GPU where one is usable. Raises LaunchError H021 for
    another word.
    """
    word = device or os.environ.get("WARPLOOM_DEVICE") or ("gpu" if _has_gpu() else "sim")
    return Place(places.parse(word))


def _has_gpu() -> bool:
    return driver.is_likely() and driver.problem() is None

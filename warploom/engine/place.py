"""Where a model's arrays live: the simulator (NumPy arrays) or one GPU. The only engine module
that knows the difference between the two.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import warploom as wl
from warploom.engine.refusal import refuse
from warploom.runtime.graph import graph


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

    def put(self, array: np.ndarray) -> Any:
        """The array on this device."""
        return wl.to_device(array, self.name) if self.is_gpu else array

    def zeros(self, shape: Sequence[int], dtype: Any) -> Any:
        """A new array of zeros."""
        return self.put(np.zeros(tuple(shape), dtype))

    def write(self, target: Any, values: np.ndarray) -> None:
        """Copies host values into an array of this device, in the order of its launches."""
        if self.is_gpu:
            target.copy_from(values)
        else:
            target[...] = values

    def graph(self, launches: Callable[[], object]) -> Any:
        """The launches as one CUDA graph; its `replay()` runs them."""
        return graph(launches)

    def read(self, array: Any) -> np.ndarray:
        """A host copy, after everything launched before."""
        return wl.to_numpy(array) if self.is_gpu else np.array(array)


def choose(device: str | None) -> Place:
    """The place for a device word (`sim`, `gpu`, `gpu:1`); by default WARPLOOM_DEVICE, else the
    GPU where one is usable. Raises ModelError E306 for another word.
    """
    word = device or os.environ.get("WARPLOOM_DEVICE") or ("gpu" if wl.has_gpu() else "sim")
    if word == "sim":
        return Place("sim")
    if re.fullmatch(r"gpu(:\d+)?", word):
        return Place(word if ":" in word else "gpu:0")
    raise refuse(
        "E306", f"there is no device `{word}`", hint="give sim, gpu, or gpu:N with its number"
    )

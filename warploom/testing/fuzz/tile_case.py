"""A kernel with arguments to run it on, and what a launch with these arguments may rely on."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from warploom.base.dtypes import DType
from warploom.ir.kernel import Kernel
from warploom.ir.op import Value
from warploom.ir.types import TensorClass, Tile


@dataclass
class Case:
    """A kernel with arguments."""

    kernel: Kernel
    grid: tuple[int, int, int]
    args: list[Any]

    def copies(self) -> list[Any]:
        """The arguments, tensors copied with their strides."""
        return [_twin(a) if isinstance(a, np.ndarray) else a for a in self.args]


def _twin(array: np.ndarray) -> np.ndarray:
    """A copy with the strides, the alignment and the surroundings of the original."""
    low, high = byte_bounds(array)
    held = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
    store = np.empty(high - low + 32, np.uint8)
    start = (low - store.ctypes.data) % 16
    store[start : start + high - low] = held
    at = start + array.ctypes.data - low
    return np.ndarray(array.shape, array.dtype, store.data, at, array.strides)


def class_of(array: np.ndarray) -> TensorClass:
    """The class that a launch with this array has."""
    steps = [s // array.itemsize for s in array.strides]
    unit = max((a for a, s in enumerate(steps) if s == 1), default=-1)
    letters = "".join("1" if a == unit else "0" if s == 0 else "n" for a, s in enumerate(steps))
    bits = 16 | array.ctypes.data
    for letter, step in zip(letters, array.strides, strict=True):
        bits |= step if letter == "n" else 0
    extent = array.shape[unit] if unit >= 0 else 0
    return TensorClass(letters, bits & -bits, min(extent & -extent, 16) if extent else 16)


def dtype_of(value: Value) -> DType:
    """The element type of a tile."""
    assert isinstance(value.type, Tile)
    return value.type.dtype


def shape_of(value: Value) -> tuple[int, ...]:
    """The shape of a tile."""
    assert isinstance(value.type, Tile)
    return value.type.shape

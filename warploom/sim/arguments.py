"""Arguments of a simulated launch: NumPy arrays as flat memory with an origin, shape and
strides. Views with negative, zero or large strides and any offset are fine. Knows neither
kernels nor steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from warploom.base.dtypes import from_numpy
from warploom.sim.memory import Memory
from warploom.sim.shadow import shadow_of


class TensorArg:
    """One tensor of a launch.

    `flat` covers what lies between the lowest and the highest element of the view and nothing else:
    any other address is out of bounds. `base` is the place of element (0, …, 0) in it. `strides`
    are in elements; give them where those of axes of extent 0 or 1 matter. Raises ValueError for a
    dtype that kernels do not know and for strides that are no multiple of the element.
    """

    __slots__ = ("array", "base", "dtype", "flat", "memory", "shape", "strides")

    def __init__(self, array: np.ndarray, strides: Sequence[int] | None = None) -> None:
        dtype = from_numpy(array.dtype)
        if dtype is None:
            raise ValueError(f"arrays of {array.dtype} are no arguments of kernels")
        if any(step % array.itemsize for step in array.strides):
            raise ValueError(f"strides {array.strides} are no multiples of {array.itemsize} bytes")
        self.array = array
        self.dtype = dtype
        self.shape = array.shape
        own = tuple(step // array.itemsize for step in array.strides)
        self.strides = own if strides is None else tuple(strides)
        reach = [step * (extent - 1) for step, extent in zip(own, array.shape, strict=True)]
        empty = array.size == 0
        self.base = 0 if empty else -sum(r for r in reach if r < 0)
        count = 0 if empty else 1 + sum(abs(r) for r in reach)
        # The lowest element: the end of each axis that runs backwards.
        if any(r < 0 for r in reach):
            array = array[tuple([slice(-1, None) if r < 0 else slice(None) for r in reach])]
        # As bits: NumPy makes no strided views of some of the types that are not its own.
        bits = array.view(f"V{array.itemsize}")
        flat = as_strided(bits, (count,), (array.itemsize,), writeable=array.flags.writeable)
        self.flat = flat.view(array.dtype)
        address = array.__array_interface__["data"][0]
        self.memory = Memory(self.flat.view(np.uint8), dtype, self.base, "", address)
        self.memory.shape, self.memory.strides = self.shape, self.strides

    def bind(self, name: str) -> Memory:
        """The memory of this argument under a parameter's name, with its shadow as it is now."""
        memory = self.memory
        memory.name = name
        memory.shadow = shadow_of(self.array, self.memory.raw, memory)
        return memory


def tensor_argument(array: np.ndarray) -> TensorArg:
    """A NumPy array (bf16 as `ml_dtypes.bfloat16`) as an argument of a launch."""
    return TensorArg(array)

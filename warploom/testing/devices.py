"""One face for the simulator and the GPU, so that one test runs on both.

Moves arrays to where a kernel shall run and back; knows nothing of kernels. Views keep their
strides and their offset, because those are what a kernel is specialised on.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import warploom as wl
from warploom.runtime import driver
from warploom.testing import torch_ops


class Device(Protocol):
    """What the fixture `device` gives."""

    name: str

    def put(self, array: npt.ArrayLike) -> Any:
        """A contiguous copy of `array` on the device."""
        ...

    def put_strided(self, view: np.ndarray) -> Any:
        """A copy of the memory under `view`, seen through the same strides and offset."""
        ...

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """An array that nothing has written yet."""
        ...

    def get(self, array: Any) -> np.ndarray:
        """The values of an array of this device, in NumPy."""
        ...

    def synchronise(self) -> None:
        """Wait until all launches are done; raises what they left behind."""
        ...


def owner_of(view: np.ndarray) -> tuple[np.ndarray, int]:
    """The array that owns the memory of `view`, flat as bytes, and the view's offset in it."""
    owner = view
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if owner.flags.c_contiguous:
        flat = owner.reshape(-1)
    elif owner.flags.f_contiguous:
        flat = owner.T.reshape(-1)
    else:
        raise ValueError("the array under the view is itself strided: make the view from a copy")
    offset = view.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return flat.view(np.uint8), offset


class SimDevice:
    """The simulator: its arrays are NumPy's."""

    name = "sim"

    def put(self, array: npt.ArrayLike) -> np.ndarray:
        """A contiguous copy of `array`."""
        return np.array(array, order="C", copy=True)

    def put_strided(self, view: np.ndarray) -> np.ndarray:
        """A copy of the memory under `view`, seen through the same strides and offset."""
        memory, offset = owner_of(view)
        return np.ndarray(view.shape, view.dtype, memory.copy(), offset, view.strides)

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
        """A new array, filled with a byte pattern that no test expects by chance."""
        array = np.empty(shape, dtype)
        array.reshape(-1).view(np.uint8)[...] = 0xA5
        return array

    def get(self, array: np.ndarray) -> np.ndarray:
        """The array itself."""
        return array

    def synchronise(self) -> None:
        """Nothing to wait for: a simulated launch returns when it is done."""


class GpuDevice:
    """The first GPU. Contiguous arrays are Warploom's own, strided ones torch's."""

    name = "gpu"

    def put(self, array: npt.ArrayLike) -> Any:
        """A contiguous copy of `array` on the GPU."""
        return wl.to_device(np.array(array, order="C", copy=True))

    def put_strided(self, view: np.ndarray) -> Any:
        """A copy of the memory under `view`, seen through the same strides and offset."""
        memory, offset = owner_of(view)
        return torch_ops.strided(memory, view.shape, view.strides, view.dtype, offset)

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        """A new array on the GPU, filled with a byte pattern that no test expects by chance."""
        return self.put(SimDevice().empty(shape, dtype))

    def get(self, array: Any) -> np.ndarray:
        """The values in NumPy; waits for the GPU."""
        if hasattr(array, "data_ptr"):
            return torch_ops.to_numpy(array)
        return wl.to_numpy(array)

    def synchronise(self) -> None:
        """Wait for the GPU; raises the error that a launch left in the context."""
        driver.synchronize(0)

"""Arrays in GPU memory for those who have no other library: made from NumPy, sliced, copied back.

They carry DLPack (bf16 too), so torch, CuPy and JAX read them in place. Knows no kernel.
"""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from warploom.base import dtypes
from warploom.base.dtypes import DType
from warploom.base.errors import error
from warploom.runtime import arrays, dlpack, driver, places
from warploom.runtime.arrays import SIM, View


class _Allocation:
    """Memory of one GPU, given back when the last array on it is gone."""

    def __init__(self, device: int, size: int) -> None:
        self.address = driver.allocate(device, size)
        weakref.finalize(self, driver.free, device, self.address).atexit = False


class DeviceArray:
    """An array in GPU memory. `dtype` is NumPy's (bf16: ml_dtypes.bfloat16), strides in elements.

    Basic indexing (integers, slices, None, ...) and `reshape` give views of the same memory. It
    has no arithmetic: kernels have.
    """

    __slots__ = ("__weakref__", "_element", "_memory", "_view", "device", "shape", "strides")

    def __init__(
        self,
        memory: _Allocation,
        address: int,
        element: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        device: int,
    ) -> None:
        self._memory = memory
        self._element = element
        self.shape = shape
        self.strides = strides
        self.device = device
        self._view = View(element, shape, strides, address, f"gpu:{device}", True, self._memory)

    def __warploom_view__(self) -> View:
        return self._view

    @property
    def dtype(self) -> np.dtype:
        """The element type as NumPy's."""
        return self._element.numpy

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self._element.bytes

    @property
    def address(self) -> int:
        """Address of the first element."""
        return self._view.address

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        plain = dlpack.contiguous(self.shape)
        pairs = zip(self.shape, self.strides, plain, strict=True)
        return self.size == 0 or all(n == 1 or s == p for n, s, p in pairs)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array of rank 0 has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> DeviceArray:
        """A view; raises TypeError for indices that would need a copy, IndexError out of range."""
        parts = index if isinstance(index, tuple) else (index,)
        for part in parts:
            plain = isinstance(part, (int, np.integer, slice)) and not isinstance(part, bool)
            if not plain and part is not None and part is not Ellipsis:
                kind = type(part).__name__
                raise TypeError(f"a DeviceArray is indexed by integers and slices, not by {kind}")
        if Ellipsis not in parts:
            parts = (*parts, Ellipsis)
        size = self._element.bytes
        # NumPy's own index rules, on a shadow with the same strides whose memory is never touched.
        shadow = np.lib.stride_tricks.as_strided(
            np.empty(1, f"V{size}"), self.shape, tuple(s * size for s in self.strides)
        )
        part = shadow[parts]
        strides = tuple(s // size for s in part.strides)
        offset = part.ctypes.data - shadow.ctypes.data if part.size else 0
        return self._at(self.address + offset, part.shape, strides)

    def reshape(self, *shape: Any) -> DeviceArray:
        """A view in another shape (one extent may be -1); the array must be contiguous."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if not self.is_contiguous:
            raise ValueError("only a contiguous array can be reshaped without a copy")
        known = prod(n for n in wanted if n != -1)
        if -1 in wanted:
            wanted = tuple(self.size // max(known, 1) if n == -1 else n for n in wanted)
        if prod(wanted) != self.size:
            raise ValueError(f"cannot reshape {self.shape} to {wanted}")
        return self._at(self.address, wanted, dlpack.contiguous(wanted))

    @property
    def T(self) -> DeviceArray:
        """The view with the axes reversed."""
        return self._at(self.address, self.shape[::-1], self.strides[::-1])

    def copy_from(self, values: Any) -> None:
        """Copy host values of the same shape and dtype into this contiguous array.

        The address stays, so bound launches and graphs see the new values; the copy takes place
        behind earlier launches on the default stream. Raises LaunchError H028.
        """
        host = _host(values)
        if self.shape != host.shape or self.dtype != host.dtype or not self.is_contiguous:
            text = f"values {host.dtype} {host.shape} do not fit into {self!r}"
            hint = "the target must be contiguous, with the shape and dtype of the values"
            raise error("H028", text, hint=hint)
        driver.copy_in(self.device, self.address, host)

    def _at(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> DeviceArray:
        return DeviceArray(self._memory, address, self._element, shape, strides, self.device)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.device

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> object:
        """A DLPack capsule; earlier work on the default stream is waited for unless stream=-1."""
        if stream != -1:
            driver.synchronize(self.device)
        place = self.__dlpack_device__()
        return dlpack.export(self, self.address, self.shape, self.strides, self._element, place)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"<DeviceArray {self._element.name} {shape} on gpu:{self.device}>"


def device_empty(shape: int | tuple[int, ...], dtype: Any, device: int | str = 0) -> DeviceArray:
    """A new contiguous array on a GPU; nothing is written to it.

    `dtype` is a NumPy type, or one of Warploom's such as `wl.bf16`; `device` a number or a word
    such as "gpu:1". Raises LaunchError where no GPU can be used or its memory does not suffice.
    """
    extents, element = _extents(shape), element_type(dtype)
    device = device if isinstance(device, int) else places.gpu_number(device)
    memory = _Allocation(device, prod(extents) * element.bytes)
    return DeviceArray(memory, memory.address, element, extents, dlpack.contiguous(extents), device)


def device_zeros(shape: int | tuple[int, ...], dtype: Any, device: int | str = 0) -> DeviceArray:
    """As `device_empty`, with zeros."""
    made = device_empty(shape, dtype, device)
    driver.clear(made.device, made.address, made.nbytes)
    return made


def empty_like(like: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    """A new contiguous array where `like` lives, of the library that it comes from: NumPy, torch or
    CuPy; else a NumPy array, or a `DeviceArray`. Nothing is written to it."""
    cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return like.new_empty(shape, dtype=arrays.torch_dtype(dtype))
    if cupy is not None and isinstance(like, cupy.ndarray):
        with like.device:
            return cupy.empty(shape, dtype.numpy)
    view = arrays.read(like, "like")
    if view.place == SIM:
        return np.empty(shape, dtype.numpy)
    return device_empty(shape, dtype, view.device)


def element_type(dtype: Any) -> DType:
    """The element type meant by a type of NumPy, torch or Warploom; raises LaunchError H009."""
    if isinstance(dtype, DType):
        return dtype
    if type(dtype).__module__ == "torch":
        return arrays.from_torch(dtype, "dtype")
    try:
        meant = np.dtype(dtype)
    except TypeError:
        raise arrays.bad_dtype("dtype", f"{dtype!r:.80}") from None
    found = dtypes.from_numpy(meant)
    if found is None:
        raise arrays.bad_dtype("dtype", str(meant))
    return found


def _extents(shape: Any) -> tuple[int, ...]:
    """A shape as integers; raises LaunchError H022."""
    try:
        found = tuple(map(operator.index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        found = (-1,)
    if any(extent < 0 for extent in found):
        hint = "give an integer or a tuple of integers, each from 0 up"
        raise error("H022", f"{shape!r:.80} is no shape", hint=hint)
    return found


def to_device(array: Any, device: int | str = 0) -> DeviceArray:
    """A contiguous copy of a NumPy array (or of any array in host memory) on a GPU.

    `device` is a number or a word such as "gpu:1". Raises LaunchError where no GPU can be used.
    """
    host = _host(array)
    out = device_empty(host.shape, host.dtype, device)
    driver.copy_in(out.device, out.address, host)
    return out


def _host(array: Any) -> np.ndarray:
    """A C-contiguous host array with the values of any array or number."""
    if not hasattr(array, "__dlpack__") and not isinstance(array, np.ndarray):
        array = np.asarray(array)
    if isinstance(array, np.generic) or getattr(array, "shape", None) == ():
        array = np.asarray(array)
        host = array
    else:
        view = arrays.read(array, "array")
        host = view.host if view.host is not None else to_numpy(array)
    return host if host.flags.c_contiguous else np.array(host, order="C")


def to_numpy(array: Any) -> np.ndarray:
    """The values of any array in NumPy, bf16 as ml_dtypes.bfloat16; waits for the GPU.

    Host memory is not copied: NumPy arrays come back as they are, CPU tensors as views.
    """
    if isinstance(array, np.ndarray):
        return array
    view = (
        array.__warploom_view__() if isinstance(array, DeviceArray) else arrays.read(array, "array")
    )
    if view.place == SIM:
        assert view.host is not None
        return view.host
    size = view.dtype.bytes
    low, high = view.extent_bytes()
    memory = np.empty(high - low, np.uint8)
    driver.copy_out(view.device, low, memory)
    strides = tuple(s * size for s in view.strides)
    if not memory.size:
        return np.empty(view.shape, view.dtype.numpy)
    seen = np.ndarray(view.shape, view.dtype.numpy, memory.data, view.address - low, strides)
    return np.array(seen, order="C", copy=not seen.flags.c_contiguous)


def synchronize(device: int | None = None) -> None:
    """Wait for all work on a GPU (by default: on all that this process uses).

    Raises LaunchError with what an earlier launch left behind. Nothing happens where this process
    has used no GPU.
    """
    for one in driver.used_devices() if device is None else (device,):
        driver.synchronize(one)

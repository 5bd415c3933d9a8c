"""Reads arrays of any library as views: dtype, shape, strides, address, place.

Never imports torch or CuPy: their objects are known by protocols and by modules already loaded.
Knows nothing of kernels.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warploom.base import dtypes
from warploom.base.dtypes import DType
from warploom.base.errors import error
from warploom.runtime import dlpack

SIM = "sim"
MAX_AXES = 8


@dataclass(slots=True, eq=False)
class View:
    """Memory of an argument: `strides` in elements, `place` "sim" or "gpu:N".

    `owner` keeps the memory alive. `host` is the same memory in NumPy, on the simulator only.
    `source` says whose current stream a GPU launch follows: "torch", "" for our own.
    """

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    place: str
    writable: bool
    owner: Any
    host: np.ndarray | None = None
    source: str = ""

    def __warploom_view__(self) -> View:
        return self

    @property
    def device(self) -> int:
        """Number of the GPU."""
        return int(self.place[4:])

    @property
    def turned(self) -> View:
        """The last two axes exchanged."""
        order = (*range(len(self.shape) - 2), -1, -2)
        host = None if self.host is None else self.host.swapaxes(-1, -2)
        return replace(
            self,
            shape=tuple(self.shape[axis] for axis in order),
            strides=tuple(self.strides[axis] for axis in order),
            host=host,
        )

    @property
    def first(self) -> View:
        """What stands at the start of the first axis."""
        host = None if self.host is None else self.host[0]
        return replace(self, shape=self.shape[1:], strides=self.strides[1:], host=host)

    @property
    def merged(self) -> View | None:
        """The first two axes as one, where their elements follow each other evenly."""
        outer, inner, *rest = self.shape
        if outer > 1 and inner > 1 and self.strides[0] != inner * self.strides[1]:
            return None
        shape = (outer * inner, *rest)
        strides = (self.strides[1] if inner > 1 else self.strides[0], *self.strides[2:])
        host = None if self.host is None else _as_numpy(replace(self, shape=shape, strides=strides))
        return replace(self, shape=shape, strides=strides, host=host)

    def repeated(self, axis: int | None, extent: int) -> View:
        """One axis of a view whose others have one element, or, without an axis, its only element
        `extent` times."""
        step = 0 if axis is None else self.strides[axis]
        made = replace(self, shape=(extent,), strides=(step,), host=None)
        if self.host is not None:
            made.host = _as_numpy(made)
        return made

    def extent_bytes(self) -> tuple[int, int]:
        """First byte and one past the last byte that some element of the view covers."""
        if 0 in self.shape:
            return self.address, self.address
        low = high = 0
        for extent, stride in zip(self.shape, self.strides, strict=True):
            if stride < 0:
                low += stride * (extent - 1)
            else:
                high += stride * (extent - 1)
        size = self.dtype.bytes
        return self.address + low * size, self.address + (high + 1) * size


# The way out where an array of another library is none of memory that a launch can use.
COPY = "copy it to a NumPy array or a torch tensor, and pass that"


def read(value: Any, name: str) -> View:
    """The view of an argument; raises LaunchError naming the parameter where it is no array."""
    if type(value) is np.ndarray:
        return _numpy(value, name)
    found = getattr(value, "__warploom_view__", None)
    if found is not None:
        return found()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch(torch, value, name)
    if isinstance(value, np.ma.MaskedArray):
        hint = f"{name}.filled(0) is a plain array, with zeros where nothing is valid"
        raise error("H002", f"`{name}` is a tensor, and a masked array was given", hint=hint)
    if isinstance(value, np.ndarray):
        return _numpy(value, name)
    if isinstance(value, np.generic):
        raise not_a_tensor(value, name)
    if hasattr(value, "__cuda_array_interface__"):
        return _cuda_interface(value, name)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _dlpack(value, name)
    raise not_a_tensor(value, name)


def not_a_tensor(value: Any, name: str) -> Exception:
    """The refusal of something that is no array, by its kind."""
    if value is None:
        hint = "give an array, or declare the parameter `wl.const = None` and test `is not None`"
        return error("H004", f"`{name}` is a tensor, and None was given", hint=hint)
    if isinstance(value, (list, tuple)):
        hint = f"np.array({name}, dtype=np.float32) makes an array of it"
        return error("H002", f"`{name}` is a tensor, and a {_kind(value)} was given", hint=hint)
    if isinstance(value, (int, float, complex, np.generic)):
        hint = "pass an array of one element, or declare the parameter as a scalar, e.g. `wl.f32`"
        return error("H002", f"`{name}` is a tensor, and a number was given", hint=hint)
    hint = "give a NumPy array, a torch tensor, an array of wl.to_device, or one that has DLPack"
    return error("H002", f"`{name}` is a tensor, and {_kind(value)} is no array", hint=hint)


def _kind(value: Any) -> str:
    cls = type(value)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


def bad_dtype(name: str, what: str) -> Exception:
    """The refusal of an element type that no tile has."""
    if "complex" in what:
        hint = "pass real and imaginary part as two arrays (x.real, x.imag are views)"
        return error("H008", f"`{name}` is complex ({what})", hint=hint)
    known = " ".join(t.name for t in dtypes.ALL)
    return error(
        "H009",
        f"`{name}` has dtype {what}, and no tile has",
        notes=(f"known: {known}",),
        hint="convert it to one of these first",
    )


def _checked_rank(shape: tuple[int, ...], name: str) -> None:
    if not shape:
        hint = "reshape(1) makes an array of one axis; a number goes to a scalar parameter"
        raise error("H002", f"`{name}` is a tensor, and an array of rank 0 was given", hint=hint)
    if len(shape) > MAX_AXES:
        raise error(
            "H022",
            f"`{name}` has {len(shape)} axes; a tensor has up to {MAX_AXES}",
            hint="reshape it so that neighbouring axes become one",
        )


def _numpy(array: np.ndarray, name: str) -> View:
    dtype = dtypes.from_numpy(array.dtype)
    if dtype is None:
        if not array.dtype.isnative:
            hint = f"{name}.astype({name}.dtype.newbyteorder('=')) has this machine's byte order"
            raise error("H009", f"`{name}` has swapped bytes (dtype {array.dtype.str})", hint=hint)
        raise bad_dtype(name, str(array.dtype))
    shape = array.shape
    _checked_rank(shape, name)
    size = dtype.bytes
    strides = array.strides
    if size > 1:
        if any(s % size for s in strides):
            hint = "np.ascontiguousarray makes a plain copy"
            text = f"`{name}` has strides {strides} in bytes, no multiples of {size}"
            raise error("H009", text, hint=hint)
        strides = tuple(s // size for s in strides)
    address: int = array.ctypes.data
    if address % size and array.size:
        raise error(
            "H009",
            f"`{name}` starts at an address that is no multiple of {size} bytes",
            hint="np.ascontiguousarray(x).copy() makes an aligned copy",
        )
    return View(dtype, shape, strides, address, SIM, array.flags.writeable, array, array)


# torch's types by identity, filled as they are met.
_torch_dtypes: dict[Any, DType] = {}
_TORCH_NAMES = {
    "float8_e4m3fn": dtypes.f8e4m3,
    "float8_e5m2": dtypes.f8e5m2,
    "float16": dtypes.f16,
    "bfloat16": dtypes.bf16,
    "float32": dtypes.f32,
    "float64": dtypes.f64,
    "int8": dtypes.i8,
    "int16": dtypes.i16,
    "int32": dtypes.i32,
    "int64": dtypes.i64,
    "uint8": dtypes.u8,
    "uint16": dtypes.u16,
    "uint32": dtypes.u32,
    "uint64": dtypes.u64,
    "bool": dtypes.boolean,
}


def from_torch(dtype: Any, name: str) -> DType:
    """The element type that is one of torch's; raises LaunchError H008 or H009."""
    word = str(dtype).removeprefix("torch.")
    found = _TORCH_NAMES.get(word)
    if found is None:
        raise bad_dtype(name, word)
    _torch_dtypes[dtype] = found
    return found


def torch_dtype(dtype: DType) -> Any:
    """torch's type for an element type; raises LaunchError H009. Only where torch is loaded."""
    for name, ours in _TORCH_NAMES.items():
        if ours == dtype:
            return getattr(sys.modules["torch"], name)
    raise error("H009", f"torch has no type for {dtype}", hint="give an `out` of another type")


def _torch(torch: Any, tensor: Any, name: str) -> View:
    dtype = _torch_dtypes.get(tensor.dtype) or from_torch(tensor.dtype, name)
    if tensor.requires_grad and torch.is_grad_enabled():
        hint = f"pass {name}.detach(), or launch under torch.no_grad()"
        raise error("H010", f"`{name}` requires grad", hint=hint)
    if tensor.layout is not torch.strided or tensor.is_neg():
        text = f"`{name}` is not plain memory ({tensor.layout}, lazily negated: {tensor.is_neg()})"
        raise error("H002", text, hint=f"{name}.to_dense() or .resolve_neg() gives plain memory")
    shape = tuple(tensor.shape)
    if not shape or len(shape) > MAX_AXES:
        _checked_rank(shape, name)
    device = tensor.device
    address = tensor.data_ptr()
    if device.type == "cuda":
        place = f"gpu:{device.index}"
        return View(dtype, shape, tensor.stride(), address, place, True, tensor, None, "torch")
    if device.type != "cpu":
        text = f"`{name}` lives on {device}; a launch takes CPU and CUDA tensors"
        hint = f"{name}.cpu() makes a copy that the simulator takes"
        if device.type == "meta":
            hint = f"a tensor on meta has no data: make `{name}` with torch.empty or from data"
        raise error("H014", text, hint=hint)
    view = View(dtype, shape, tensor.stride(), address, SIM, True, tensor)
    view.host = _as_numpy(view)
    return view


def _cuda_interface(value: Any, name: str) -> View:
    try:
        facts = value.__cuda_array_interface__
        address, read_only = facts["data"]
        _ = facts["typestr"], tuple(facts["shape"])
    except Exception as why:
        raise not_a_tensor(value, name) from why
    dtype = _element_type(facts["typestr"], getattr(value, "dtype", None))
    if dtype is None:
        raise bad_dtype(name, str(facts["typestr"]))
    shape = tuple(facts["shape"])
    _checked_rank(shape, name)
    given = facts.get("strides")
    strides = dlpack.contiguous(shape)
    if given is not None:
        strides = tuple(s // dtype.bytes for s in given)
    index = getattr(getattr(value, "device", None), "id", None)
    if index is None:
        index = value.__dlpack_device__()[1] if hasattr(value, "__dlpack_device__") else 0
    return View(dtype, shape, strides, int(address), f"gpu:{index}", not read_only, value)


def _element_type(word: str, own: Any) -> DType | None:
    """The type that an interface names; for those that it has no word for, the array's own."""
    for given in (own, word):
        with contextlib.suppress(TypeError):
            found = dtypes.from_numpy(np.dtype(given)) if given is not None else None
            if found is not None:
                return found
    return None


def _dlpack(value: Any, name: str) -> View:
    kind, index = value.__dlpack_device__()
    if kind not in (dlpack.CPU, dlpack.CUDA, dlpack.CUDA_HOST, dlpack.CUDA_MANAGED):
        text = f"`{name}` lives on a device of DLPack kind {int(kind)}"
        raise error("H014", text, hint=COPY)
    on_gpu = kind in (dlpack.CUDA, dlpack.CUDA_MANAGED)
    try:
        # Stream -1: no synchronisation here; the launch goes to the stream that orders it.
        capsule = value.__dlpack__(stream=-1) if on_gpu else value.__dlpack__()
    except Exception as why:
        text = f"`{name}` ({_kind(value)}) gives no DLPack view: {why}"
        raise error("H002", text, hint=COPY) from why
    try:
        facts = dlpack.describe(capsule)
    except ValueError as why:
        text = f"`{name}` ({_kind(value)}) gives no DLPack view: {why}"
        raise error("H002", text, hint=COPY) from why
    if facts.dtype is None:
        raise bad_dtype(name, facts.type_name)
    _checked_rank(facts.shape, name)
    place = f"gpu:{index}" if on_gpu else SIM
    # The capsule says nothing of read-only memory, so only what says that it can be written, is.
    flags = getattr(value, "flags", None)
    writable = on_gpu or bool(getattr(flags, "writeable", False))
    keep = (value, capsule)
    view = View(facts.dtype, facts.shape, facts.strides, facts.address, place, writable, keep, None)
    if not on_gpu:
        view.host = _as_numpy(view)
    return view


def _as_numpy(view: View) -> np.ndarray:
    """The memory of a CPU view as a NumPy array that keeps its owner alive."""
    size = view.dtype.bytes
    low, high = view.extent_bytes()
    if low == high:
        return np.empty(view.shape, view.dtype.numpy)
    memory: Any = (ctypes.c_char * (high - low)).from_address(low)
    # The array refers to `memory`, and `memory` to whoever owns the bytes.
    memory.owner = view.owner
    strides = tuple(s * size for s in view.strides)
    return np.ndarray(view.shape, view.dtype.numpy, memory, view.address - low, strides)

"""DLPack capsules by ctypes: reading those of other libraries, and making our own.

Knows the memory layout of DLPack 1.x's unversioned structures (which every library still speaks)
and nothing of kernels or devices' drivers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warploom.base.dtypes import ALL, DType, Kind

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_CODES = {Kind.INT: 0, Kind.UINT: 1, Kind.FLOAT: 2, Kind.BOOL: 6}
# Types whose number of bits does not say what they are.
_CODES_BY_NAME = {"bf16": 4, "f8e4m3": 10, "f8e5m2": 12}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_CapsuleDestructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Managed._fields_ = (
    ("tensor", _Tensor),
    ("manager", ctypes.c_void_p),
    ("deleter", _Deleter),
)

_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _CapsuleDestructor)(
    ("PyCapsule_New", _api)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
# The destructor gets the dying capsule as an address: a counted reference to it would revive it.
_is_valid_raw = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_pointer_raw = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)

_NAME = b"dltensor"
# What an exported structure points to, until its consumer calls the deleter.
_exported: dict[int, tuple[Any, ...]] = {}


@dataclass(frozen=True, slots=True)
class Described:
    """What a capsule says: `dtype` is None where Warploom has no such type; strides in elements."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType | None
    type_name: str
    device: int
    index: int


def describe(capsule: object) -> Described:
    """Read a capsule without consuming it: the caller keeps the producer alive."""
    if not _is_valid(capsule, _NAME):
        raise ValueError("the object's __dlpack__ did not give a fresh capsule `dltensor`")
    t = ctypes.cast(_pointer(capsule, _NAME), ctypes.POINTER(_Managed)).contents.tensor
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else contiguous(shape)
    dtype = _dtype(t.code, t.bits, t.lanes)
    name = dtype.name if dtype else f"code {t.code}, {t.bits} bits, {t.lanes} lanes"
    address = (t.data or 0) + t.byte_offset
    return Described(address, shape, strides, dtype, name, t.device_type, t.device_id)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides of a shape, in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def export(
    owner: Any,
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    device: tuple[int, int],
) -> object:
    """A capsule over memory that keeps `owner` alive until its consumer lets go."""
    rank = len(shape)
    axes = ctypes.c_int64 * max(rank, 1)
    extents, steps = axes(*shape), axes(*strides)
    managed = _Managed()
    t = managed.tensor
    t.data, t.device_type, t.device_id, t.ndim = address, *device, rank
    t.code = _code(dtype)
    t.bits, t.lanes, t.byte_offset = dtype.bits, 1, 0
    t.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
    t.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = _release
    key = ctypes.addressof(managed)
    _exported[key] = (owner, managed, extents, steps)
    return _new(key, _NAME, _drop)


def _code(dtype: DType) -> int:
    return _CODES_BY_NAME.get(dtype.name, _CODES[dtype.kind])


def _release_now(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


def _drop_now(capsule: int) -> None:
    # A consumer renames the capsule; one that still bears this name was never consumed.
    if _is_valid_raw(capsule, _NAME):
        _exported.pop(_pointer_raw(capsule, _NAME) or 0, None)


_release: Callable[..., None] = _Deleter(_release_now)
_drop: Callable[..., None] = _CapsuleDestructor(_drop_now)


def _dtype(code: int, bits: int, lanes: int) -> DType | None:
    if lanes != 1:
        return None
    for dtype in ALL:
        if _code(dtype) == code and dtype.bits == bits:
            return dtype
    return None

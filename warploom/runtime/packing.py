"""Packs the arguments of a GPU launch in the order of `ir.Kernel.words()`. Knows no driver."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from warploom.ir.kernel import Kernel
from warploom.ir.types import Scalar, Tensor

_MAP_BYTES, _MAP_ALIGN = 128, 64

# Each word has eight bytes of its own; the driver takes from it as many as the parameter has.
_FORMATS = {
    "i32": "i4x",
    "i64": "q",
    "f32": "f4x",
    "f64": "d",
    "bool": "?7x",
    "f16": "e6x",
    "bf16": "H6x",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How the words of a kernel are packed; plain data, so that it can be kept on disk.

    `parameters`: for a tensor the axes whose strides are passed, for a scalar its dtype. `maps`:
    the tensor maps that follow the words, as `TensorMap` prints them.
    """

    format: str
    parameters: tuple[tuple[int, ...] | str, ...]
    maps: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of words, without maps."""
        return struct.calcsize(self.format) // 8

    def values(self, values: Sequence[Any], strides: Sequence[tuple[int, ...] | None]) -> list[Any]:
        """The words of a launch, from the values and strides of its `Arguments`."""
        words: list[Any] = []
        for kind, value, steps in zip(self.parameters, values, strides, strict=True):
            if isinstance(kind, str):
                words.append(_bf16_bits(value) if kind == "bf16" else value)
            else:
                assert steps is not None
                words.append(value.address)
                words.extend(value.shape)
                words.extend([steps[axis] for axis in kind])
        return words


def layout_of(kernel: Kernel) -> Layout:
    """The packing of a kernel's words."""
    text = "<"
    axes: dict[int, list[int]] = {i: [] for i in range(len(kernel.params))}
    for word in kernel.words():
        type_ = kernel.params[word.param].type
        if word.kind == "map":
            continue  # They come last, in storage of their own.
        if word.kind == "address":
            text += "Q"
        elif word.kind == "scalar":
            assert isinstance(type_, Scalar)
            text += _FORMATS[type_.dtype.name]
        else:
            assert isinstance(type_, Tensor)
            text += _FORMATS["i64" if type_.cls.wide else "i32"]
            if word.kind == "stride":
                axes[word.param].append(word.axis)
    parameters: list[tuple[int, ...] | str] = []
    for index, param in enumerate(kernel.params):
        kind = param.type
        parameters.append(kind.dtype.name if isinstance(kind, Scalar) else tuple(axes[index]))
    return Layout(text, tuple(parameters), tuple(str(m) for m in kernel.maps))


class Pack:
    """Storage for the words of one launch at a time, and the pointers that the driver takes."""

    __slots__ = ("_first_map", "_maps", "_pointers", "_storage", "_struct", "address")

    def __init__(self, layout: Layout) -> None:
        self._struct = struct.Struct(layout.format)
        count = layout.count
        self._storage = ctypes.create_string_buffer(max(self._struct.size, 8))
        start = ctypes.addressof(self._storage)
        self._maps = ctypes.create_string_buffer(_MAP_BYTES * len(layout.maps) + _MAP_ALIGN)
        maps = -(-ctypes.addressof(self._maps) // _MAP_ALIGN) * _MAP_ALIGN
        places = [start + 8 * i for i in range(count)]
        places += [maps + _MAP_BYTES * i for i in range(len(layout.maps))]
        self._pointers = (ctypes.c_uint64 * max(len(places), 1))(*places)
        self._first_map = maps
        self.address = ctypes.addressof(self._pointers)

    def fill(self, words: Sequence[Any], maps: Sequence[bytes] = ()) -> int:
        """Put words and tensor maps in place; returns the address of the array of pointers."""
        self._struct.pack_into(self._storage, 0, *words)
        for number, encoded in enumerate(maps):
            ctypes.memmove(self._first_map + _MAP_BYTES * number, encoded, _MAP_BYTES)
        return self.address


def _bf16_bits(value: float) -> int:
    return int(np.array(value, ml_dtypes.bfloat16).view(np.uint16))

"""Runs a machine kernel on the GPU as it is, without front end and argument binding."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from warploom.base.target import SM_90A
from warploom.codegen.emitter import emit
from warploom.ir.kernel import Kernel
from warploom.runtime import driver, modules
from warploom.runtime.nvrtc import compile_cubin
from warploom.runtime.packing import Pack, layout_of

_ALIGN = 16


def cubin_of(kernel: Kernel) -> bytes:
    """The code of a kernel; needs no driver."""
    return compile_cubin(emit(kernel, SM_90A), SM_90A).cubin


def run(kernel: Kernel, grid: tuple[int, int, int], args: Sequence[Any]) -> None:
    """Launch once and wait; arrays are written in place, their alignment and strides kept."""
    source = emit(kernel, SM_90A)
    loaded = modules.load(cubin_of(kernel), source.entry, source.shared_bytes, 0)
    layout = layout_of(kernel)
    mirrors = [_Mirror.of(a) if isinstance(a, np.ndarray) else None for a in args]
    try:
        strides = [
            tuple(s // a.itemsize for s in a.strides) if isinstance(a, np.ndarray) else None
            for a in args
        ]
        given = [m or a for m, a in zip(mirrors, args, strict=True)]
        pack = Pack(layout)
        words = pack.fill(layout.values(given, strides))
        modules.launch(loaded, 0, 0, grid, source.threads, words)
        driver.synchronize(0)
        for mirror in mirrors:
            if mirror is not None:
                driver.copy_out(0, mirror.start, mirror.bytes)
    finally:
        for mirror in mirrors:
            if mirror is not None:
                driver.free(0, mirror.store)


@dataclass
class _Mirror:
    """The bytes that an array spans, on the GPU."""

    store: int
    start: int
    address: int
    shape: tuple[int, ...]
    bytes: np.ndarray

    @classmethod
    def of(cls, array: np.ndarray) -> _Mirror:
        low, high = byte_bounds(array)
        count = max(high - low, 1) if array.size else 1
        held = (
            np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(low))
            if array.size
            else np.zeros(1, np.uint8)
        )
        store = driver.allocate(0, count + _ALIGN)
        start = store + low % _ALIGN
        driver.copy_in(0, start, held)
        return cls(store, start, start + array.ctypes.data - low, array.shape, held)

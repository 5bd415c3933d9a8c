"""Conversions between element types: round to nearest even, truncate and saturate, NaN to 0. bf16
is held as uint16 bits. Integers and f64 go to 16-bit floats by way of f32, on both devices."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from warploom.base.dtypes import DType, Kind, bf16, f16, f32
from warploom.sim.values import limits, wrap

Function = Callable[[Any], Any]


def widen_bf16(bits: Any) -> Any:
    """bf16 bits as float32."""
    return np.left_shift(bits, np.uint32(16), dtype=np.uint32).view(np.float32)


def narrow_bf16(value: Any) -> Any:
    """float32 as bf16 bits, rounded to nearest even; NaN stays NaN."""
    bits = value.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + (odd + np.uint32(0x7FFF))) >> np.uint32(16)).astype(np.uint16)
    nan = np.isnan(value)
    if nan.any():
        return np.where(nan, np.uint16(0x7FFF), rounded)
    return rounded


@cache
def conversion(source: DType, target: DType) -> Function:
    """`f(array or NumPy number)` from carrier to carrier."""
    if source == target:
        return lambda v: v
    if source == bf16:
        rest = conversion(f32, target)
        return lambda v: rest(widen_bf16(v))
    if target == bf16:
        first = conversion(source, f32)
        return lambda v: narrow_bf16(first(v))
    if target.kind is Kind.BOOL:
        return lambda v: np.not_equal(v, 0)
    if target == f16 and source != f32 and source.kind is not Kind.BOOL:
        return lambda v: v.astype(np.float32).astype(np.float16)
    if source.is_float and target.is_int:
        return _saturating(target)
    kind = target.numpy
    return lambda v: v.astype(kind)


def _saturating(target: DType) -> Function:
    first, last = limits(target)
    # The largest number of a 64-bit type is no float64: compare with the power of two above it.
    above = float(last + 1)
    kind = target.numpy.type

    def convert(value: Any) -> Any:
        wide = value.astype(np.float64)
        low, high, nan = wide < float(first), wide >= above, np.isnan(wide)
        safe = np.where(low | high | nan, 0.0, wide).astype(kind)
        if low.any():
            safe = np.where(low, kind(first), safe)
        if high.any():
            safe = np.where(high, kind(last), safe)
        return safe if isinstance(safe, np.ndarray) and np.ndim(value) else kind(safe)

    return convert


@cache
def scalar_conversion(source: DType, target: DType) -> Function:
    """Like `conversion` for scalars: integers and bools among numbers are Python's."""
    convert = conversion(source, target)
    held = source.numpy.type

    def step(value: Any) -> Any:
        if type(value) is np.ndarray:
            return convert(value)
        if target.kind is Kind.BOOL:
            return bool(value != 0) if source != bf16 else bool(value & np.uint16(0x7FFF))
        if not source.is_float and target.is_int:
            return wrap(int(value), target)
        result = convert(held(value) if not source.is_float else value)
        return int(result) if target.is_int else result

    return step

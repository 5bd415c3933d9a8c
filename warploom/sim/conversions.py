"""Conversions between element types: round to nearest even, truncate and saturate, NaN to 0. bf16
and 8-bit floats are held as their bits. Integers and f64 go to 16-bit floats by way of f32, on both
devices; 8-bit floats are rounded once and saturate."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from warploom.base.dtypes import DType, Kind, bf16, f16, f32, f64
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
def _f8_numbers(dtype: DType) -> np.ndarray:
    """The float32 of each of the 256 patterns of bits of an 8-bit float."""
    return np.arange(256, dtype=np.uint8).view(dtype.numpy).astype(np.float32)


@cache
def _f8_largest(dtype: DType) -> np.float32:
    return np.float32(ml_dtypes.finfo(dtype.numpy).max)


def narrow_f8(value: Any, dtype: DType) -> Any:
    """float32 as bits of an 8-bit float: to nearest even; beyond the range the largest number."""
    most = _f8_largest(dtype)
    bits = np.asarray(np.clip(value, -most, most)).astype(dtype.numpy).view(np.uint8)
    return np.where(np.isnan(value), np.uint8(0x7F), bits)[()]


def _to_odd(value: Any) -> Any:
    """float64 as float32, inexact numbers to the neighbour whose last bit is 1: what is rounded to
    fewer bits from there, is rounded once."""
    near = np.asarray(value.astype(np.float32))
    bits = near.view(np.int32)
    over = np.abs(near.astype(np.float64)) > np.abs(value)
    down = bits - over.astype(np.int32)
    inexact = near.astype(np.float64) != value
    return np.where(inexact, down | 1, bits).view(np.float32)[()]


def wide(value: Any, dtype: DType) -> Any:
    """The numbers of a float type that is held as its bits; others as they are."""
    if dtype == bf16:
        return widen_bf16(value)
    return _f8_numbers(dtype).take(value) if dtype.is_f8 else value


@cache
def conversion(source: DType, target: DType) -> Function:
    """`f(array or NumPy number)` from carrier to carrier."""
    if source == target:
        return lambda v: v
    if source == bf16 or source.is_f8:
        rest = conversion(f32, target)
        return lambda v: rest(wide(v, source))
    if target == bf16:
        first = conversion(source, f32)
        return lambda v: narrow_bf16(first(v))
    if target.is_f8:
        first = _to_odd if source == f64 else conversion(source, f32)
        return lambda v: narrow_f8(first(v), target)
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
            return bool(wide(value, source) != 0)
        if not source.is_float and target.is_int:
            return wrap(int(value), target)
        result = convert(held(value) if not source.is_float else value)
        return int(result) if target.is_int else result

    return step

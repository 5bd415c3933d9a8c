"""Arithmetic of the contract (docs/numerics.md) on NumPy arrays and numbers: kinds of
`ir.ops.arithmetic`. Bits equal those of the GPU except for transcendental kinds (`special`). Knows
no operation and no layout."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from warploom.base.dtypes import DType, Kind, bf16, f32
from warploom.sim.conversions import narrow_bf16, widen_bf16
from warploom.sim.special import SPECIAL
from warploom.sim.values import wrap

Function = Callable[..., Any]

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,  # counts of the width and more, or negative: 0
    "shr": np.right_shift,  # the same: 0, or −1 for negative numbers
}
_COMPARE: dict[str, np.ufunc] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNARY: dict[str, np.ufunc] = {
    "neg": np.negative,
    "abs": np.absolute,
    "not": np.invert,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "sqrt": np.sqrt,
}


@cache
def binary(kind: str, dtype: DType) -> Function:
    """`f(a, b, out=None)` on arrays of the dtype's carrier; `out` may be ignored."""
    if dtype == bf16:
        wide = binary(kind, f32)
        return lambda a, b, out=None: narrow_bf16(wide(widen_bf16(a), widen_bf16(b)))
    if kind in ("max", "min"):
        if not dtype.is_float:
            return np.maximum if kind == "max" else np.minimum
        return _float_maximum if kind == "max" else _float_minimum
    if kind == "mod":
        return np.remainder if dtype.is_float else _modulo
    if kind == "floordiv":
        return np.floor_divide  # by zero: of floats the quotient, else 0; smallest // −1 wraps
    return _UFUNCS[kind]


@cache
def compare(kind: str, dtype: DType) -> Function:
    """`f(a, b)` giving bool arrays."""
    ufunc = _COMPARE[kind]
    if dtype == bf16:
        return lambda a, b: ufunc(widen_bf16(a), widen_bf16(b))
    return ufunc


@cache
def unary(kind: str, dtype: DType) -> Function:
    """`f(a)` on arrays of the dtype's carrier."""
    if dtype == bf16:
        if kind == "neg":
            return lambda a: a ^ np.uint16(0x8000)
        if kind == "abs":
            return lambda a: a & np.uint16(0x7FFF)
        wide = unary(kind, f32)
        return lambda a: narrow_bf16(wide(widen_bf16(a)))
    return SPECIAL.get(kind) or _UNARY[kind]


def _modulo(a: Any, b: Any, out: np.ndarray | None = None) -> Any:
    """Python's remainder; by zero it is the dividend."""
    rest = np.remainder(a, b)
    zero = np.equal(b, 0)
    return np.where(zero, a, rest) if zero.any() else rest


_SIGN = {2: np.uint16(1 << 15), 4: np.uint32(1 << 31), 8: np.uint64(1 << 63)}


def _bits(array: np.ndarray) -> np.ndarray:
    return array.view(_SIGN[array.dtype.itemsize].dtype)


def _float_maximum(a: Any, b: Any, out: np.ndarray | None = None) -> Any:
    """NaN if either is; +0 above −0."""
    most = np.maximum(a, b)
    negative_zero = _bits(most) == _SIGN[most.dtype.itemsize]
    if negative_zero.any():
        # One of the two was +0 unless both are negative.
        mend = negative_zero & ~(np.signbit(a) & np.signbit(b))
        most = np.where(mend, most.dtype.type(0), most)
    return most


def _float_minimum(a: Any, b: Any, out: np.ndarray | None = None) -> Any:
    """NaN if either is; −0 below +0."""
    least = np.minimum(a, b)
    positive_zero = _bits(least) == 0
    if positive_zero.any():
        mend = positive_zero & (np.signbit(a) | np.signbit(b))
        least = np.where(mend, least.dtype.type(-0.0), least)
    return least


# ---- fma ---------------------------------------------------------------------------------------

_TIE_MASK = np.int64((1 << 29) - 1)
_TIE = np.int64(1 << 28)
_NORMAL = np.float32(2.0**-126)


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a × b + c of float32 with one rounding.

    The product is exact in float64. Rounding the sum twice goes wrong only where the first rounding
    lands on a tie of the second, or where the result is denormal: those are done again with the sum
    rounded to odd.
    """
    product = np.multiply(a, b, dtype=np.float64)
    shape = product.shape
    total = np.add(product, c, out=product if _fits(shape, np.shape(c)) else None)
    result = total.astype(np.float32)
    suspect = (total.view(np.int64) & _TIE_MASK) == _TIE
    small = np.abs(result) < _NORMAL
    if small.any():
        suspect |= small & (total != 0)
    if suspect.any():
        _round_again(a, b, c, result, suspect)
    return result


def _fits(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """`other` broadcasts to `shape` without enlarging it."""
    return len(shape) == len(other) and all(n in (1, m) for n, m in zip(other, shape, strict=True))


def _round_again(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, result: np.ndarray, where: np.ndarray
) -> None:
    a, b, c = (np.broadcast_to(v, result.shape)[where].astype(np.float64) for v in (a, b, c))
    product = a * b
    total = product + c
    # The error of the sum, exactly (Knuth's two-sum).
    part = total - product
    error = (product - (total - part)) + (c - part)
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    # Towards the exact sum: the magnitude grows where error and sum have one sign.
    grows = (error > 0) == (total > 0)
    bits = np.where(inexact, np.where(grows, bits + 1, bits - 1), bits)
    result[where] = bits.view(np.float64).astype(np.float32)


# ---- Python integers ---------------------------------------------------------------------------


def _python_floordiv(a: int, b: int) -> int:
    return a // b if b else 0


def _python_mod(a: int, b: int) -> int:
    return a % b if b else a


_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": _python_floordiv,
    "mod": _python_mod,
    "max": max,
    "min": min,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_PYTHON_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@cache
def scalar_binary(kind: str, dtype: DType) -> Function:
    """Like `binary` for scalars: Python ints and bools among themselves give Python numbers."""
    on_arrays = binary(kind, dtype)
    if dtype.is_float:
        return on_arrays
    if dtype.kind is Kind.BOOL:
        on_bools = _PYTHON[kind]
        return lambda a, b: on_bools(a, b) if type(a) is bool is type(b) else on_arrays(a, b)
    on_ints = _python_shift(kind, dtype) if kind in ("shl", "shr") else _PYTHON[kind]
    target = dtype.numpy.type
    lo, hi = (wrap(1 << (dtype.bits - 1), dtype), wrap(-1, dtype))
    if dtype.kind is Kind.INT:
        hi = (1 << (dtype.bits - 1)) - 1
    else:
        lo = 0

    def step(a: Any, b: Any) -> Any:
        if type(a) is int and type(b) is int:
            r = on_ints(a, b)
            return r if lo <= r <= hi else wrap(r, dtype)
        return on_arrays(target(a) if type(a) is int else a, target(b) if type(b) is int else b)

    return step


def _python_shift(kind: str, dtype: DType) -> Callable[[int, int], int]:
    bits = dtype.bits
    if kind == "shl":
        return lambda a, b: a << b if 0 <= b < bits else 0
    return lambda a, b: a >> b if 0 <= b < bits else (-1 if a < 0 else 0)


@cache
def scalar_compare(kind: str, dtype: DType) -> Function:
    """Like `compare` for scalars; numbers give a Python bool."""
    on_numbers, on_arrays = _PYTHON_COMPARE[kind], compare(kind, dtype)

    def step(a: Any, b: Any) -> Any:
        if type(a) is int and type(b) is int:
            return on_numbers(a, b)
        r = on_arrays(a, b)
        return r if type(r) is np.ndarray else bool(r)

    return step


@cache
def scalar_unary(kind: str, dtype: DType) -> Function:
    """Like `unary` for scalars."""
    on_arrays = unary(kind, dtype)
    if dtype.is_float:
        return on_arrays
    if dtype.kind is Kind.BOOL:
        return lambda a: (not a) if type(a) is bool else on_arrays(a)
    on_ints = {"neg": operator.neg, "abs": abs, "not": operator.invert}[kind]
    return lambda a: wrap(on_ints(a), dtype) if type(a) is int else on_arrays(a)

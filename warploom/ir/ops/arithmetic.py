"""Kinds of arithmetic that scalar, tile and register operations share, with the result dtypes.

The rules of `docs/numerics.md` hold for each kind at every stage and on every device: `//` and `%`
as in Python, NaN propagates through max and min, +0 is above -0 there, nothing is contracted.
"""

from __future__ import annotations

from warploom.base.dtypes import DType, boolean
from warploom.ir.op import Complaint

BINARY = (
    "add",
    "sub",
    "mul",
    "div",  # floats only, correctly rounded
    "floordiv",  # rounded down, as in Python
    "mod",  # with the sign of the divisor
    "max",
    "min",
    "and",
    "or",
    "xor",
    "shl",
    "shr",  # arithmetic for signed integers, logical for unsigned ones
)
UNARY = (
    "neg",
    "abs",
    "not",
    "floor",
    "ceil",
    "round",
    "exp",
    "exp2",
    "log",
    "log2",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "erf",
    "rcp",
)
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
FOLD = ("add", "max", "min", "and", "or")
ARG_FOLD = ("max", "min")

FLOAT_KINDS = {
    "div",
    "floor",
    "ceil",
    "round",
    "exp",
    "exp2",
    "log",
    "log2",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "erf",
    "rcp",
}
_INT_ONLY = {"shl", "shr"}
_BIT = {"and", "or", "xor", "not"}
FLOAT32_KINDS = {
    "exp",
    "exp2",
    "log",
    "log2",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "erf",
    "rcp",
}


def binary_dtype(kind: str, lhs: DType, rhs: DType) -> DType:
    """Result of a binary operation; both operands have one dtype."""
    if kind not in BINARY:
        raise Complaint(f"unknown arithmetic {kind}")
    if lhs != rhs:
        raise Complaint(f"{kind} of {lhs} and {rhs}")
    _check_kind(kind, lhs)
    return lhs


def unary_dtype(kind: str, dtype: DType) -> DType:
    """Result of a unary operation. Transcendental kinds and rcp take f32 (f64 for scalars)."""
    if kind not in UNARY:
        raise Complaint(f"unknown arithmetic {kind}")
    _check_kind(kind, dtype)
    if kind in FLOAT32_KINDS and dtype.bits < 32:
        raise Complaint(f"{kind} of {dtype}: cast to f32 first")
    return dtype


def compare_dtype(kind: str, lhs: DType, rhs: DType) -> DType:
    """Comparison gives bool; with NaN all but `ne` are false."""
    if kind not in COMPARE:
        raise Complaint(f"unknown comparison {kind}")
    if lhs != rhs:
        raise Complaint(f"{kind} of {lhs} and {rhs}")
    if lhs.is_f8:
        raise Complaint(f"{kind} of {lhs}")
    return boolean


def _check_kind(kind: str, dtype: DType) -> None:
    if dtype.is_f8:
        fits = False
    elif kind in FLOAT_KINDS:
        fits = dtype.is_float
    elif kind in _INT_ONLY:
        fits = dtype.is_int
    elif kind in _BIT:
        fits = dtype.is_int or dtype.is_bool
    else:
        fits = not dtype.is_bool
    if not fits:
        raise Complaint(f"{kind} of {dtype}")

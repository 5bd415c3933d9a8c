"""C++ expressions of arithmetic, comparison, choice and conversion: one dtype, operands as text.

Scalar and register operations share them. Each is one operation with the rounding that
`docs/numerics.md` states; nothing is contracted, no operand is evaluated twice to a different end.
"""

from __future__ import annotations

import re

from warploom.base.dtypes import DType, f32, i16
from warploom.codegen.c_types import F8, HALF, NARROW, WRAP, c_type
from warploom.codegen.prelude import Prelude

_OPERATOR = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FUNCTION = {
    "abs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "round": "rint",
    "exp": "exp",
    "exp2": "exp2",
    "log": "log",
    "log2": "log2",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "sin": "sin",
    "cos": "cos",
    "tanh": "tanh",
    "erf": "erf",
}
_LITERAL = re.compile(r"(\d+)(?:u|ll|ull)?$")


def positive_literal(text: str) -> int | None:
    """The number of an integer literal, or None for anything else."""
    found = _LITERAL.match(text)
    return int(found.group(1)) if found else None


def binary(prelude: Prelude, kind: str, dtype: DType, a: str, b: str) -> str:
    """`a kind b` for two operands of a dtype."""
    if dtype.name in HALF:
        wide = binary(prelude, kind, f32, widened(prelude, dtype, a), widened(prelude, dtype, b))
        return narrowed(prelude, dtype, wide)
    if kind in ("and", "or", "xor"):
        return f"{a} {_OPERATOR[kind]} {b}"
    if dtype.is_float:
        if kind in ("max", "min", "floordiv", "mod"):
            prelude.use(f"{kind}_{dtype.name}")
            return f"{kind}_{dtype.name}({a}, {b})"
        return f"{a} {_OPERATOR[kind]} {b}"
    return _integer(prelude, kind, dtype, a, b)


def _integer(prelude: Prelude, kind: str, dtype: DType, a: str, b: str) -> str:
    if kind in ("max", "min"):
        sign = ">" if kind == "max" else "<"
        return f"{a} {sign} {b} ? {a} : {b}"
    if kind in ("add", "sub", "mul"):
        return _wrapping(prelude, kind, dtype, a, b)
    if kind in ("shl", "shr"):
        return _shift(prelude, kind, dtype, a, b)
    number = positive_literal(b)
    if number is not None and number > 0 and number & (number - 1) == 0:
        # A shift and a mask are floor division and modulus for negative operands too.
        if kind == "floordiv":
            return f"{a} >> {number.bit_length() - 1}" if number > 1 else a
        return f"{a} & {number - 1}"
    wide = {8: "i32", 16: "i32"}.get(dtype.bits, dtype.name)
    if dtype.name in ("u8", "u16"):
        wide = "u32"
    prelude.use(f"{kind}_{wide}")
    return f"{kind}_{wide}({a}, {b})"


def _wrapping(prelude: Prelude, kind: str, dtype: DType, a: str, b: str) -> str:
    """Sums and products modulo 2^bits: in unsigned arithmetic, as signed overflow is undefined."""
    wide = WRAP[dtype.name]
    sign = _OPERATOR[kind]
    if dtype.name in ("u32", "u64"):
        return f"{a} {sign} {b}"
    # One unsigned operand makes the whole operation unsigned.
    unsigned = "ull" if wide == "u64" else "u"
    for mine, other, first in ((b, a, False), (a, b, True)):
        number = positive_literal(mine)
        if number is not None:
            text = f"{number}{unsigned}"
            return f"{text} {sign} {other}" if first else f"{other} {sign} {text}"
    prelude.use(wide)
    return f"{wide}({a}) {sign} {b}"


def _shift(prelude: Prelude, kind: str, dtype: DType, a: str, b: str) -> str:
    number = positive_literal(b)
    if number is not None and number < dtype.bits:
        if kind == "shr":
            return f"{a} >> {number}"
        wide = WRAP[dtype.name]
        prelude.use(wide)
        return f"{wide}({a}) << {number}"
    prelude.use(f"{kind}_{dtype.name}")
    return f"{kind}_{dtype.name}({a}, {b})"


def unary(prelude: Prelude, kind: str, dtype: DType, x: str) -> str:
    """`kind x` for an operand of a dtype."""
    if dtype.name in HALF:
        if kind in ("neg", "abs"):
            prelude.use(f"{kind}_{dtype.name}")
            return f"{kind}_{dtype.name}({x})"
        return narrowed(prelude, dtype, unary(prelude, kind, f32, widened(prelude, dtype, x)))
    if kind == "not":
        return f"!{x}" if dtype.is_bool else f"~{x}"
    if dtype.is_float:
        suffix = "f" if dtype.bits == 32 else ""
        if kind == "neg":
            return f"-{x}"
        if kind == "rcp":
            return f"1.0{suffix} / {x}"
        return f"{_FUNCTION[kind]}{suffix}({x})"
    wide = WRAP[dtype.name]
    zero = "0ull" if wide == "u64" else "0u"
    if kind == "neg":
        return f"{zero} - {x}"
    assert kind == "abs", kind
    if dtype.kind.value == "uint":
        return x
    prelude.use(wide)
    return f"{x} < 0 ? {zero} - {x} : {wide}({x})"


def fma(a: str, b: str, c: str) -> str:
    """a × b + c in f32 with one rounding."""
    return f"__fmaf_rn({a}, {b}, {c})"


def compare(prelude: Prelude, kind: str, dtype: DType, a: str, b: str) -> str:
    """A bool: with NaN all but `ne` are false, which is what C++ does."""
    if dtype.name in HALF:
        a, b = widened(prelude, dtype, a), widened(prelude, dtype, b)
    return f"{a} {_COMPARE[kind]} {b}"


def select(condition: str, yes: str, no: str) -> str:
    """One of two operands."""
    return f"{condition} ? {yes} : {no}"


def widened(prelude: Prelude, dtype: DType, x: str) -> str:
    """A narrower float as f32, exactly."""
    prelude.use(f"to_f32_{dtype.name}")
    return f"to_f32({x})"


def narrowed(prelude: Prelude, dtype: DType, x: str) -> str:
    """An f32 rounded to a narrower float."""
    prelude.use(f"to_{dtype.name}")
    return f"to_{dtype.name}({x})"


def cast(prelude: Prelude, source: DType, to: DType, x: str) -> str:
    """Conversion with one rounding to nearest even, or truncation with saturation."""
    if source == to:
        return x
    if to.is_bool:
        return _to_bool(prelude, source, x)
    if source.is_bool:
        # 0 and 1 are exact in every type, as any i16 is in f32.
        x, source = f"({x} ? 1 : 0)", i16
    if to.name in F8 and source.name == "f64":
        prelude.use("to_odd")
        return narrowed(prelude, to, f"to_odd({x})")
    if to.name in NARROW:
        # Integers and f64 go to 16 bits by way of f32, as the contract says.
        return narrowed(prelude, to, cast(prelude, source, f32, x))
    if source.name in NARROW:
        x, source = widened(prelude, source, x), f32
    if source == to:
        return x
    if source.is_float and to.is_int:
        prelude.use(f"to_{to.name}_{source.name}")
        return f"to_{to.name}({x})"
    prelude.type(to)
    return f"({c_type(to)}){x}"


def _to_bool(prelude: Prelude, source: DType, x: str) -> str:
    if source.name in NARROW:
        x = widened(prelude, source, x)
        return f"{x} != 0.0f"
    return f"{x} != 0"

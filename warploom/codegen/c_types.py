"""How dtypes and literals are spelt in the emitted CUDA C++."""

from __future__ import annotations

import math

import numpy as np

from warploom.base.dtypes import DType

C_TYPE: dict[str, str] = {
    "f8e4m3": "f8e4m3",
    "f8e5m2": "f8e5m2",
    "f16": "f16",
    "bf16": "bf16",
    "f32": "float",
    "f64": "double",
    "i8": "signed char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
    "u8": "unsigned char",
    "u16": "unsigned short",
    "u32": "u32",
    "u64": "u64",
    "bool": "bool",
}
# Floats of 16 and 8 bits are structures of the prelude around their bits: C++ has no arithmetic on
# them, so that none is done by accident.
HALF = ("f16", "bf16")
F8 = ("f8e4m3", "f8e5m2")
NARROW = (*HALF, *F8)

# Unsigned type in which an integer dtype wraps around; C++ leaves signed overflow undefined.
WRAP: dict[str, str] = {
    "i8": "u32",
    "u8": "u32",
    "i16": "u32",
    "u16": "u32",
    "i32": "u32",
    "u32": "u32",
    "i64": "u64",
    "u64": "u64",
}


def c_type(dtype: DType) -> str:
    """The C++ type of a register of this dtype."""
    return C_TYPE[dtype.name]


def memory_type(dtype: DType) -> str:
    """The C++ type of an element in memory: a bool is one byte there."""
    return "unsigned char" if dtype.is_bool else C_TYPE[dtype.name]


def literal(number: int | float | bool, dtype: DType) -> str:
    """A constant, rounded to `dtype`, as one C++ operand (negative ones in parentheses)."""
    if dtype.is_bool:
        return "true" if number else "false"
    if dtype.name in NARROW:
        return _narrow(float(number), dtype)
    if dtype.is_float:
        return _float(float(number), dtype)
    return _integer(int(number), dtype)


def _integer(number: int, dtype: DType) -> str:
    """An integer constant; the smallest one has no literal of its own in C++."""
    if dtype.kind.value == "int":
        number = (number + (1 << (dtype.bits - 1))) % (1 << dtype.bits) - (1 << (dtype.bits - 1))
    else:
        number %= 1 << dtype.bits
    suffix = {"i64": "ll", "u64": "ull", "u32": "u"}.get(dtype.name, "")
    if dtype.bits >= 32 and number == -(1 << (dtype.bits - 1)):
        return f"({number + 1}{suffix} - 1)"
    return f"({number}{suffix})" if number < 0 else f"{number}{suffix}"


def _float(number: float, dtype: DType) -> str:
    """A float constant: the shortest decimal that reads back as the same bits."""
    bits = dtype.bits
    with np.errstate(over="ignore"):
        rounded = np.float32(number) if bits == 32 else np.float64(number)
    value = float(rounded)
    if math.isnan(value):
        made = (
            "__int_as_float(0x7fffffff)"
            if bits == 32
            else "__longlong_as_double(0x7fffffffffffffffll)"
        )
        return made
    if math.isinf(value):
        if bits == 32:
            return f"__int_as_float(0x{0x7F800000 if value > 0 else 0xFF800000:08x})"
        pattern = "0x7ff0000000000000ll" if value > 0 else "0xfff0000000000000ll"
        return f"__longlong_as_double({pattern})"
    text = str(rounded)
    if not any(mark in text for mark in ".e"):
        text += ".0"
    text += "f" if bits == 32 else ""
    return f"({text})" if text.startswith("-") else text


def _narrow(number: float, dtype: DType) -> str:
    """A constant of 16 or 8 bits by its bits, its value beside it."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(number, dtype=np.float64).astype(dtype.numpy)
    digits = dtype.bits // 4
    bits = int(rounded.view(np.uint16 if dtype.bits == 16 else np.uint8))
    return f"{dtype.name}{{0x{bits:0{digits}x}}} /* {float(rounded)!r} */"

"""What a case of an operation is; edge values; references that know nothing of either device.

A case names an operation and a dtype and makes a call with outputs and what they must hold. The
test looks for the operation in the compiled text: a case cannot claim what it does not run.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from warploom.base.dtypes import BY_NAME, DType

FLOATS = ("f32", "f16", "bf16")
INTEGERS = ("i32", "i64")
NUMBERS = FLOATS + INTEGERS
ALL = (*NUMBERS, "bool")
F8 = ("f8e4m3", "f8e5m2")
DATA = (*ALL, *F8)  # what is moved and converted


@dataclass
class Trial:
    """A call that has not been made, and its outputs (arrays of the device) with what they shall
    be. `ulp`: units in the last place that floats may be off; 0 compares bits. `absolute`: what
    they may be off besides.
    """

    call: Any
    pairs: list[tuple[Any, np.ndarray]]
    ulp: float = 0.0
    printed: str | None = None
    absolute: float = 0.0


@dataclass(frozen=True)
class Case:
    """One operation with one dtype. `note` tells cases of one operation and dtype apart."""

    op: str
    dtype: str
    make: Callable[[Any], Trial] = field(compare=False)
    note: str = ""

    def __str__(self) -> str:
        return "-".join(part for part in (self.op, self.dtype, self.note) if part)


# ---- values ------------------------------------------------------------------------------------

_FLOAT_EDGES = [0.0, -0.0, 1.0, -1.0, 1.5, -2.75, 3.0, 100.0, math.inf, -math.inf, math.nan]


def edges(name: str) -> np.ndarray:
    """Values of a dtype that operations go wrong at: zeros, ends of the range, denormals, NaN."""
    dtype = BY_NAME[name]
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_int:
        info = np.iinfo(dtype.numpy)
        near = [0, 1, -1, 2, -2, 7, -7, 31, 33, 12345, info.max, info.min, info.max - 1]
        return np.array(near, dtype.numpy)
    info = ml_dtypes.finfo(dtype.numpy)
    more = [float(info.max), float(info.min), float(info.tiny), float(info.smallest_subnormal)]
    more += [-float(info.smallest_subnormal) * 3, 1 + float(info.eps)]
    return np.array(_FLOAT_EDGES + more).astype(dtype.numpy)


def pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Every edge value with every other one."""
    values = edges(name)
    return np.repeat(values, len(values)), np.tile(values, len(values))


def spread(name: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Seeded values of a dtype, different enough that a wrong place shows."""
    rng = np.random.default_rng(seed)
    dtype = BY_NAME[name]
    if dtype.is_bool:
        return rng.random(shape) < 0.5
    if dtype.is_int:
        return rng.integers(-1000, 1000, shape).astype(dtype.numpy)
    return rng.standard_normal(shape).astype(dtype.numpy)


def wide(array: np.ndarray) -> np.ndarray:
    """Floats of 16 and 8 bits as float32, others as they are."""
    narrow = array.dtype.itemsize == 2 or array.dtype.kind == "V"
    return array.astype(np.float32) if narrow or array.dtype.name.startswith("float8") else array


# ---- comparison --------------------------------------------------------------------------------


def bits(array: np.ndarray) -> np.ndarray:
    """Bits with NaN as one class."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind in "bi":
        return array
    word = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize]
    raw = array.view(word)
    return np.where(np.isnan(array.astype(np.float64)), ~np.zeros_like(raw), raw)


def differences(
    found: np.ndarray, expected: np.ndarray, ulp: float, absolute: float = 0.0
) -> list[str]:
    """Elements that are not what they shall be, in words; at most ten."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return [f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"]
    if ulp or absolute:
        with np.errstate(all="ignore"):
            unit = np.spacing(np.abs(expected)).astype(np.float64)
            error = np.abs(found.astype(np.float64) - expected.astype(np.float64))
            near = error <= ulp * np.where(np.isfinite(unit), unit, 0) + absolute
        wrong = ~(near | (bits(found) == bits(expected)))
    else:
        wrong = bits(found) != bits(expected)
    at = np.argwhere(wrong)[:10]
    return [
        f"{tuple(int(n) for n in i)}: {found[tuple(i)]!r}, not {expected[tuple(i)]!r}" for i in at
    ]


# ---- reference of arithmetic -------------------------------------------------------------------


def choose(kind: str, a: float, b: float) -> float:
    """max and min of the contract: NaN propagates, +0 is above −0."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    first, second = (a, math.copysign(1, a)), (b, math.copysign(1, b))
    larger = a if first >= second else b
    return larger if kind == "max" else (b if larger is a else a)


def integer(kind: str, a: int, b: int, dtype: DType) -> int:
    """Integer arithmetic of the contract on Python's integers."""
    width = dtype.bits
    results: dict[str, Callable[[], int]] = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "floordiv": lambda: a // b if b else 0,
        "mod": lambda: a % b if b else a,
        "max": lambda: max(a, b),
        "min": lambda: min(a, b),
        "and": lambda: a & b,
        "or": lambda: a | b,
        "xor": lambda: a ^ b,
        "shl": lambda: a << b if 0 <= b < width else 0,
        "shr": lambda: a >> b if 0 <= b < width else (-1 if a < 0 else 0),
    }
    number = results[kind]() & ((1 << width) - 1)
    return number - (1 << width) if number >> (width - 1) else number


def binary(kind: str, name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What an arithmetic kind gives for arrays of a dtype."""
    dtype = BY_NAME[name]
    if dtype.is_bool:
        return {"and": a & b, "or": a | b, "xor": a ^ b}[kind]
    if dtype.is_int:
        made = [integer(kind, x, y, dtype) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        return np.array(made, dtype.numpy)
    if kind in ("max", "min"):
        both = zip(a.astype(np.float64).tolist(), b.astype(np.float64).tolist(), strict=True)
        return np.array([choose(kind, x, y) for x, y in both]).astype(dtype.numpy)
    f = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "floordiv": np.floor_divide,
        "mod": np.remainder,
    }[kind]
    with np.errstate(all="ignore"):
        # One float32 operation on 16-bit floats and one rounding is the exact result rounded once
        # (but for // and %, which take several).
        return f(wide(a), wide(b)).astype(dtype.numpy)


def convert(array: np.ndarray, name: str) -> np.ndarray:
    """A cast of the contract."""
    dtype = BY_NAME[name]
    with np.errstate(all="ignore"):
        if dtype.is_bool:
            return wide(array) != 0
        if dtype.is_f8:
            numbers = [nearest_f8(float(v), name) for v in array.reshape(-1)]
            return np.array(numbers, np.float32).astype(dtype.numpy)
        array = wide(array)
        if dtype.is_int and array.dtype.kind not in "bi":
            info = np.iinfo(dtype.numpy)
            return np.array([_truncate(float(v), info) for v in array.reshape(-1)], dtype.numpy)
        if dtype.bits == 16:
            return array.astype(np.float32).astype(dtype.numpy)
        return array.astype(dtype.numpy)


def nearest_f8(value: float, name: str) -> float:
    """A number rounded once to an 8-bit float, ties to even; the largest one beyond the range."""
    if math.isnan(value):
        return value
    numbers = np.arange(128, dtype=np.uint8).view(BY_NAME[name].numpy).astype(np.float64)
    finite = numbers[np.isfinite(numbers)].tolist()
    size = min(abs(value), finite[-1])
    after = next(i for i, number in enumerate(finite) if number >= size)
    around = (after, max(after - 1, 0))
    exact = Fraction(size)
    best = min(around, key=lambda i: (abs(Fraction(finite[i]) - exact), i & 1))
    return math.copysign(finite[best], value)


def _truncate(value: float, info: Any) -> int:
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return info.max if value > 0 else info.min
    return min(max(math.trunc(value), info.min), info.max)

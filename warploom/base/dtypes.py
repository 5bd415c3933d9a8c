"""Element types: names, widths, NumPy equivalents. Knows nothing of tiles or of instructions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import ml_dtypes
import numpy as np


class Kind(Enum):
    """What arithmetic an element type takes part in."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"


@dataclass(frozen=True, slots=True)
class DType:
    """One element type. `bits` is the width in memory (bool: 8)."""

    name: str
    bits: int
    kind: Kind

    def __repr__(self) -> str:
        return self.name

    @property
    def bytes(self) -> int:
        """Width in memory, in bytes."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_f8(self) -> bool:
        """A float of 8 bits: moved, converted and multiplied by the matrix unit; no arithmetic."""
        return self.kind is Kind.FLOAT and self.bits == 8

    @property
    def is_int(self) -> bool:
        return self.kind in (Kind.INT, Kind.UINT)

    @property
    def int_range(self) -> tuple[int, int]:
        """The least and the greatest number of an integer type."""
        if self.kind is Kind.UINT:
            return 0, (1 << self.bits) - 1
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1

    @property
    def is_bool(self) -> bool:
        return self.kind is Kind.BOOL

    @property
    def numpy(self) -> np.dtype:
        """The NumPy (or ml_dtypes) type with the same bits."""
        return _NUMPY[self.name]


# Named by bits of exponent and mantissa; e4m3 is the one without infinities (in other places "fn").
f8e4m3 = DType("f8e4m3", 8, Kind.FLOAT)
f8e5m2 = DType("f8e5m2", 8, Kind.FLOAT)
f16 = DType("f16", 16, Kind.FLOAT)
bf16 = DType("bf16", 16, Kind.FLOAT)
f32 = DType("f32", 32, Kind.FLOAT)
f64 = DType("f64", 64, Kind.FLOAT)
i8 = DType("i8", 8, Kind.INT)
i16 = DType("i16", 16, Kind.INT)
i32 = DType("i32", 32, Kind.INT)
i64 = DType("i64", 64, Kind.INT)
u8 = DType("u8", 8, Kind.UINT)
u16 = DType("u16", 16, Kind.UINT)
u32 = DType("u32", 32, Kind.UINT)
u64 = DType("u64", 64, Kind.UINT)
boolean = DType("bool", 8, Kind.BOOL)

_FLOATS = (f8e4m3, f8e5m2, f16, bf16, f32, f64)
ALL: tuple[DType, ...] = (*_FLOATS, i8, i16, i32, i64, u8, u16, u32, u64, boolean)
BY_NAME: dict[str, DType] = {t.name: t for t in ALL}

_NUMPY: dict[str, np.dtype] = {
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
}
_BY_NUMPY: dict[np.dtype, DType] = {_NUMPY[t.name]: t for t in ALL}


def nearest_f8(number: float, dtype: DType) -> float | None:
    """A Python number rounded once to an 8-bit float; None where its range ends before."""
    if math.isnan(number):
        return number
    facts = ml_dtypes.finfo(dtype.numpy)
    if abs(number) > facts.max:
        return None
    _, exponent = math.frexp(number)
    unit = 2.0 ** (max(exponent - 1, facts.minexp) - facts.nmant)
    return math.copysign(round(number / unit) * unit, number)


def from_numpy(dtype: np.dtype) -> DType | None:
    """The element type with the bits of a NumPy type, or None where there is none."""
    return _BY_NUMPY.get(np.dtype(dtype))

"""Annotations of kernel parameters: `Tensor`, the dtypes for scalars, and `const`."""

from __future__ import annotations

from warploom.base.dtypes import (
    DType,
    bf16,
    boolean,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from warploom.language.values import Tensor


class const:
    """Annotation of a compile-time parameter: `BM: wl.const`, with a default if you like.

    Its value belongs to the key of the compiled variant and must be hashable: numbers, texts, None,
    dtypes, `wl.function`s, and tuples of these.
    """


# What a run-time scalar parameter may be.
SCALARS: tuple[DType, ...] = (i32, i64, f32, f64)

__all__ = [
    "SCALARS",
    "DType",
    "Tensor",
    "bf16",
    "boolean",
    "const",
    "f8e4m3",
    "f8e5m2",
    "f16",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
]

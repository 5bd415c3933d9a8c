"""Arithmetic on IR values: which dtypes meet, which shapes fit, what a Python number becomes.

The rules: a Python number takes the dtype of what it meets; nothing is promoted but i32 to i64;
shapes are aligned from the last axis and an extent of 1 repeats. Knows nothing of the wrappers that
kernels see.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from ml_dtypes import finfo

from warploom.base.dtypes import DType, Kind, boolean, f32, i32, i64, nearest_f8
from warploom.ir.op import Value
from warploom.ir.ops import scalar as scalars
from warploom.ir.ops import tile as tiles
from warploom.ir.ops.arithmetic import FLOAT32_KINDS, FLOAT_KINDS
from warploom.ir.types import Scalar, Tile
from warploom.language.context import Refused, builder

Number: TypeAlias = int | float | bool
Operand: TypeAlias = Value | int | float | bool
Shape: TypeAlias = tuple[int, ...]

# The registers of the largest block hold 65536 words; one tile cannot be larger.
_MOST_ELEMENTS = 1 << 17

SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "mod": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "neg": "-",
    "not": "~",
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_BITS = ("and", "or", "xor", "not")


def dtype_of(value: Value) -> DType:
    """The element type of a scalar or tile."""
    type = value.type
    assert isinstance(type, Scalar | Tile)
    return type.dtype


def shape_of(value: Operand) -> Shape | None:
    """The shape of a tile, None for scalars and numbers."""
    if isinstance(value, Value) and isinstance(value.type, Tile):
        return value.type.shape
    return None


def shape_text(shape: Shape) -> str:
    """A shape as Python writes it."""
    return str(shape)


def with_article(word: object) -> str:
    """A dtype with its article: `an f32`, `a bf16`."""
    return f"{'an' if str(word)[0] in 'fi' else 'a'} {word}"


def describe(value: Operand) -> str:
    """A value in words: name, dtype, kind, shape."""
    if not isinstance(value, Value):
        return f"the number {value!r}"
    name = f"`{value.name}`, " if value.name else ""
    type = value.type
    if isinstance(type, Tile):
        return f"{name}{type.dtype} tile of shape {shape_text(type.shape)}"
    if isinstance(type, Scalar):
        return f"{name}{type.dtype} scalar"
    return f"{name}tensor"


def _named(value: Operand, otherwise: str) -> str:
    return value.name if isinstance(value, Value) and value.name else otherwise


def symbol(kind: str) -> str:
    """How a reader writes an operation."""
    return SYMBOLS.get(kind, kind)


# --- numbers ---------------------------------------------------------------------------------


def literal(number: Number, dtype: DType, argument: str = "") -> Value:
    """A Python number as a scalar of a dtype; refuses what the dtype cannot hold."""
    return builder().const(_adopted(number, dtype, argument), dtype)


def _adopted(number: Number, dtype: DType, argument: str) -> Number:
    if dtype.is_bool:
        if isinstance(number, bool) or number in (0, 1):
            return bool(number)
        raise Refused(
            "T003",
            f"{number!r} is not a bool",
            argument=argument,
            label="True or False",
            hint="write True or False",
        )
    if dtype.is_float:
        value = float(number)
        if dtype.is_f8:
            return _adopted_f8(value, dtype, argument)
        with np.errstate(over="ignore"):
            rounded = float(np.array(value).astype(dtype.numpy))
        if math.isinf(rounded) and not math.isinf(value):
            raise Refused(
                "T003", f"{number!r} does not fit {dtype}", argument=argument, label="too large"
            )
        return value
    if isinstance(number, float):
        raise Refused(
            "T002",
            f"the float {number!r} meets the integer type {dtype}",
            argument=argument,
            label=f"would become {dtype}",
            hint="write an integer, or `.cast(wl.f32)` the other side first",
        )
    low, high = int_limits(dtype)
    if not low <= number <= high:
        raise Refused(
            "T003",
            f"{number} does not fit {dtype}",
            argument=argument,
            label="out of range",
            notes=(f"{dtype} holds {low} to {high}",),
            hint="use a wider type: `.cast(wl.i64)`" if dtype.bits < 64 else "",
        )
    return int(number)


def _adopted_f8(number: float, dtype: DType, argument: str) -> float:
    """A number rounded once; what is beyond the range is refused, not saturated as casts do."""
    near = nearest_f8(number, dtype)
    if near is None:
        raise Refused(
            "T003",
            f"{number!r} does not fit {dtype}",
            argument=argument,
            label="too large",
            notes=(f"the largest number of {dtype} is {float(finfo(dtype.numpy).max):g}",),
        )
    return near


def int_limits(dtype: DType) -> tuple[int, int]:
    """Smallest and largest number of an integer type."""
    if dtype.kind is Kind.UINT:
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def natural_dtype(number: Number) -> DType:
    """The dtype of a number that meets nothing: bool, i32 (i64 where too large), f32."""
    if isinstance(number, bool):
        return boolean
    if isinstance(number, float):
        return f32
    low, high = int_limits(i32)
    return i32 if low <= number <= high else i64


def materialise(operand: Operand, dtype: DType | None = None, argument: str = "") -> Value:
    """A value as it is, a number as a scalar of `dtype` or of its natural one."""
    if isinstance(operand, Value):
        return operand
    return literal(operand, dtype or natural_dtype(operand), argument)


# --- shapes ----------------------------------------------------------------------------------


def broadcast_shape(a: Shape, b: Shape) -> Shape | None:
    """The common shape, axes aligned from the last; None where an axis has two extents above 1."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    out = []
    for m, n in zip(a, b, strict=True):
        if m != n and m != 1 and n != 1:
            return None
        out.append(n if m == 1 else m)
    return tuple(out)


def spread(value: Value, shape: Shape) -> Value:
    """A scalar or tile repeated to a shape that it is known to fit."""
    b = builder()
    held = shape_of(value)
    if held is None:
        return b.emit(tiles.Splat(value=value, shape=shape))
    while len(held) < len(shape):
        value = b.emit(tiles.InsertAxis(value=value, axis=0), value.name)
        held = (1, *held)
    if held != shape:
        value = b.emit(tiles.Broadcast(value=value, shape=shape), value.name)
    return value


def check_size(shape: Shape, argument: str = "") -> None:
    """Refuse a tile that no block can hold."""
    count = math.prod(shape)
    if count > _MOST_ELEMENTS:
        raise Refused(
            "T021",
            f"a tile of {count:,} elements does not fit the registers of a block",
            argument=argument,
            notes=(f"shape {shape_text(shape)}; the most is {_MOST_ELEMENTS:,} elements",),
            hint="use a smaller tile and a loop over `wl.range`",
        )


def common_shape(what: str, *operands: Operand) -> Shape | None:
    """The shape that operands are spread to, None where all are scalars; refuses with T005."""
    shape: Shape | None = None
    seen: list[Operand] = []
    for operand in operands:
        held = shape_of(operand)
        if held is None:
            continue
        seen.append(operand)
        joined = held if shape is None else broadcast_shape(shape, held)
        if joined is None:
            assert shape is not None
            raise Refused(
                "T005",
                f"the shapes {shape_text(shape)} and {shape_text(held)} do not fit in {what}",
                notes=tuple(describe(o) for o in seen),
                hint=_shape_hint(shape, held, operand),
            )
        shape = joined
    if shape is not None:
        check_size(shape)
    return shape


def _shape_hint(a: Shape, b: Shape, operand: Operand) -> str:
    """What to write where a missing axis explains the misfit."""
    if len(b) == 1 and len(a) == 2 and b[0] == a[0]:
        return f"give the shorter one a new last axis: `{_named(operand, 't')}[:, None]`"
    if len(a) == 1 and len(b) == 2 and a[0] == b[0]:
        return "give the shorter one a new last axis: `t[:, None]`"
    return "extents must be equal, or 1, on every axis counted from the last"


# --- dtypes ----------------------------------------------------------------------------------


def common_dtype(what: str, *operands: Operand) -> DType:
    """The one dtype of an operation; numbers adopt it, i32 widens to i64."""
    values = [o for o in operands if isinstance(o, Value)]
    if not values:
        return max((natural_dtype(o) for o in operands if not isinstance(o, Value)), key=_rank)
    first = values[0]
    dtype = dtype_of(first)
    for value in values[1:]:
        other = dtype_of(value)
        joined = joined_dtype(dtype, other)
        if joined is None:
            raise Refused(
                "T001",
                f"{what} takes one dtype, but gets {dtype} and {other}",
                argument="rhs",
                label=f"this is {other}",
                notes=tuple(describe(v) for v in values),
                hint=_cast_hint(first, value),
            )
        dtype = joined
    return dtype


def joined_dtype(a: DType, b: DType) -> DType | None:
    """The dtype that holds two: equal ones, or i64 for i32 and i64; else None.

    Indices are i32 or i64 by the size of an argument, and a kernel has to mean the same with both.
    """
    if a == b:
        return a
    return i64 if {a, b} == {i32, i64} else None


def _rank(dtype: DType) -> tuple[bool, int]:
    return dtype.is_float, dtype.bits


def _cast_hint(a: Value, b: Value) -> str:
    """Which side to convert: the narrower one, integers to floats."""
    narrow, wide = sorted((a, b), key=lambda v: _rank(dtype_of(v)))
    name = _named(narrow, "t")
    return f"nothing is promoted; convert one side, such as `{name}.cast(wl.{dtype_of(wide)})`"


def convert(value: Value, dtype: DType) -> Value:
    """A scalar or tile in another dtype; nothing where it has it."""
    if dtype_of(value) == dtype:
        return value
    made = scalars.Cast if shape_of(value) is None else tiles.Cast
    return builder().emit(made(value=value, dtype=dtype), value.name)


def _check_dtype(kind: str, dtype: DType, argument: str = "") -> None:
    """Refuse, with T004 and a way out, operations that do not exist for a dtype."""
    shown = f"`{symbol(kind)}`"
    hint = ""
    if dtype.is_f8:
        hint = "compute it in f32: `.cast(wl.f32)` before, and back after"
    elif dtype.is_bool and kind not in _BITS and kind not in COMPARISONS:
        hint = "use `&`, `|`, `^`, `~`, or cast it: `.cast(wl.i32)`"
    elif kind in FLOAT_KINDS and not dtype.is_float:
        hint = (
            "`//` divides integers, or cast to wl.f32"
            if kind == "div"
            else "cast it: `.cast(wl.f32)`"
        )
    elif kind in FLOAT32_KINDS and dtype.bits < 32:
        hint = "compute it in f32: `.cast(wl.f32)` before, and back after"
    elif kind in ("shl", "shr", *_BITS) and dtype.is_float:
        hint = "cast to an integer type"
    if hint:
        raise Refused("T004", f"{shown} is not defined for {dtype}", argument=argument, hint=hint)


# --- operations ------------------------------------------------------------------------------


def unify(what: str, *operands: Operand) -> tuple[DType, Shape | None, list[Value]]:
    """Operands with one dtype and one shape."""
    shape = common_shape(what, *operands)
    dtype = common_dtype(what, *operands)
    names = ("lhs", "rhs")
    values = []
    for index, operand in enumerate(operands):
        argument = names[index] if len(operands) == 2 else ""
        if isinstance(operand, Value):
            value = convert(operand, dtype)
        else:
            value = literal(operand, dtype, argument)
        values.append(value if shape is None else spread(value, shape))
    return dtype, shape, values


def binary(kind: str, lhs: Operand, rhs: Operand) -> Value:
    """Arithmetic of two operands, at least one of them a value."""
    what = f"`{symbol(kind)}`"
    _check_dtype(kind, common_dtype(what, lhs, rhs))
    _, shape, (a, b) = unify(what, lhs, rhs)
    if shape is None:
        return builder().emit(scalars.Binary(lhs=a, rhs=b, kind=kind))
    return builder().emit(tiles.Binary(lhs=a, rhs=b, kind=kind))


def compare(kind: str, lhs: Operand, rhs: Operand) -> Value:
    """Comparison of two operands, at least one of them a value; gives bool."""
    what = f"`{symbol(kind)}`"
    _check_dtype(kind, common_dtype(what, lhs, rhs))
    _, shape, (a, b) = unify(what, lhs, rhs)
    if shape is None:
        return builder().emit(scalars.Compare(lhs=a, rhs=b, kind=kind))
    return builder().emit(tiles.Compare(lhs=a, rhs=b, kind=kind))


def unary(kind: str, value: Value, argument: str = "") -> Value:
    """Arithmetic of one scalar or tile."""
    _check_dtype(kind, dtype_of(value), argument)
    if shape_of(value) is None:
        return builder().emit(scalars.Unary(value=value, kind=kind))
    return builder().emit(tiles.Unary(value=value, kind=kind))


def select(condition: Value, yes: Operand, no: Operand) -> Value:
    """`yes` where the condition holds, else `no`."""
    if not dtype_of(condition).is_bool:
        raise Refused(
            "T004",
            f"the condition of `where` is {dtype_of(condition)}, not bool",
            argument="condition",
            hint="compare it with something, such as `t != 0`",
        )
    what = "`where`"
    common_shape(what, condition, yes, no)
    _, inner, (a, b) = unify(what, yes, no)
    shape = common_shape(what, condition, a, b)
    if shape is None:
        return builder().emit(scalars.Select(condition=condition, yes=a, no=b))
    condition = spread(condition, shape)
    if inner != shape:
        a, b = spread(a, shape), spread(b, shape)
    return builder().emit(tiles.Select(condition=condition, yes=a, no=b))

"""Arithmetic of integer and bool register tiles. What no block changes is kept and found again
at the next trip or launch; comparisons of ranges that do not meet are decided without touching
arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from warploom.base.dtypes import DType, boolean
from warploom.sim import arithmetic
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.values import Fixed, Index, bounded, constant, dense


def binary_integer(kind: str, dtype: DType, a: int, b: int, d: int) -> Step:
    """The step of an integer operation on slots."""
    on_arrays = arithmetic.binary(kind, dtype)
    lazy = {"add": _add, "sub": _sub, "mul": _mul}.get(kind)

    def step(s: Slots, m: Batch) -> None:
        x, y = s[a], s[b]
        if type(x) is Index and type(y) is Index:
            made = lazy(x, y) if lazy is not None else None
            if made is None:
                made = _kept(kind, on_arrays, x, y)
            if made is not None:
                s[d] = made
                return
        s[d] = on_arrays(dense(x), dense(y))

    return step


def _is_zero(fixed: Fixed) -> bool:
    return fixed.lo == 0 == fixed.hi and fixed.array.size == 1


def _add(x: Index, y: Index) -> Index:
    fx, fy = x.fixed, y.fixed
    if _is_zero(fy):
        fixed = fx
    elif _is_zero(fx):
        fixed = fy
    else:
        fixed = fx.keep(("add", fy), lambda: Fixed(fx.array + fy.array))
    return Index(fixed, bounded(x.shift + y.shift), x.dtype)


def _sub(x: Index, y: Index) -> Index:
    fx, fy = x.fixed, y.fixed
    fixed = fx if _is_zero(fy) else fx.keep(("sub", fy), lambda: Fixed(fx.array - fy.array))
    return Index(fixed, bounded(x.shift - y.shift), x.dtype)


def _mul(x: Index, y: Index) -> Index | None:
    if not (_is_zero(y.fixed) and type(y.shift) is int):
        x, y = y, x
    if not (_is_zero(y.fixed) and type(y.shift) is int):
        return None
    fixed, factor = x.fixed, y.shift
    if factor != 1:
        made = fixed.keep(("mul", factor), lambda: Fixed(fixed.array * factor))
        return Index(made, bounded(x.shift * factor), x.dtype)
    return x


def _kept(kind: str, on_arrays: Any, x: Index, y: Index) -> Index | None:
    fx, fy = x.frozen(), y.frozen()
    if fx is None or fy is None:
        return None
    dtype = x.dtype

    def make() -> Fixed:
        lhs, rhs = fx.array.astype(dtype.numpy), fy.array.astype(dtype.numpy)
        return Fixed(on_arrays(lhs, rhs).astype(np.int64))

    return Index(fx.keep((kind, dtype, fy), make), 0, dtype)


# ---- comparison --------------------------------------------------------------------------------


def _decided(kind: str, x: tuple[int, int], y: tuple[int, int]) -> bool | None:
    """The outcome where ranges alone tell it."""
    if kind in ("gt", "ge"):
        kind, x, y = ("lt" if kind == "gt" else "le"), y, x
    if kind == "lt":
        return True if x[1] < y[0] else False if x[0] >= y[1] else None
    if kind == "le":
        return True if x[1] <= y[0] else False if x[0] > y[1] else None
    apart = x[1] < y[0] or y[1] < x[0]
    same = x[0] == x[1] == y[0] == y[1]
    if not apart and not same:
        return None
    return same if kind == "eq" else apart


def compare_integer(kind: str, dtype: DType, rank: int, a: int, b: int, d: int) -> Step:
    """The step of an integer comparison on slots."""
    on_arrays = arithmetic.compare(kind, dtype)
    outcomes = {True: constant(True, rank), False: constant(False, rank)}

    def step(s: Slots, m: Batch) -> None:
        x, y = s[a], s[b]
        if type(x) is Index and type(y) is Index:
            reach_x, reach_y = x.range(), y.range()
            if reach_x is not None and reach_y is not None:
                outcome = _decided(kind, reach_x, reach_y)
                if outcome is not None:
                    s[d] = outcomes[outcome]
                    return
            fx, fy = x.frozen(), y.frozen()
            if fx is not None and fy is not None:
                lhs, rhs = x, y
                s[d] = fx.keep(
                    (kind, dtype, fy), lambda: Fixed(on_arrays(lhs.dense(), rhs.dense()))
                )
                return
        s[d] = on_arrays(dense(x), dense(y))

    return step


# ---- bool --------------------------------------------------------------------------------------


def binary_bool(kind: str, a: int, b: int, d: int) -> Step:
    """The step of and, or, xor of predicates on slots."""
    on_arrays = arithmetic.binary(kind, boolean)

    def step(s: Slots, m: Batch) -> None:
        x, y = s[a], s[b]
        s[d] = combine(kind, on_arrays, x, y)

    return step


def combine(kind: str, on_arrays: Any, x: Any, y: Any) -> Any:
    """Two predicates combined; constants decide without arrays."""
    if type(x) is not Fixed:
        x, y = y, x
    if type(x) is not Fixed:
        return on_arrays(x, y)
    if x.lo == x.hi:
        if kind == "and":
            return y if x.lo else x
        if kind == "or":
            return x if x.lo else y
    if type(y) is not Fixed:
        return on_arrays(x.array, y)
    if y.lo == y.hi and kind in ("and", "or"):
        return combine(kind, on_arrays, y, x)
    return x.keep((kind, y), lambda: Fixed(on_arrays(x.array, y.array)))

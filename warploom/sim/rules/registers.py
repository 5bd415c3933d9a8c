"""Register-wise operations. Floats are arrays; integer and bool tiles that are the same in all
blocks (coordinates, masks) are kept and never computed twice (`values.Index`, `values.Fixed`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.base.dtypes import DType
from warploom.ir.ops import registers
from warploom.ir.types import Regs
from warploom.sim import arithmetic
from warploom.sim.conversions import conversion
from warploom.sim.integer_tiles import binary_bool, binary_integer, compare_integer
from warploom.sim.machine import Batch, Slots, Step, move
from warploom.sim.registry import simulates
from warploom.sim.values import (
    Fixed,
    Index,
    constant,
    dense,
    limits,
    owned,
    scalar_array,
)

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_WORTH_REUSE = 4096  # elements from which writing into an old array pays


def regs(value: Any) -> Regs:
    assert isinstance(value.type, Regs)
    return value.type


# ---- shapes ------------------------------------------------------------------------------------


@simulates(registers.Splat)
def splat(t: Translator, op: registers.Splat) -> Step:
    a, d, rank, dtype = t.slot(op.value), t.slot(op.result), op.rank, regs(op.result).dtype
    zero = constant(0, rank)

    def integer(s: Slots, m: Batch) -> None:
        value = s[a]
        shift = value if type(value) is int else value.astype(np.int64)
        s[d] = Index(zero, shift, dtype)

    def boolean(s: Slots, m: Batch) -> None:
        value = s[a]
        array = type(value) is np.ndarray
        s[d] = scalar_array(value, dtype, rank) if array else constant(bool(value), rank)

    def floating(s: Slots, m: Batch) -> None:
        s[d] = scalar_array(s[a], dtype, rank)

    return integer if dtype.is_int else boolean if dtype.is_bool else floating


@simulates(registers.Spread)
def spread(t: Translator, op: registers.Spread) -> Step:
    """An axis of size 1 already stands for any size."""
    a, d = t.slot(op.value), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = s[a]

    return step


def reshaped(
    t: Translator, op: Any, key: tuple[Any, ...], change: Callable[[np.ndarray], np.ndarray]
) -> Step:
    """A step that only moves register axes, for every way a value is held."""
    a, d = t.slot(op.value), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        value = s[a]
        if type(value) is np.ndarray:
            s[d] = change(value)
            return
        held = value.fixed if type(value) is Index else value
        made = held.keep(key, lambda: Fixed(change(held.array)))
        s[d] = Index(made, value.shift, value.dtype) if type(value) is Index else made

    return step


@simulates(registers.View)
def view(t: Translator, op: registers.View) -> Step:
    return reshaped(t, op, ("view", op.axes), view_of_axes(op.axes, len(regs(op.value).extents)))


def view_of_axes(axes: tuple[int, ...], rank: int) -> Callable[[np.ndarray], np.ndarray]:
    """`change` that inserts, drops and permutes register axes."""
    kept = tuple(a for a in axes if a >= 0)
    dropped = tuple(a for a in range(rank) if a not in kept)
    order = dropped + kept + (rank, rank + 1, rank + 2)
    new = tuple([np.newaxis if a < 0 else slice(None) for a in axes])

    def change(array: np.ndarray) -> np.ndarray:
        moved = array.transpose(order)
        return moved[(0,) * len(dropped)][new]

    return change


@simulates(registers.Slice)
def slice_registers(t: Translator, op: registers.Slice) -> Step:
    change = slice_of_axis(op.axis, op.start, op.size)
    return reshaped(t, op, ("slice", op.axis, op.start, op.size), change)


def slice_of_axis(axis: int, start: int, size: int) -> Callable[[np.ndarray], np.ndarray]:
    """`change` that keeps some registers of an axis."""
    part = (slice(None),) * axis + (slice(start, start + size),)
    return lambda array: array if array.shape[axis] == 1 else array[part]


@simulates(registers.Cat)
def cat(t: Translator, op: registers.Cat) -> Step:
    parts = [(t.slot(v), regs(v).extents) for v in op.values]
    axis, d = op.axis, t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = joined([(dense(s[a]), extents) for a, extents in parts], axis)

    return step


def joined(parts: list[tuple[np.ndarray, tuple[int, ...]]], axis: int) -> np.ndarray:
    """Arrays of register tiles (with their full extents) joined along an axis."""
    common = np.broadcast_shapes(*(a.shape[:axis] + (1,) + a.shape[axis + 1 :] for a, _ in parts))
    full = [
        np.broadcast_to(a, common[:axis] + (extents[axis],) + common[axis + 1 :])
        for a, extents in parts
    ]
    return np.concatenate(full, axis)


# ---- elementwise -------------------------------------------------------------------------------


@simulates(registers.Binary)
def binary(t: Translator, op: registers.Binary) -> Step:
    dtype = regs(op.lhs).dtype
    f = arithmetic.binary(op.kind, dtype)
    a, b, d = t.slot(op.lhs), t.slot(op.rhs), t.slot(op.result)
    if dtype.is_int:
        return binary_integer(op.kind, dtype, a, b, d)
    if dtype.is_bool:
        return binary_bool(op.kind, a, b, d)
    if not isinstance(f, np.ufunc) or not (t.dies(op, op.lhs) or t.dies(op, op.rhs)):

        def plain(s: Slots, m: Batch) -> None:
            s[d] = f(s[a], s[b])

        return plain
    lhs_dies, rhs_dies = t.dies(op, op.lhs), t.dies(op, op.rhs)

    def step(s: Slots, m: Batch) -> None:
        x, y = s[a], s[b]
        if x.size >= _WORTH_REUSE and lhs_dies and y.size <= x.size and owned(x):
            out = x
        elif y.size >= _WORTH_REUSE and rhs_dies and x.size <= y.size and owned(y):
            out = y
        else:
            s[d] = f(x, y)
            return
        try:
            s[d] = f(x, y, out=out)
        except ValueError:  # the result is larger than either
            s[d] = f(x, y)

    return step


@simulates(registers.Unary)
def unary(t: Translator, op: registers.Unary) -> Step:
    f = arithmetic.unary(op.kind, regs(op.value).dtype)
    return _elementwise(t.slot(op.value), t.slot(op.result), f)


def _elementwise(a: int, d: int, f: Callable[[np.ndarray], np.ndarray]) -> Step:
    def step(s: Slots, m: Batch) -> None:
        s[d] = f(dense(s[a]))

    return step


@simulates(registers.Fma)
def fma(t: Translator, op: registers.Fma) -> Step:
    a, b, c, d = t.slot(op.a), t.slot(op.b), t.slot(op.c), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = arithmetic.fma(s[a], s[b], s[c])

    return step


@simulates(registers.Compare)
def compare(t: Translator, op: registers.Compare) -> Step:
    dtype = regs(op.lhs).dtype
    a, b, d = t.slot(op.lhs), t.slot(op.rhs), t.slot(op.result)
    if dtype.is_int:
        return compare_integer(op.kind, dtype, len(regs(op.lhs).extents), a, b, d)
    f = arithmetic.compare(op.kind, dtype)

    def step(s: Slots, m: Batch) -> None:
        s[d] = f(dense(s[a]), dense(s[b]))

    return step


@simulates(registers.Select)
def select(t: Translator, op: registers.Select) -> Step:
    c, yes, no, d = t.slot(op.condition), t.slot(op.yes), t.slot(op.no), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        condition = s[c]
        if type(condition) is Fixed:
            if condition.lo:
                s[d] = s[yes]
                return
            if not condition.hi:
                s[d] = s[no]
                return
        s[d] = np.where(dense(condition), dense(s[yes]), dense(s[no]))

    return step


@simulates(registers.Cast)
def cast(t: Translator, op: registers.Cast) -> Step:
    source, target = regs(op.value).dtype, op.dtype
    a, d = t.slot(op.value), t.slot(op.result)
    f = conversion(source, target)
    if not (source.is_int and target.is_int):
        return _elementwise(a, d, f)
    first, last = limits(target)

    def step(s: Slots, m: Batch) -> None:
        value = s[a]
        if type(value) is Index:
            reach = value.range()
            if reach is not None and first <= reach[0] and reach[1] <= last:
                s[d] = Index(value.fixed, value.shift, target)
                return
        s[d] = f(dense(value))

    return step


@simulates(registers.Map)
def map_registers(t: Translator, op: registers.Map) -> Step:
    """The body's operations, one after the other on whole arrays."""
    steps = t.steps(op.body)
    given, results, spent = t.given(op.body), [t.slot(r) for r in op.results], t.spent(op.body)

    def step(s: Slots, m: Batch) -> None:
        for f in steps:
            f(s, m)
        move(s, m, given, results)
        for a in spent:
            s[a] = None

    return step


# ---- folds -------------------------------------------------------------------------------------


@simulates(registers.Fold)
def fold(t: Translator, op: registers.Fold) -> Step:
    type = regs(op.value)
    f = arithmetic.binary(op.kind, type.dtype)
    a, d, axis, extent = t.slot(op.value), t.slot(op.result), op.axis, type.extents[op.axis]
    parts = [(slice(None),) * axis + (slice(r, r + 1),) for r in range(extent)]

    def step(s: Slots, m: Batch) -> None:
        value = dense(s[a])
        if value.shape[axis] != extent:
            shape = value.shape
            value = np.broadcast_to(value, shape[:axis] + (extent,) + shape[axis + 1 :])
        if extent == 1:
            s[d] = value
            return
        # Register by register: NumPy's own sums are pairwise for some shapes.
        total = f(value[parts[0]], value[parts[1]])
        for part in parts[2:]:
            total = f(total, value[part], out=total)
        s[d] = total

    return step


@simulates(registers.ArgFold)
def arg_fold(t: Translator, op: registers.ArgFold) -> Step:
    type = regs(op.value)
    wins = better(op.kind, type.dtype)
    extent, axis = type.extents[op.axis], op.axis
    a, i = t.slot(op.value), t.slot(op.index)
    best_slot, at_slot = (t.slot(v) for v in op.results)

    def step(s: Slots, m: Batch) -> None:
        value, place = np.broadcast_arrays(dense(s[a]), dense(s[i]))
        if value.shape[axis] != extent:
            shape = value.shape[:axis] + (extent,) + value.shape[axis + 1 :]
            value, place = np.broadcast_to(value, shape), np.broadcast_to(place, shape)
        front = (slice(None),) * axis
        best, at = value[front + (slice(0, 1),)], place[front + (slice(0, 1),)]
        for r in range(1, extent):
            other, other_at = value[front + (slice(r, r + 1),)], place[front + (slice(r, r + 1),)]
            win = wins(other, other_at, best, at)
            best, at = np.where(win, other, best), np.where(win, other_at, at)
        s[best_slot], s[at_slot] = best, at

    return step


def better(kind: str, dtype: DType) -> Callable[..., np.ndarray]:
    """`f(other, other_at, best, at)`: where the other pair wins. NaN above all, then the value,
    then the lower index."""
    ahead = arithmetic.compare("gt" if kind == "max" else "lt", dtype)
    equal = arithmetic.compare("eq", dtype)
    unequal = arithmetic.compare("ne", dtype)

    def wins(other: np.ndarray, other_at: np.ndarray, best: np.ndarray, at: np.ndarray) -> Any:
        win = ahead(other, best)
        tie = equal(other, best)
        if dtype.is_float:
            other_nan, best_nan = unequal(other, other), unequal(best, best)
            win = win | (other_nan & ~best_nan)
            tie = tie | (other_nan & best_nan)
        return win | (tie & (other_at < at))

    return wins


@simulates(registers.ToScalar)
def to_scalar(t: Translator, op: registers.ToScalar) -> Step:
    a, d, dtype = t.slot(op.value), t.slot(op.result), regs(op.value).dtype
    rank = len(regs(op.value).extents)
    first = (0,) * rank + (slice(None), slice(0, 1), slice(0, 1))

    def step(s: Slots, m: Batch) -> None:
        array = dense(s[a])[first]
        if len(array) > 1:
            s[d] = array
        else:
            s[d] = array[0, 0, 0] if dtype.is_float else array[0, 0, 0].item()

    return step

"""Tile IR evaluated directly on whole arrays, one block after the other: no layout, no lane, no
mask.

Sums of floats are right for integer-valued elements only, where every order gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from warploom.base.dtypes import DType, bf16
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import scalar, tile
from warploom.ir.ops import tensor as tensors
from warploom.ir.ops.control import For, If
from warploom.ir.types import Scalar, Tensor, Tile


@dataclass
class View:
    """A tensor from some rows on: outside of `extents` nothing is there."""

    array: np.ndarray
    origin: tuple[int, ...]
    extents: tuple[int, ...]


def run(kernel: Kernel, grid: tuple[int, int, int], args: Sequence[Any]) -> None:
    """Run all blocks; tensors are written in place."""
    x, y, z = grid
    with np.errstate(all="ignore"):
        for block in np.ndindex(z, y, x):
            Evaluator(kernel, grid, block[::-1], args).block(kernel.body)


class Evaluator:
    def __init__(
        self, kernel: Kernel, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any]
    ) -> None:
        self.grid = grid
        self.id = block
        self.values: dict[Value, Any] = {}
        for param, arg in zip(kernel.params, args, strict=True):
            if isinstance(param.type, Tensor):
                self.values[param] = View(arg, (0,) * arg.ndim, arg.shape)
            else:
                assert isinstance(param.type, Scalar)
                self.values[param] = _scalar(arg, param.type.dtype)

    def block(self, block: Block) -> tuple[Any, ...]:
        """Execute a block; gives what it yields."""
        for op in block.ops[:-1]:
            results = self.op(op)
            for value, result in zip(op.results, results, strict=True):
                self.values[value] = result
        return tuple(self.values[v] for v in block.ops[-1].operand_values())

    def op(self, op: Op) -> tuple[Any, ...]:
        if isinstance(op, For):
            return self.loop(op)
        if isinstance(op, If):
            return self.block(op.then if self.values[op.condition] else op.orelse)
        given = [self.values[v] for v in op.operand_values()]
        rule = RULES[type(op)]
        result = rule(self, op, *given)
        return () if not op.results else (result,)

    def loop(self, op: For) -> tuple[Any, ...]:
        lo, hi, step = (int(self.values[v]) for v in (op.lo, op.hi, op.step))
        index, *args = op.body.args
        carried = tuple(self.values[v] for v in op.inits)
        for number in range(lo, hi, step):
            self.values[index] = _scalar(number, _dtype(index))
            self.values.update(zip(args, carried, strict=True))
            carried = self.block(op.body)
        return carried


Rule = Callable[..., Any]
RULES: dict[type[Op], Rule] = {}


def rule(*classes: type[Op]) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(classes, function))
        return function

    return enter


def _dtype(value: Value) -> DType:
    assert isinstance(value.type, Scalar | Tile)
    return value.type.dtype


def _scalar(number: Any, dtype: DType) -> np.ndarray:
    return np.asarray(number).astype(dtype.numpy)


# ---- scalars and elementwise ---------------------------------------------------------------------


@rule(scalar.Const)
def const(self: Evaluator, op: scalar.Const) -> np.ndarray:
    return _scalar(op.number, op.dtype)


@rule(scalar.Dim)
def dim(self: Evaluator, op: scalar.Dim, view: View) -> np.ndarray:
    return _scalar(view.extents[op.axis], _dtype(op.result))


@rule(scalar.BlockId)
def block_id(self: Evaluator, op: scalar.BlockId) -> np.ndarray:
    return _scalar(self.id[op.axis], _dtype(op.result))


@rule(scalar.GridDim)
def grid_dim(self: Evaluator, op: scalar.GridDim) -> np.ndarray:
    return _scalar(self.grid[op.axis], _dtype(op.result))


@rule(scalar.Load)
def load_scalar(self: Evaluator, op: scalar.Load, view: View, *rest: np.ndarray) -> np.ndarray:
    at = tuple(np.asarray(i) for i in rest[: len(op.indices)])
    return _pick(view, at, rest[len(at)] if op.other is not None else None)


@rule(scalar.Binary, tile.Binary)
def binary(self: Evaluator, op: tile.Binary, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    dtype = a.dtype
    if dtype == ml_dtypes.bfloat16:
        return _binary(op.kind, a.astype(np.float32), b.astype(np.float32)).astype(dtype)
    return _binary(op.kind, a, b).astype(dtype)


def _binary(kind: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if kind in ("max", "min"):
        return _extreme(kind, a, b)
    if kind == "mod":
        rest = np.asarray(np.remainder(a, b))
        return np.where(b == 0, a, rest) if a.dtype.kind in "iu" else rest
    plain = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "floordiv": np.floor_divide,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    return np.asarray(plain[kind](a, b))


def _extreme(kind: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NaN wins, +0 is above −0."""
    largest = kind == "max"
    found = np.maximum(a, b) if largest else np.minimum(a, b)
    if a.dtype.kind != "f":
        return found
    negative = np.signbit(a) & np.signbit(b) if largest else np.signbit(a) | np.signbit(b)
    zero = np.where(negative, a.dtype.type(-0.0), a.dtype.type(0.0))
    return np.where((a == 0) & (b == 0), zero, found)


@rule(scalar.Unary, tile.Unary)
def unary(self: Evaluator, op: tile.Unary, a: np.ndarray) -> np.ndarray:
    plain = {
        "neg": np.negative,
        "abs": np.abs,
        "not": np.invert,
        "floor": np.floor,
        "ceil": np.ceil,
        "round": np.rint,
        "sqrt": np.sqrt,
    }
    return np.asarray(plain[op.kind](a)).astype(a.dtype)


@rule(scalar.Compare, tile.Compare)
def compare(self: Evaluator, op: tile.Compare, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    plain = {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
    return np.asarray(plain[op.kind](a, b))


@rule(scalar.Select, tile.Select)
def select(self: Evaluator, op: tile.Select, c: np.ndarray, a: Any, b: Any) -> np.ndarray:
    return np.where(c, a, b)


@rule(scalar.Cast, tile.Cast)
def cast(self: Evaluator, op: tile.Cast, a: np.ndarray) -> np.ndarray:
    if op.dtype.is_int and a.dtype.kind not in "iub":
        low, high = op.dtype.int_range
        wide = np.nan_to_num(
            np.trunc(a.astype(np.float64)), nan=0.0, posinf=2.0**70, neginf=-(2.0**70)
        )
        return (
            np.array([int(min(max(n, low), high)) for n in wide.ravel()])
            .reshape(a.shape)
            .astype(op.dtype.numpy)
        )
    if op.dtype.is_bool:
        return np.asarray(a != 0)
    if op.dtype == bf16 and a.dtype.kind in "iub":
        return a.astype(np.float32).astype(op.dtype.numpy)
    return a.astype(op.dtype.numpy)


@rule(tile.Fma)
def fma(self: Evaluator, op: tile.Fma, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    # Exact for the small integers that the generator makes.
    return (a.astype(np.float64) * b + c).astype(np.float32)


# ---- shapes --------------------------------------------------------------------------------------


@rule(tile.Splat)
def splat(self: Evaluator, op: tile.Splat, a: np.ndarray) -> np.ndarray:
    return np.broadcast_to(a, op.shape)


@rule(tile.Arange)
def arange(self: Evaluator, op: tile.Arange) -> np.ndarray:
    return np.arange(op.n, dtype=np.int32)


@rule(tile.Broadcast)
def broadcast(self: Evaluator, op: tile.Broadcast, a: np.ndarray) -> np.ndarray:
    return np.broadcast_to(a, op.shape)


@rule(tile.InsertAxis)
def insert_axis(self: Evaluator, op: tile.InsertAxis, a: np.ndarray) -> np.ndarray:
    return np.expand_dims(a, op.axis)


@rule(tile.DropAxis)
def drop_axis(self: Evaluator, op: tile.DropAxis, a: np.ndarray) -> np.ndarray:
    return np.squeeze(a, op.axis)


@rule(tile.Permute)
def permute(self: Evaluator, op: tile.Permute, a: np.ndarray) -> np.ndarray:
    return a.transpose(op.order)


@rule(tile.Slice)
def slice_tile(self: Evaluator, op: tile.Slice, a: np.ndarray) -> np.ndarray:
    return a[tuple(slice(s, s + n) for s, n in zip(op.starts, op.sizes, strict=True))]


@rule(tile.Cat)
def cat(self: Evaluator, op: tile.Cat, *parts: np.ndarray) -> np.ndarray:
    return np.concatenate(parts, axis=op.axis)


@rule(tile.ToScalar)
def to_scalar(self: Evaluator, op: tile.ToScalar, a: np.ndarray) -> np.ndarray:
    return a


# ---- reductions ----------------------------------------------------------------------------------


@rule(tile.Reduce)
def reduce(self: Evaluator, op: tile.Reduce, a: np.ndarray) -> np.ndarray:
    rows = np.moveaxis(a, op.axis, 0)
    total = rows[0]
    for row in rows[1:]:
        wide = total.astype(np.float32), row.astype(np.float32)
        if a.dtype == ml_dtypes.bfloat16:
            total = _binary(op.kind, *wide).astype(a.dtype)
        else:
            total = _binary(op.kind, total, row).astype(a.dtype)
    return total


@rule(tile.ArgReduce)
def arg_reduce(self: Evaluator, op: tile.ArgReduce, a: np.ndarray) -> np.ndarray:
    wide = a.astype(np.float64)
    ranked = np.where(np.isnan(wide), np.inf, wide if op.kind == "max" else -wide)
    nan_first = np.isnan(wide)
    best = np.argmax(ranked, axis=op.axis)
    with_nan = np.argmax(nan_first, axis=op.axis)
    return np.where(nan_first.any(axis=op.axis), with_nan, best).astype(np.int32)


# ---- memory --------------------------------------------------------------------------------------


@rule(tensors.Rows)
def rows(self: Evaluator, op: tensors.Rows, view: View, lo: Any, hi: Any) -> View:
    extent = max(min(int(hi), view.extents[op.axis]) - int(lo), 0) if lo >= 0 else 0
    origin, extents = list(view.origin), list(view.extents)
    origin[op.axis] += int(lo)
    extents[op.axis] = extent
    return View(view.array, tuple(origin), tuple(extents))


def bounds(view: View, at: Sequence[np.ndarray]) -> np.ndarray:
    inside = np.array(True)
    for index, extent in zip(at, view.extents, strict=True):
        inside = inside & (index >= 0) & (index < extent)
    return inside


def places(view: View, at: Sequence[np.ndarray], inside: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(
        np.broadcast_to(np.where(inside, i.astype(np.int64) + o, 0), inside.shape)
        for i, o in zip(at, view.origin, strict=True)
    )


def _pick(view: View, at: Sequence[np.ndarray], other: np.ndarray | None) -> np.ndarray:
    shape = np.broadcast_shapes(*(np.shape(i) for i in at))
    inside = np.broadcast_to(bounds(view, at), shape)
    fill = view.array.dtype.type(0) if other is None else other
    if view.array.size == 0:
        return np.full(shape, fill, view.array.dtype)
    found = view.array[places(view, at, inside)]
    return np.where(inside, found, fill).astype(view.array.dtype)


def window(op: tile.Load | tile.Store, starts: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Index arrays of a window, one an axis of the tensor, broadcasting to the tile."""
    rank = sum(n is not None for n in op.sizes)
    at: list[np.ndarray] = []
    axis = 0
    for start, size in zip(starts, op.sizes, strict=True):
        if size is None:
            at.append(np.asarray(start).astype(np.int64).reshape((1,) * rank))
            continue
        shape = tuple(size if a == axis else 1 for a in range(rank))
        at.append((np.arange(size) + np.int64(start)).reshape(shape))
        axis += 1
    return at


@rule(tile.Load)
def load(self: Evaluator, op: tile.Load, view: View, *rest: np.ndarray) -> np.ndarray:
    at = window(op, rest[: len(op.starts)])
    found = _pick(view, at, rest[-1] if op.other is not None else None)
    return np.broadcast_to(found, tuple(n for n in op.sizes if n is not None))


@rule(tile.Store)
def store(self: Evaluator, op: tile.Store, view: View, value: np.ndarray, *starts: Any) -> None:
    at = window(op, starts)
    inside = np.broadcast_to(bounds(view, at), value.shape)
    if view.array.size:
        chosen = tuple(p[inside] for p in places(view, at, inside))
        view.array[chosen] = value[inside] if chosen else value


@rule(tile.Gather)
def gather(self: Evaluator, op: tile.Gather, view: View, *rest: np.ndarray) -> np.ndarray:
    left = list(rest)
    at = [left.pop(0) for _ in op.indices]
    if op.run:
        at[-1] = at[-1] + np.arange(op.run)
    mask = left.pop(0) if op.mask is not None else np.array(True)
    at = [np.where(mask, i, -1) for i in at]
    return _pick(view, at, left.pop(0) if op.other is not None else None)

"""Tiles: making them, joining them, folding them along an axis. Elementwise: arithmetic.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warploom.base.dtypes import DType, boolean
from warploom.ir.op import Value
from warploom.ir.ops import tile as tiles
from warploom.language import core
from warploom.language.context import Refused, builder, vocabulary
from warploom.language.values import (
    Arithmetic,
    Scalar,
    Tile,
    core_axis,
    kind_of,
    need_dtype,
    need_tile,
    operand,
)


def tile_shape(shape: Any, argument: str = "shape") -> tuple[int, ...]:
    """An argument that must be a constant shape; one integer means one axis."""
    axes = shape if isinstance(shape, tuple | list) else (shape,)
    for extent in axes:
        extent_of(extent, argument)
    core.check_size(tuple(axes), argument)
    return tuple(axes)


def extent_of(extent: Any, argument: str) -> int:
    """An argument that must be a constant extent from 1 up."""
    if isinstance(extent, Scalar | Tile):
        raise Refused(
            "T008",
            "the extent of a tile must be known at compile time, and this one is a run-time value",
            argument=argument,
            label="not a constant",
            notes=(core.describe(extent.value),),
            hint="make it a `wl.const` parameter, and cover the rest with more windows or a loop",
        )
    if isinstance(extent, bool) or not isinstance(extent, int):
        raise Refused(
            "T016",
            f"an extent is an integer, not {kind_of(extent)}",
            argument=argument,
            hint="`//` divides integers"
            if isinstance(extent, float)
            else "give a constant integer",
        )
    if extent < 1:
        raise Refused(
            "T016",
            f"an extent is 1 or more, not {extent}",
            argument=argument,
            hint="leave out what is empty by an `if` on the constant",
        )
    return extent


@vocabulary
def zeros(shape: int | Sequence[int], dtype: DType) -> Tile:
    """A tile of zeros (False for bool).

    Shapes: `shape`, constant.
    Executes: every thread on its own elements.
    Since: sm_80.
    """
    return full(shape, False if dtype == boolean else 0, dtype)


@vocabulary
def full(shape: int | Sequence[int], value: Arithmetic, dtype: DType) -> Tile:
    """A tile that repeats a number or scalar, which must have the dtype.

    Shapes: `shape`, constant.
    Executes: every thread on its own elements.
    Since: sm_80.
    """
    extents, wanted = tile_shape(shape), need_dtype(dtype)
    given = operand(value, "value", "a number or a scalar")
    if isinstance(value, Tile):
        raise Refused("T017", "one value is needed here, not a tile", argument="value")
    made = core.materialise(given, wanted, "value")
    if core.dtype_of(made) != wanted:
        raise Refused(
            "T001",
            f"{core.with_article(core.dtype_of(made))} scalar cannot fill a tile of {wanted}",
            argument="value",
            hint=f"cast it: `.cast(wl.{wanted})`",
        )
    return Tile(builder().emit(tiles.Splat(value=made, shape=extents)))


@vocabulary
def arange(n: int) -> Tile:
    """0, 1, …, n − 1 as i32.

    Shapes: (n,), n constant.
    Executes: every thread on its own elements.
    Since: sm_80.
    """
    (extent,) = tile_shape((extent_of(n, "n"),), "n")
    return Tile(builder().emit(tiles.Arange(n=extent)))


@vocabulary
def cat(parts: Sequence[Tile], axis: int) -> Tile:
    """Tiles joined along an axis, in the order given.

    Shapes: equal extents but along `axis`, where they add up. One dtype.
    Executes: the block, through shared memory where elements change threads.
    Since: sm_80.
    """
    if not isinstance(parts, tuple | list) or not parts:
        given = "an empty one" if isinstance(parts, tuple | list) else kind_of(parts)
        raise Refused(
            "T015",
            f"`cat` takes a tuple of tiles, not {given}",
            argument="parts",
            hint="`wl.cat((a, b), axis=0)`",
        )
    values = [need_tile(p, "parts").value for p in parts]
    first = tiles.tile_of(values[0])
    along = core_axis(axis, len(first.shape), f"a tile of shape {core.shape_text(first.shape)}")
    for value in values[1:]:
        other = tiles.tile_of(value)
        same_rank = len(other.shape) == len(first.shape)
        if not same_rank or _rest(other.shape, along) != _rest(first.shape, along):
            raise Refused(
                "T014",
                f"tiles of the shapes {core.shape_text(first.shape)} and "
                f"{core.shape_text(other.shape)} cannot be joined along axis {along}",
                argument="parts",
                notes=tuple(core.describe(v) for v in values),
                hint="all extents but the joined one must be equal",
            )
        if other.dtype != first.dtype:
            raise Refused(
                "T014",
                f"tiles of {first.dtype} and {other.dtype} cannot be joined",
                argument="parts",
                notes=tuple(core.describe(v) for v in values),
                hint="cast one of them first",
            )
    return Tile(builder().emit(tiles.Cat(values=tuple(values), axis=along)))


def _rest(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


@vocabulary
def sum(t: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """The sum along an axis, in the order of docs/numerics.md (equal on both devices). Numbers.

    Shapes: the axis is dropped, or 1 with `keepdims`. `axis=None` only for one axis: gives ().
    Executes: the block; registers, then lanes, then warps through shared memory.
    Since: sm_80.
    PTX: shfl.sync.bfly, add.
    """
    return _fold("add", "sum", t, axis, keepdims)


@vocabulary
def max(t: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """The largest element along an axis; NaN where there is one. Numbers.

    Shapes: the axis is dropped, or 1 with `keepdims`. `axis=None` only for one axis: gives ().
    Executes: the block; registers, then lanes, then warps through shared memory.
    Since: sm_80.
    PTX: shfl.sync.bfly, max.NaN.
    """
    return _fold("max", "max", t, axis, keepdims)


@vocabulary
def min(t: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """The smallest element along an axis; NaN where there is one. Numbers.

    Shapes: the axis is dropped, or 1 with `keepdims`. `axis=None` only for one axis: gives ().
    Executes: the block; registers, then lanes, then warps through shared memory.
    Since: sm_80.
    PTX: shfl.sync.bfly, min.NaN.
    """
    return _fold("min", "min", t, axis, keepdims)


@vocabulary
def any(t: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """Whether some element along an axis is True. bool.

    Shapes: the axis is dropped, or 1 with `keepdims`. `axis=None` only for one axis: gives ().
    Executes: the block; registers, then lanes, then warps through shared memory.
    Since: sm_80.
    """
    return _fold("or", "any", t, axis, keepdims)


@vocabulary
def all(t: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """Whether every element along an axis is True. bool.

    Shapes: the axis is dropped, or 1 with `keepdims`. `axis=None` only for one axis: gives ().
    Executes: the block; registers, then lanes, then warps through shared memory.
    Since: sm_80.
    """
    return _fold("and", "all", t, axis, keepdims)


@vocabulary
def argmax(t: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """The index (i32) of the largest element along an axis; NaN wins, ties take the lowest index.

    f32, f16, bf16, i32.

    Shapes: the axis is dropped, or 1 with `keepdims`. `axis=None` only for one axis: gives ().
    Executes: the block; registers, then lanes, then warps through shared memory.
    Since: sm_80.
    """
    return _fold_index("max", "argmax", t, axis, keepdims)


@vocabulary
def argmin(t: Tile, axis: int | None = None, keepdims: bool = False) -> Tile:
    """The index (i32) of the smallest element along an axis; NaN wins, ties take the lowest index.

    f32, f16, bf16, i32.

    Shapes: the axis is dropped, or 1 with `keepdims`. `axis=None` only for one axis: gives ().
    Executes: the block; registers, then lanes, then warps through shared memory.
    Since: sm_80.
    """
    return _fold_index("min", "argmin", t, axis, keepdims)


def _fold(kind: str, name: str, t: Any, axis: Any, keepdims: Any) -> Tile:
    value, along = _folded(name, t, axis)
    dtype = core.dtype_of(value)
    if dtype.is_bool != (kind in ("and", "or")) or dtype.is_f8:
        hint = (
            "cast it to wl.i32, or use `wl.any` and `wl.all`"
            if dtype.is_bool
            else "compare it first"
            if kind in ("and", "or")
            else "cast it to wl.f32"
        )
        raise Refused("T004", f"`{name}` is not defined for {dtype}", argument="t", hint=hint)
    made = builder().emit(tiles.Reduce(value=value, axis=along, kind=kind))
    return _kept(made, along, keepdims)


def _fold_index(kind: str, name: str, t: Any, axis: Any, keepdims: Any) -> Tile:
    value, along = _folded(name, t, axis)
    if core.dtype_of(value) not in tiles.ArgReduce.DTYPES:
        raise Refused(
            "T004",
            f"`{name}` is not defined for {core.dtype_of(value)}",
            argument="t",
            hint=f"cast it to one of {', '.join(str(d) for d in tiles.ArgReduce.DTYPES)}",
        )
    made = builder().emit(tiles.ArgReduce(value=value, axis=along, kind=kind))
    return _kept(made, along, keepdims)


def _folded(name: str, t: Any, axis: Any) -> tuple[Value, int]:
    """Tile and axis of a reduction."""
    if isinstance(t, tuple | list):
        raise Refused(
            "T015",
            f"`wl.{name}` reduces one tile along an axis, not a tuple",
            argument="t",
            hint="`wl.maximum(a, b)` and `wl.minimum(a, b)` take two values"
            if name in ("max", "min")
            else "",
        )
    if isinstance(axis, Tile) or (isinstance(axis, Scalar | float) and name in ("max", "min")):
        raise Refused(
            "T015",
            f"`wl.{name}` reduces one tile along an axis; its second argument is the axis",
            argument="axis",
            hint=f"the larger or smaller of two values is `wl.{name}imum(a, b)`"
            if name in ("max", "min")
            else "",
        )
    value = need_tile(t, "t").value
    shape = tiles.tile_of(value).shape
    if axis is None:
        if len(shape) != 1:
            raise Refused(
                "T012",
                f"`{name}` needs `axis=` for a tile of shape {core.shape_text(shape)}",
                argument="t",
                hint="without an axis it folds tiles of one axis only",
            )
        return value, 0
    return value, core_axis(axis, len(shape), f"a tile of shape {core.shape_text(shape)}")


def _kept(made: Value, axis: int, keepdims: Any) -> Tile:
    if not isinstance(keepdims, bool):
        raise Refused(
            "F027", "`keepdims` is True or False, known at compile time", argument="keepdims"
        )
    return Tile(builder().emit(tiles.InsertAxis(value=made, axis=axis)) if keepdims else made)

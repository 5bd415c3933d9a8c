"""Uniform scalars: where this block is, and the way from a tile to a scalar."""

from __future__ import annotations

from typing import Any

from warploom.ir.ops import scalar as scalars
from warploom.ir.ops import tile as tiles
from warploom.language import core
from warploom.language.context import Refused, builder, vocabulary
from warploom.language.values import Scalar, Tile, core_axis, kind_of, not_a


@vocabulary
def program_id(axis: int) -> Scalar:
    """The index of this block in the grid along axis 0, 1 or 2, as an i32 scalar.

    Shapes: a scalar, one for the block.
    Executes: every warp.
    Since: sm_80.
    PTX: %ctaid.
    """
    return Scalar(builder().emit(scalars.BlockId(axis=_grid_axis(axis))))


@vocabulary
def num_programs(axis: int) -> Scalar:
    """The number of blocks of the grid along axis 0, 1 or 2, as an i32 scalar.

    Shapes: a scalar, one for the grid.
    Executes: every warp.
    Since: sm_80.
    PTX: %nctaid.
    """
    return Scalar(builder().emit(scalars.GridDim(axis=_grid_axis(axis))))


@vocabulary
def scalar(t: Tile) -> Scalar:
    """The one element of a tile of shape (), as a scalar that steers loops, branches and windows.

    Shapes: () gives a scalar.
    Executes: every warp.
    Since: sm_80.
    """
    if isinstance(t, Scalar):
        return t
    if not isinstance(t, Tile):
        raise not_a("a tile of shape ()", t, "t")
    if t.shape != ():
        raise Refused(
            "T017",
            f"a tile of shape {core.shape_text(t.shape)} is not one value",
            argument="t",
            label=kind_of(t),
            hint="reduce it first, such as `wl.max(t, axis=0)`, down to the shape ()",
        )
    return Scalar(builder().emit(tiles.ToScalar(value=t.value), t.value.name))


def _grid_axis(axis: Any) -> int:
    if isinstance(axis, int) and axis < 0:
        raise Refused("T012", f"a grid has the axes 0, 1 and 2, not {axis}", argument="axis")
    return core_axis(axis, 3, "a grid")

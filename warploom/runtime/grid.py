"""The grid of a launch: what is accepted, and CUDA's limits. Both devices refuse the same."""

from __future__ import annotations

import operator
from typing import Any

from warploom.base.errors import Error, error

Grid = tuple[int, int, int]
LIMITS = (2**31 - 1, 65535, 65535)


def parse(grid: Any) -> Grid:
    """Three extents from an integer or one to three of them; raises LaunchError H015, H016."""
    if isinstance(grid, (tuple, list)):
        extents = list(grid)
        if not 1 <= len(extents) <= 3:
            raise _not_a_grid(grid, f"{len(extents)} extents")
    else:
        extents = [grid]
    for axis, extent in enumerate(extents):
        if isinstance(extent, bool):
            raise _not_a_grid(grid, "a bool")
        try:
            extents[axis] = operator.index(extent)
        except TypeError:
            raise _not_a_grid(grid, type(extent).__name__) from None
    for axis, extent in enumerate(extents):
        if extent < 0:
            raise _not_a_grid(grid, f"{extent} along axis {axis}")
        if extent > LIMITS[axis]:
            text = f"the grid has {extent} blocks along axis {axis}; the limit is {LIMITS[axis]}"
            hint = "put the large extent on axis 0, or let a block do more"
            raise error("H015", text, notes=(f"grid {tuple(extents)}",), hint=hint)
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def _not_a_grid(grid: Any, found: str) -> Error:
    hint = "give an integer or a tuple of up to three, each from 0 up"
    if callable(grid):
        hint = "compute the grid before the launch: the sizes are known there"
    elif found == "float":
        hint = "a // b divides integers; -(-a // b) rounds up"
    shown = "a function" if callable(grid) else f"{grid!r:.160}"
    return error("H016", f"{shown} is not a grid" + f" ({found})" * (not callable(grid)), hint=hint)

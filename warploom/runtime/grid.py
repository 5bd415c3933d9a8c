"""The grid of a launch: what is accepted, and CUDA's limits. Both devices refuse the same."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from warploom.base.errors import Error, error

Grid = tuple[int, int, int]


class Ways(NamedTuple):
    """How blocks of a launch run beside others: it may begin while the one before it ends (`pdl`),
    all of its blocks run at the same time (`cooperative`)."""

    pdl: bool = False
    cooperative: bool = False


ORDINARY = Ways()
LIMITS = (2**31 - 1, 65535, 65535)
ALONE: Grid = (1, 1, 1)
# What every GPU with clusters takes, and what is taken by permission (sm_90: all have it).
PORTABLE_CLUSTER, MOST_IN_CLUSTER = 8, 16


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


def parse_cluster(cluster: Any, grid: Grid) -> Grid:
    """Blocks of a cluster along each axis of the grid; raises LaunchError H030, H031."""
    if cluster is None:
        return ALONE
    extents = list(cluster) if isinstance(cluster, (tuple, list)) else [cluster]
    whole = [isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in extents]
    if not 1 <= len(extents) <= 3 or not all(whole):
        hint = "give up to three integers from 1 up, such as cluster=(2, 1, 1)"
        raise error("H030", f"{cluster!r:.160} is no shape of a cluster", hint=hint)
    x, y, z = (*extents, 1, 1)[:3]
    if x * y * z > MOST_IN_CLUSTER:
        text = f"a cluster of {x} x {y} x {z} has {x * y * z} blocks; the most is {MOST_IN_CLUSTER}"
        raise error("H030", text, hint="take fewer along an axis")
    found = (x, y, z)
    if any(blocks % of for blocks, of in zip(grid, found, strict=True)):
        nearest = tuple(-(-blocks // of) * of for blocks, of in zip(grid, found, strict=True))
        text = f"the grid {grid} is not made of whole clusters of {found}"
        raise error("H031", text, hint=f"the nearest grid that is: {nearest}")
    return found

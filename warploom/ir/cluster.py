"""The blocks of a cluster as numbers: ranks, coordinates, and which blocks lie along some axes of
it. Knows no operation."""

from __future__ import annotations

from itertools import product
from math import prod

Shape = tuple[int, int, int]
ALONE: Shape = (1, 1, 1)


def size(shape: Shape) -> int:
    """Blocks of a cluster."""
    return prod(shape)


def pitch(shape: Shape, axis: int) -> int:
    """How much a rank grows by a step along an axis."""
    return prod(shape[:axis])


def steps(shape: Shape, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The steps to all blocks along some axes, 0 (the block itself) first, as `arrive_peers` counts
    them."""
    ranges = (range(n if axis in axes else 1) for axis, n in enumerate(shape))
    return tuple(
        sorted(sum(d * pitch(shape, axis) for axis, d in enumerate(at)) for at in product(*ranges))
    )


def coordinate(shape: Shape, rank: int, axis: int) -> int:
    """Where a block stands along an axis; of a step, how far it goes."""
    return rank // pitch(shape, axis) % shape[axis]


def bits(shape: Shape, axes: tuple[int, ...]) -> int:
    """The mask of all blocks along some axes, of the first of them."""
    return sum(1 << step for step in steps(shape, axes))


def of_grid(grid: Shape, shape: Shape) -> list[list[int]]:
    """The linear numbers of the blocks of each cluster of a grid, by rank; clusters in order of
    their first blocks."""
    if shape == ALONE:
        return [[block] for block in range(prod(grid))]
    counts = [n // c for n, c in zip(grid, shape, strict=True)]
    found = []
    for z, y, x in product(*(range(n) for n in reversed(counts))):
        first = (x * shape[0], y * shape[1], z * shape[2])
        ranks = [[coordinate(shape, r, axis) for axis in range(3)] for r in range(size(shape))]
        places = [[a + b for a, b in zip(first, at, strict=True)] for at in ranks]
        found.append([px + grid[0] * (py + grid[1] * pz) for px, py, pz in places])
    return found

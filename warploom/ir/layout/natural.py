"""The layout that a tile gets when nothing else asks for one: a small search over ways to deal a
shape to registers, lanes and warps. Depends on shape, vector width and warps only, never on
addresses, so that results do not change with alignment."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import prod

from warploom.ir.layout.layout import LANES, Layout, Mode, Place

_LANE_CHOICES = (1, 2, 4, 8, 16, 32)
_VECTOR_CHOICES = (16, 8, 4, 2, 1)


@lru_cache(maxsize=4096)
def natural(shape: tuple[int, ...], vector: int, warps: int, least: int = 1) -> Layout:
    """The cheapest layout of `shape` for accesses of `least` to `vector` elements along the last
    axis."""
    if not shape:
        return Layout((), (Mode(Place.LANE, LANES, None), Mode(Place.WARP, warps, None)), warps)
    best = min(_candidates(shape, vector, warps, least), key=lambda c: _cost(shape, vector, *c))
    return _build(shape, warps, *best)


Candidate = tuple[int, tuple[int, ...], tuple[int, ...]]


def _candidates(shape: tuple[int, ...], vector: int, warps: int, least: int) -> Iterator[Candidate]:
    """(vector width, lanes per axis, warps per axis); what is left over is replication."""
    divisors = [n for n in range(1, warps + 1) if warps % n == 0]
    for width in _VECTOR_CHOICES:
        if not least <= width <= min(vector, _ceil_pow2(shape[-1])):
            continue
        groups = shape[:-1] + (-(-shape[-1] // width),)
        lane_sets = [[n for n in _LANE_CHOICES if n <= _ceil_pow2(g)] for g in groups]
        for lanes in product(*lane_sets):
            if prod(lanes) > LANES:
                continue
            rest = [-(-g // n) for g, n in zip(groups, lanes, strict=True)]
            warp_sets = [[n for n in divisors if n <= r] for r in rest]
            for split in product(*warp_sets):
                if warps % prod(split) == 0:
                    yield width, lanes, split


def _cost(
    shape: tuple[int, ...], vector: int, width: int, lanes: tuple[int, ...], split: tuple[int, ...]
) -> tuple[float, ...]:
    groups = shape[:-1] + (-(-shape[-1] // width),)
    reps = [-(-g // (n * w)) for g, n, w in zip(groups, lanes, split, strict=True)]
    accesses = prod(reps)
    line = min(shape[-1], 8 * vector)  # a full 128-byte line of the narrowest element type
    run = min(lanes[-1] * width, line)
    scattered = accesses * (line / run - 1)
    exchange = (
        6.0 if split[-1] > 1 else 0.0
    )  # a row over several warps reduces through shared memory
    cost = accesses * width + accesses + scattered + exchange
    return (cost, -lanes[-1], -width, *(-n for n in reversed(lanes)), *(-n for n in split))


def _build(
    shape: tuple[int, ...], warps: int, width: int, lanes: tuple[int, ...], split: tuple[int, ...]
) -> Layout:
    last = len(shape) - 1
    groups = shape[:-1] + (-(-shape[-1] // width),)
    modes: list[Mode] = []
    for axis in reversed(range(len(shape))):
        unit = width if axis == last else 1
        n, w = lanes[axis], split[axis]
        reps = -(-groups[axis] // (n * w))
        for place, extent, stride in (
            (Place.REG, unit, 1),
            (Place.LANE, n, unit),
            (Place.WARP, w, unit * n),
            (Place.REG, reps, unit * n * w),
        ):
            if extent > 1:
                modes.append(Mode(place, extent, axis, stride))
    for place, total, used in ((Place.LANE, LANES, prod(lanes)), (Place.WARP, warps, prod(split))):
        if used < total:
            modes.append(Mode(place, total // used, None))
    return Layout(shape, tuple(modes), warps)


def _ceil_pow2(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()

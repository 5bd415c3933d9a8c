"""The layout that a tile gets: covers it, wastes little, depends on nothing else."""

from math import prod

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.ir.layout.test_layout import flat
from warploom.ir.layout.layout import LANES, Place
from warploom.ir.layout.natural import natural

EXTENTS = st.one_of(st.sampled_from((1, 3, 7, 80, 96, 576)), st.integers(1, 130))
SHAPES = st.lists(EXTENTS, max_size=3).map(tuple).filter(lambda shape: prod(shape) <= 20_000)
VECTORS = st.sampled_from((1, 2, 4, 8, 16))
WARPS = st.sampled_from((1, 2, 3, 4, 8))


@settings(max_examples=150, deadline=None)
@given(SHAPES, VECTORS, WARPS)
@example((), 4, 3)
@example((1,), 16, 8)
@example((576,), 4, 3)
@example((3, 7, 80), 8, 3)
def test_every_element_is_held_once_a_replica(
    shape: tuple[int, ...], vector: int, warps: int
) -> None:
    layout = natural(shape, vector, warps)
    held = flat(layout)
    held = held.reshape(prod(held.shape[:-1]), len(shape))
    inside = (held < shape).all(axis=1) if shape else np.ones(len(held), bool)
    places = (
        np.ravel_multi_index(tuple(held[inside].T), shape) if shape else np.zeros(len(held), int)
    )
    copies = prod(m.extent for m in layout.replicas)
    assert (np.bincount(places, minlength=prod(shape)) == copies).all()


@settings(max_examples=100, deadline=None)
@given(SHAPES.filter(bool), VECTORS, WARPS)
def test_the_last_axis_is_dealt_in_vectors(shape: tuple[int, ...], vector: int, warps: int) -> None:
    layout = natural(shape, vector, warps)
    run = layout.run(len(shape) - 1)
    low = run & -run
    assert low >= 1
    lanes = [m for m in layout.of(Place.LANE, len(shape) - 1)]
    if lanes:  # neighbours in a row are neighbours in a warp
        assert lanes[0].stride <= max(vector, run)
        assert layout.divisor(lanes[0]) == 1


@settings(max_examples=100, deadline=None)
@given(SHAPES.filter(lambda shape: prod(shape) >= 1), VECTORS, WARPS)
def test_registers_are_not_wasted(shape: tuple[int, ...], vector: int, warps: int) -> None:
    layout = natural(shape, vector, warps)
    copies = prod(m.extent for m in layout.replicas)
    held = prod(layout.reg_extents) * LANES * warps // copies
    # Powers of two for lanes pad each axis less than twice, warps and vectors once more.
    assert held <= prod(shape) * 2 ** (len(shape) + 1)


@pytest.mark.parametrize(
    ("shape", "vector", "warps", "text"),
    [
        ((4, 576), 4, 4, "(4x576; l32:1*4 w4:0*1 r4:1*1 r5:1*128)"),
        ((576,), 8, 4, "(576; l32:0*2 w4:0*64 r2:0*1 r3:0*256)"),
        ((), 4, 3, "(; l32:_ w3:_)"),
        ((1,), 4, 1, "(1; l32:_)"),
    ],
)
def test_some_layouts(shape: tuple[int, ...], vector: int, warps: int, text: str) -> None:
    assert str(natural(shape, vector, warps)) == text


def test_a_row_over_several_warps_is_the_exception() -> None:
    for rows in (4, 8, 64):
        layout = natural((rows, 576), 4, 4)
        assert not layout.of(Place.WARP, 1), "a row of its own warp reduces without a barrier"

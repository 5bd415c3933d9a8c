"""Places of register tiles: views renumber registers without moving them."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.codegen.places import Place, row_major, walk


def registers_of(place, extents):
    """Every register of a place that `walk` visits, in order, by running the printed loops."""
    found = walk(extents, place)
    ranges = [range(loop.extent) for loop in found.loops]
    out = []
    for numbers in itertools.product(*ranges):
        scope = {loop.variable: n for loop, n in zip(found.loops, numbers, strict=True)}
        index = re.fullmatch(r"t\[(.*)\]", found.registers[0])
        out.append(eval(index.group(1), {}, scope) if index else 0)
    return out


def test_row_major_numbers_registers_row_by_row():
    assert row_major((2, 3, 4)) == (12, 4, 1)
    assert row_major((2, 1, 4)) == (4, 0, 1)
    assert row_major(()) == ()


def test_a_dense_place_is_one_loop():
    found = walk((2, 3, 4), Place.of("t", (2, 3, 4)))
    assert [loop.extent for loop in found.loops] == [24]
    assert found.registers == ("t[r]",)


def test_one_register_is_a_plain_variable():
    found = walk((1, 1), Place.of("t", (1, 1)))
    assert found.loops == () and found.registers == ("t",)


def test_a_broadcast_operand_splits_the_loop():
    found = walk((2, 4), Place.of("t", (2, 4)), Place.of("row", (1, 4)), Place.of("col", (2, 1)))
    assert [str(loop) for loop in found.loops] == [
        "UNROLL for (int r = 0; r < 2; ++r)",
        "UNROLL for (int c = 0; c < 4; ++c)",
    ]
    assert found.registers == ("t[4 * r + c]", "row[c]", "col[r]")


def test_a_transposed_view():
    view = Place.of("t", (2, 3)).view((1, 0))
    assert registers_of(view, (3, 2)) == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [1, 2])
def test_a_slice(axis, size):
    place = Place.of("t", (3, 4)).slice(axis, 1, size)
    full = [[4 * i + j for j in range(4)] for i in range(3)]
    rows = range(1, 1 + size) if axis == 0 else range(3)
    columns = range(1, 1 + size) if axis == 1 else range(4)
    assert registers_of(place, place.extents) == [full[i][j] for i in rows for j in columns]


def test_a_spread_repeats():
    place = Place.of("t", (1, 3)).spread((2, 3))
    assert registers_of(place, (2, 3)) == [0, 1, 2, 0, 1, 2]


def test_vector_groups_along_an_axis_that_is_not_the_last():
    place = Place.of("t", (4, 3)).groups(0, 2)
    assert registers_of(place, (2, 3)) == [0, 1, 2, 6, 7, 8]


def test_views_compose():
    place = Place.of("t", (4, 6)).slice(1, 2, 3).view((1, -1, 0)).slice(2, 1, 2)
    expected = [6 * i + j for j in (2, 3, 4) for i in (1, 2)]
    assert registers_of(place, place.extents) == expected


@st.composite
def viewed(draw):
    """A place and, as an array, which register each of its elements is."""
    extents = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    place = Place.of("t", extents)
    numbers = np.arange(np.prod(extents)).reshape(extents)
    for _ in range(draw(st.integers(0, 4))):
        rank = len(place.extents)
        how = draw(st.sampled_from(["permute", "insert", "slice", "spread"]))
        if how == "permute":
            order = tuple(draw(st.permutations(range(rank))))
            place, numbers = place.view(order), numbers.transpose(order)
        elif how == "insert" and rank < 4:
            place = place.view((*range(rank), -1))
            numbers = numbers[..., None]
        elif how == "slice":
            axis = draw(st.integers(0, rank - 1))
            start = draw(st.integers(0, place.extents[axis] - 1))
            size = draw(st.integers(1, place.extents[axis] - start))
            place = place.slice(axis, start, size)
            numbers = numbers.take(range(start, start + size), axis=axis)
        elif how == "spread":
            wide = tuple(n if n > 1 else draw(st.integers(1, 3)) for n in place.extents)
            place, numbers = place.spread(wide), np.broadcast_to(numbers, wide)
    return place, numbers


@given(viewed())
def test_any_chain_of_views_finds_its_registers(case):
    place, numbers = case
    assert registers_of(place, place.extents) == numbers.reshape(-1).tolist()

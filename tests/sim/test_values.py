"""Integer tiles that are kept as array plus scalar compute what arrays of the dtype would."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.base.dtypes import BY_NAME, boolean, i32, i64, u8, u32
from warploom.sim import arithmetic
from warploom.sim.integer_tiles import binary_integer, combine, compare_integer
from warploom.sim.values import (
    Fixed,
    Index,
    bounded,
    constant,
    dense,
    limits,
    merge_blocks,
    owned,
    scalar_array,
    take_blocks,
    wrap,
)

NUMBERS = st.one_of(
    st.integers(-5, 5), st.integers(-(2**31), 2**31 - 1), st.sampled_from([2**31 - 1, -(2**31)])
)


def index_of(numbers, shift):
    return Index(Fixed(np.array(numbers, np.int64).reshape(-1, 1, 1, 1)), shift, i32)


@st.composite
def tiles(draw, count=3):
    """An index tile (three registers, one or two blocks) and the same values as an array."""
    numbers = draw(st.lists(NUMBERS, min_size=count, max_size=count))
    if draw(st.booleans()):
        shift = draw(NUMBERS)
        whole = np.array(numbers, np.int64).reshape(-1, 1, 1, 1) + shift
    else:
        steps = draw(st.lists(NUMBERS, min_size=2, max_size=2))
        shift = np.array(steps, np.int64).reshape(2, 1, 1)
        whole = np.array(numbers, np.int64).reshape(-1, 1, 1, 1) + shift
    return index_of(numbers, shift), whole.astype(np.int32)


@given(tiles(), tiles(), st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "and", "shl"]))
@settings(max_examples=300, deadline=None)
def test_arithmetic_of_index_tiles(one, other, kind):
    (x, whole_x), (y, whole_y) = one, other
    slots = [x, y, None]
    with np.errstate(all="ignore"):
        binary_integer(kind, i32, 0, 1, 2)(slots, None)
        expected = arithmetic.binary(kind, i32)(whole_x, whole_y)
    found = dense(slots[2])
    assert found.dtype == np.int32
    assert np.array_equal(np.broadcast_to(found, expected.shape), expected)


@given(tiles(), st.lists(NUMBERS, min_size=4, max_size=4))
@settings(max_examples=100, deadline=None)
def test_chains_wrap_like_the_dtype(one, factors):
    """Sums and products far beyond 64 bits still are what 32-bit registers hold."""
    x, whole = one
    slots = [x, None, x]
    for kind, factor in zip(("mul", "add", "mul", "sub"), factors, strict=True):
        slots[1] = Index(constant(0, 1), factor, i32)
        with np.errstate(all="ignore"):
            binary_integer(kind, i32, 0, 1, 2)(slots, None)
            whole = arithmetic.binary(kind, i32)(whole, np.int32(factor))
        slots[0] = slots[2]
    assert np.array_equal(dense(slots[2]), whole)


@given(tiles(), tiles(), st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]))
@settings(max_examples=300, deadline=None)
def test_comparison_of_index_tiles(one, other, kind):
    (x, whole_x), (y, whole_y) = one, other
    slots = [x, y, None]
    compare_integer(kind, i32, 1, 0, 1, 2)(slots, None)
    expected = arithmetic.compare(kind, i32)(whole_x, whole_y)
    assert np.array_equal(np.broadcast_to(dense(slots[2]), expected.shape), expected)


def test_ranges_decide_without_arrays():
    slots = [index_of([0, 1, 2], 10), index_of([0, 0, 0], 13), None]
    compare_integer("lt", i32, 1, 0, 1, 2)(slots, None)
    assert slots[2] is constant(True, 1)
    slots[1] = Index(constant(0, 1), np.array([13, 14]).reshape(2, 1, 1), i32)
    compare_integer("ge", i32, 1, 0, 1, 2)(slots, None)
    assert slots[2] is constant(False, 1)


def test_a_kept_result_is_found_again():
    x, y = index_of([0, 1, 2], 0), index_of([5, 6, 7], 3)
    slots = [x, y, None]
    step = binary_integer("add", i32, 0, 1, 2)
    step(slots, None)
    first = slots[2]
    slots[1] = Index(y.fixed, 9, i32)
    step(slots, None)
    assert slots[2].fixed is first.fixed
    assert slots[2].shift == 9


def test_kept_things_do_not_grow_without_end():
    fixed = Fixed(np.arange(3).reshape(3, 1, 1, 1))
    for number in range(2000):
        Index(fixed, number, i32).dense()
    assert len(fixed.kept) <= 256


@pytest.mark.parametrize("kind", ["and", "or", "xor"])
@pytest.mark.parametrize("left", [[True, True], [False, False], [True, False]])
@pytest.mark.parametrize("right", [[True, True], [False, False], [False, True]])
@pytest.mark.parametrize("held", ["fixed", "array"])
def test_predicates(kind, left, right, held):
    x = Fixed(np.array(left).reshape(2, 1, 1, 1))
    array = np.array(right).reshape(2, 1, 1, 1)
    y = Fixed(array) if held == "fixed" else array
    f = arithmetic.binary(kind, boolean)
    expected = f(x.array, array)
    for found in (combine(kind, f, x, y), combine(kind, f, y, x)):
        assert np.array_equal(np.broadcast_to(dense(found), (2, 1, 1, 1)), expected)


def test_wrap_and_limits():
    assert wrap(2**31, i32) == -(2**31)
    assert wrap(-1, u32) == 2**32 - 1
    assert wrap(300, u8) == 44
    assert limits(u8) == (0, 255)
    assert limits(i64) == (-(2**63), 2**63 - 1)
    assert bounded(2**64 + 7) == 7
    assert bounded(-5) == -5


def test_parts_of_a_batch_and_back():
    """Taking blocks and merging them gives the value back, whatever its form."""
    rows = [np.array([0, 2]), np.array([1])]
    array = np.arange(12, dtype=np.float32).reshape(2, 3, 1, 2)
    whole = merge_blocks([(r, take_blocks(array, r)) for r in rows], 3, BY_NAME["f32"], 1)
    assert np.array_equal(whole, array)
    index = index_of([0, 1], np.arange(3).reshape(3, 1, 1))
    whole = merge_blocks([(r, take_blocks(index, r)) for r in rows], 3, i32, 1)
    assert np.array_equal(whole, index.dense())
    whole = merge_blocks([(rows[0], 5), (rows[1], np.array([[[7]]], np.int32))], 3, i32, None)
    assert whole.reshape(-1).tolist() == [5, 7, 5]


def test_scalars_become_arrays_of_their_carrier():
    assert scalar_array(3, i64, 2).shape == (1, 1, 1, 1, 1)
    assert scalar_array(np.zeros((4, 1, 1), np.float32), BY_NAME["f32"], 1).shape == (1, 4, 1, 1)
    assert scalar_array(np.uint16(1), BY_NAME["bf16"], 0).dtype == np.uint16


def test_only_arrays_with_one_holder_are_owned():
    slots = [np.zeros(8), None]
    held = slots[0]
    assert owned(held)
    slots[1] = held
    assert not owned(held)
    slots[1] = None
    part = held[:4]
    assert not owned(held)
    del held
    slots[0] = part
    assert not owned(part), "a view must not be written to"

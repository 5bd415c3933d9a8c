"""Accesses as strided views, gathers and scatters give what plain indexing gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.base.dtypes import BY_NAME, f32, i32
from warploom.sim.memory import (
    Memory,
    Plan,
    Span,
    inside,
    of_elements,
    read,
    read_where,
    view_of,
    write,
    write_where,
)
from warploom.sim.values import Fixed

SIZE = 4096


def memory_of(array, dtype=f32, origin=0):
    return Memory(array.reshape(-1).view(np.uint8), dtype, origin)


@st.composite
def offsets(draw):
    """Addresses that are a sum of digits (as lowering makes them), now and then spoilt."""
    registers, warps, lanes = draw(st.sampled_from([1, 2, 6])), draw(st.sampled_from([1, 2, 3])), 4
    total = np.zeros((1, 1, 1, 1), np.int64)
    for axis, extent in ((0, registers), (2, warps), (3, lanes)):
        split = draw(st.sampled_from([d for d in range(1, extent + 1) if extent % d == 0]))
        low, high = draw(st.integers(-3, 20)), draw(st.integers(-3, 90))
        number = np.arange(extent)
        part = number % split * low + number // split * high
        shape = [1, 1, 1, 1]
        shape[axis] = extent
        total = total + part.reshape(shape)
    if draw(st.integers(0, 4)) == 0:
        total = total.copy()
        total[-1, 0, -1, -1] += draw(st.integers(1, 5))
    return total - total.min()


@st.composite
def spans(draw):
    kind = draw(st.sampled_from(["number", "even", "rows", "free"]))
    if kind == "number":
        return draw(st.integers(0, 200))
    count = draw(st.sampled_from([2, 4, 6]))
    if kind == "even":
        step = draw(st.integers(0, 40))
        numbers = 100 + step * np.arange(count)
    elif kind == "rows":
        numbers = np.arange(count) // 2 * draw(st.integers(0, 60)) + np.arange(count) % 2 * 7
    else:
        numbers = np.array(draw(st.lists(st.integers(0, 200), min_size=count, max_size=count)))
    return numbers.astype(np.int64).reshape(-1, 1, 1)


@given(offsets(), spans(), st.sampled_from([1, 2, 4]), st.data())
@settings(max_examples=300, deadline=None)
def test_reads_and_writes(offset, shift, vec, data):
    memory = memory_of(np.arange(SIZE, dtype=np.float32))
    plan, span = Plan(offset, 0, vec), Span(shift)
    places = np.repeat(offset, vec, 0) + shift
    places = places + (np.arange(places.shape[0]) % vec).reshape(-1, 1, 1, 1)
    assert inside(memory, plan, span) == bool(places.min() >= 0 and places.max() < SIZE)
    assert (span.lo, span.hi) == (np.min(shift), np.max(shift))
    if not inside(memory, plan, span):
        return
    assert np.array_equal(np.broadcast_to(read(memory, plan, span), places.shape), places)
    bits = data.draw(st.integers(0, 2**24 - 1))
    groups = (np.arange(np.prod(offset.shape)).reshape(offset.shape) * 7 + bits) % 3 != 0
    held = Fixed(groups) if data.draw(st.booleans()) else groups
    mask = of_elements(held, 0, vec)
    flags = np.broadcast_to(np.repeat(groups, vec, 0), places.shape)
    found = np.broadcast_to(read_where(memory, plan, span, mask, -1), places.shape)
    assert np.array_equal(found, np.where(flags, places, -1))
    # Where accesses of one launch meet, any of them may win: only addresses apart are compared.
    if len(np.unique(places)) < places.size:
        return
    value = np.random.default_rng(0).standard_normal(places.shape).astype(np.float32)
    target, expected = np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32)
    write(memory_of(target), plan, span, value)
    expected[places] = value
    assert np.array_equal(target, expected)
    target[:], expected[:] = 0, 0
    write_where(memory_of(target), plan, span, value, mask)
    expected[places[flags]] = value[flags]
    assert np.array_equal(target, expected)


def test_a_window_of_rows_is_a_view():
    """Four lanes of four elements, rows by block: no index array is needed."""
    lanes = np.arange(32).reshape(1, 1, 1, 32) * 4
    plan = Plan(lanes.astype(np.int64), 0, 4)
    span = Span((np.arange(8) * 128).reshape(-1, 1, 1))
    memory = memory_of(np.arange(1024, dtype=np.float32))
    view = view_of(memory, plan, span)
    assert view is not None
    assert view.base is memory.raw or np.shares_memory(view, memory.raw)
    assert plan.front == ((4, 1),)
    assert span.digits == ((8, 128),)


def test_blocks_of_a_two_dimensional_grid_count_evenly():
    rows = np.arange(12) // 4 * 1000 + np.arange(12) % 4 * 16
    assert Span(rows.reshape(-1, 1, 1)).digits == ((3, 1000), (4, 16))
    assert Span(np.array([0, 5, 6]).reshape(-1, 1, 1)).digits is None


def test_outside_under_a_false_mask_is_never_touched():
    memory = memory_of(np.arange(10, dtype=np.float32))
    offset = np.arange(-4, 12).reshape(16, 1, 1, 1)
    mask = (offset >= 0) & (offset < 10)
    found = read_where(memory, Plan(offset, 0, 1), Span(0), mask, 5)
    assert found.reshape(-1).tolist() == [5] * 4 + list(range(10)) + [5] * 2
    target = np.zeros(10, np.float32)
    write_where(
        memory_of(target), Plan(offset, 0, 1), Span(0), np.ones((16, 1, 1, 1), np.float32), mask
    )
    assert target.tolist() == [1] * 10


def test_other_that_differs_among_blocks():
    memory = memory_of(np.arange(10, dtype=np.float32))
    other = np.float32([7, 8]).reshape(2, 1, 1)
    mask = np.array([True, False]).reshape(2, 1, 1, 1)
    offset = np.arange(2).reshape(2, 1, 1, 1)
    found = read_where(memory, Plan(offset, 0, 1), Span(0), mask, other)
    assert found.reshape(2, 2).tolist() == [[0, 0], [7, 8]]


@pytest.mark.parametrize("dtype", ["bf16", "f16", "i64", "bool", "u8"])
def test_memory_of_any_dtype(dtype):
    kind = BY_NAME[dtype]
    array = np.arange(16).astype(kind.numpy)
    memory = memory_of(array, kind)
    plan = Plan(np.arange(16).reshape(16, 1, 1, 1), 0, 1)
    assert np.array_equal(read(memory, plan, Span(0)).reshape(-1).view(kind.numpy), array)


def test_empty_memory_gives_other():
    memory = memory_of(np.zeros(0, np.int32), i32)
    mask = np.zeros((1, 1, 1, 1), bool)
    plan = Plan(np.zeros((1, 1, 1, 1), np.int64), 0, 1)
    assert read_where(memory, plan, Span(0), mask, 3).reshape(-1).tolist() == [3]

"""Classes of tensor arguments: which views share a variant, and which facts decide."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.runtime import argument_class as classes
from warploom.runtime.arrays import read
from warploom.runtime.dlpack import contiguous


def cls(array: np.ndarray, aliased: bool = False) -> tuple:
    found = classes.geometry(read(array, "x"))
    return found.aliased if aliased else found.plain


def memory(*shape: int, dtype: type = np.float32) -> np.ndarray:
    """An array that starts at a multiple of 64 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


def test_a_contiguous_matrix() -> None:
    assert cls(memory(8, 576)) == ("f32", "n1", 16, 16, False, False)
    assert cls(memory(8, 570)) == ("f32", "n1", 8, 2, False, False)
    assert cls(memory(8, 7)) == ("f32", "n1", 4, 1, False, False)


@pytest.mark.case("C19")
def test_views_that_share_a_class() -> None:
    whole = memory(8, 576)
    for view in (
        whole[0:1],
        whole[:1],
        memory(1, 576),
        whole[3][None],
        memory(64, 576),
        whole[4:4],
    ):
        assert cls(view) == cls(whole), view.shape
    column = memory(1000, 7)
    assert cls(memory(1000, 1)) == cls(column)
    assert cls(column[:, :1]) == cls(column)


@pytest.mark.case("C19")
def test_views_that_differ() -> None:
    base = memory(64 * 65 + 16)
    aligned = base[: 64 * 64].reshape(64, 64)
    assert cls(base[1 : 1 + 64 * 64].reshape(64, 64))[2] == 4
    assert cls(base[2 : 2 + 64 * 64].reshape(64, 64))[2] == 8
    strided = np.lib.stride_tricks.as_strided(base, (64, 64), (65 * 4, 4))
    assert cls(strided) == ("f32", "n1", 4, 16, False, False)
    assert cls(aligned.T) == ("f32", "1n", 16, 16, False, False)
    assert cls(aligned[:, ::2]) == ("f32", "nn", 8, 16, False, False)
    assert cls(aligned[:, 3:]) == ("f32", "n1", 4, 1, False, False)
    assert cls(np.broadcast_to(aligned[0], (9, 64))) == ("f32", "01", 16, 16, False, False)
    assert cls(aligned[::-1]) == ("f32", "n1", 16, 16, False, False)


def test_a_stride_of_an_axis_with_one_element_does_not_count() -> None:
    odd = np.lib.stride_tricks.as_strided(memory(576), (1, 576), (12344, 4))
    found = classes.geometry(read(odd, "x"))
    assert found.plain == cls(memory(8, 576))
    assert found.strides == (576, 1)


def test_only_the_last_axis_with_stride_one_is_the_unit_axis() -> None:
    windows = np.lib.stride_tricks.sliding_window_view(memory(100), 8)
    found = classes.geometry(read(windows, "x"))
    assert found.plain[1:3] == ("n1", 4)
    assert found.strides == (1, 1)


@pytest.mark.case("C21")
@pytest.mark.parametrize(
    ("shape", "strides", "wide"),
    [
        ((1 << 15, 1 << 15), (1 << 15, 1), False),
        (((1 << 15) + 1, 1 << 15), (1 << 15, 1), True),
        ((320, 10), (7_864_320, 1), True),
        ((1, 10), (1 << 40, 1), False),
        ((2, 4), (-(1 << 31) - 16, 1), True),
        ((0, 1 << 31), (1 << 31, 1), True),
        ((1 << 30,), (0,), True),
    ],
)
def test_wide(shape: tuple[int, ...], strides: tuple[int, ...], wide: bool) -> None:
    assert classes.is_wide(shape, strides) == wide


def test_an_empty_array_has_the_class_of_a_full_one() -> None:
    assert cls(memory(8, 576)[:0]) == cls(memory(8, 576))


def test_an_aliased_argument_has_a_class_of_its_own() -> None:
    assert cls(memory(8), aliased=True) == ("f32", "1", 16, 8, True, False)


def test_overlapping_views_are_marked() -> None:
    base, other = memory(100), memory(100)
    views = [read(v, "x") for v in (base[:50], other, base[40:60], base[50:])]
    assert classes.overlapping(views) == {0, 2, 3}
    assert classes.overlapping([read(base[:50], "a"), read(base[50:], "b")]) == frozenset()
    assert classes.overlapping([read(base, "a"), read(base, "b")]) == {0, 1}
    assert classes.overlapping([read(base[:0], "a"), read(base, "b")]) == frozenset()


@pytest.mark.parametrize(
    ("name", "one", "other", "expected"),
    [
        ("the same", lambda m: m, lambda m: m, True),
        ("shifted", lambda m: m[1:], lambda m: m[:-1], True),
        ("halves of rows", lambda m: m[:, :4], lambda m: m[:, 4:], False),
        ("even and odd columns", lambda m: m[:, ::2], lambda m: m[:, 1::2], False),
        ("even and every third", lambda m: m[:, ::2], lambda m: m[:, 1::3], True),
        ("a row and the next", lambda m: m[0], lambda m: m[1], False),
        ("nothing", lambda m: m[:0], lambda m: m, False),
        ("backwards", lambda m: m[::-1], lambda m: m[2:3], True),
    ],
)
def test_views_that_share_memory(name: str, one, other, expected: bool) -> None:
    base = memory(8, 8)
    assert classes.shares_memory(read(one(base), "a"), read(other(base), "b")) == expected


@settings(max_examples=200, deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple),
    data=st.data(),
)
def test_canonical_strides_address_the_same_elements(shape: tuple[int, ...], data) -> None:
    strides = tuple(data.draw(st.integers(-9, 9)) for _ in shape)
    made = classes.canonical_strides(shape, strides)
    for index in np.ndindex(*shape):
        assert sum(i * s for i, s in zip(index, made, strict=True)) == sum(
            i * s for i, s in zip(index, strides, strict=True)
        )
    word = classes.letters(made)
    assert word.count("1") <= 1
    assert all((s == 0) == (c == "0") for s, c in zip(made, word, strict=True))
    assert classes.canonical_strides(shape, contiguous(shape)) == contiguous(shape)

"""Data and comparison for the tests of kernels: seeded arrays, a bound made of two roundings."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32}
# Half a unit in the last place, relative: what the one cast at the end may cost.
ROUNDING = {np.dtype(np.float32): 2.0**-24, np.dtype(np.float16): 2.0**-11}
ROUNDING[np.dtype(ml_dtypes.bfloat16)] = 2.0**-8


@pytest.fixture
def randn() -> Callable[..., np.ndarray]:
    """`randn(shape, "bf16")`: normal numbers, a new draw at each call, the same in each test."""
    generator = np.random.default_rng(20)

    def draw(shape: int | tuple[int, ...], dtype: str = "f32") -> np.ndarray:
        return generator.standard_normal(shape, np.float32).astype(NUMPY[dtype])

    return draw


def assert_close(actual: np.ndarray, expected: np.ndarray, error: Any = 4e-6) -> None:
    """|actual − expected| is at most `error` (of the f32 arithmetic, a number times the largest
    of 1 and |expected|, or an array of bounds) plus the rounding to the dtype of `actual`."""
    assert actual.shape == expected.shape
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    assert np.array_equal(np.isnan(a), np.isnan(e)), "NaN in other places than expected"
    bound = error if isinstance(error, np.ndarray) else error * np.maximum(1.0, np.abs(e))
    bound = bound + ROUNDING[actual.dtype] * np.abs(e) + 2.0**-25
    with np.errstate(invalid="ignore"):
        wrong = ~((np.abs(a - e) <= bound) | np.isnan(e) | (a == e))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{wrong.sum()} of {wrong.size} elements are off; at {place}: {a[place]}, "
            f"expected {e[place]} ± {np.broadcast_to(bound, a.shape)[place]}"
        )


@pytest.fixture
def close() -> Callable[..., None]:
    """The comparison `assert_close(actual, expected, error)`."""
    return assert_close


VIEWS = ("contiguous", "strided", "offset", "transposed")


@pytest.fixture
def seen_as() -> Callable[[np.ndarray, str], np.ndarray]:
    """`seen_as(matrix, how)`: equal values through other strides or another start, NaN around."""

    def view(matrix: np.ndarray, how: str) -> np.ndarray:
        rows, columns = matrix.shape
        if how == "contiguous":
            return matrix.copy()
        if how == "transposed":
            return matrix.T.copy().T
        padding = {"strided": (rows, 2 * columns), "offset": (rows + 1, columns + 3)}[how]
        owner = np.full(padding, np.nan).astype(matrix.dtype)
        seen = owner[:, ::2] if how == "strided" else owner[1:, 1 : columns + 1]
        seen[...] = matrix
        return seen

    return view

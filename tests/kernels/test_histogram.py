"""Counts of numbers in rows against NumPy: ragged rows and bins, every size of a cluster."""

import numpy as np
import pytest

from warploom.base.errors import LaunchError, ShapeError
from warploom.kernels import histogram
from warploom.kernels.histogram import kernel, reference

SHAPES = [(length, bins) for length in (0, 1, 255, 4096, 4097) for bins in (1, 64, 300, 4096)]


@pytest.mark.parametrize(("length", "bins"), [*SHAPES, (40_000, 63), (40_000, 65), (70_000, 130)])
def test_counts(device, length: int, bins: int) -> None:
    """Clusters of 1 to 16; numbers outside of the bins are left out."""
    x = np.random.default_rng(length).integers(-3, bins + 3, (2, length)).astype(np.int32)
    counts = device.empty((2, bins), np.int32)
    histogram.histogram(device.put(x), counts)
    assert np.array_equal(device.get(counts), reference.histogram(x, bins))


@pytest.mark.parametrize("number", [0, 7, -1, 64, 2**31 - 1, -(2**31)])
def test_one_number_only(device, number: int) -> None:
    x = np.full((1, 5000), number, np.int32)
    counts = device.empty((1, 64), np.int32)
    histogram.histogram(device.put(x), counts)
    assert device.get(counts).sum() == (5000 if 0 <= number < 64 else 0)
    assert np.array_equal(device.get(counts), reference.histogram(x, 64))


def test_clean() -> None:
    found = kernel.histogram.example_call("").check(seeds=4)
    assert found.clean, found.text()


def test_refused_and_nothing_to_do() -> None:
    with pytest.raises(ShapeError, match="B is at most 4096"):
        histogram.histogram(np.zeros((1, 4), np.int32), np.zeros((1, 4097), np.int32))
    with pytest.raises(ShapeError, match="`x` is f32"):
        histogram.histogram(np.zeros((1, 4), np.float32), np.zeros((1, 4), np.int32))
    same = np.zeros((1, 4), np.int32)
    with pytest.raises(LaunchError, match="H007"):
        histogram.histogram(same, same)
    histogram.histogram(np.zeros((0, 4), np.int32), np.zeros((0, 4), np.int32))
    histogram.histogram(np.zeros((2, 4), np.int32), np.zeros((2, 0), np.int32))

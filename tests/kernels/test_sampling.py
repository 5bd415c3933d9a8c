"""Argmax over a vocabulary: NaN counts as largest, ties take the lowest index."""

import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels import sampling
from warploom.kernels.sampling import reference


def run(device, logits):
    out = device.empty(len(logits), np.int32)
    scratch = sampling.workspace(len(logits), logits.shape[1], like=out)
    sampling.argmax(device.put(logits), out, scratch)
    return device.get(out)


@pytest.mark.parametrize("vocabulary", [1, 7, 2047, 2048, 2049, 49152, 151936])
@pytest.mark.parametrize("tokens", [0, 1, 3])
def test_random_logits(device, randn, vocabulary, tokens):
    logits = randn((tokens, vocabulary))
    assert np.array_equal(run(device, logits), reference.argmax(logits))


@pytest.mark.case("C30")
@pytest.mark.parametrize(
    "places",
    [(0,), (31,), (32,), (127, 128), (31, 32, 500), (2047, 2048), (5, 2048, 4096), (6143,)],
)
@pytest.mark.parametrize("peak", [np.nan, np.inf, 9.0])
def test_ties_across_lanes_warps_and_blocks(device, randn, places, peak):
    logits = np.minimum(randn((1, 6144)), np.float32(8))
    logits[0, list(places)] = peak
    assert run(device, logits)[0] == places[0]


@pytest.mark.case("C30")
@pytest.mark.parametrize(
    "row",
    [
        [np.nan, 6, 8],
        [6, np.nan, 8],
        [np.nan, np.nan],
        [np.inf, np.nan],
        [np.nan, np.inf],
        [-np.inf, -np.inf],
        [-0.0, 0.0],
        [3],
    ],
)
def test_special_rows(device, row):
    logits = np.array([row], np.float32)
    assert run(device, logits)[0] == logits[0].argmax()


@pytest.mark.case("C30")
def test_nan_beats_infinity_in_another_block(device, randn):
    logits = randn((2, 5000))
    logits[0, 10], logits[0, 4000], logits[0, 4500] = np.inf, np.nan, np.nan
    logits[1] = -np.inf
    assert run(device, logits).tolist() == [4000, 0]


def test_short_floats(device, randn):
    logits = randn((2, 3000), "bf16")
    assert np.array_equal(run(device, logits), reference.argmax(logits))


def test_larger_scratch(device, randn):
    """Scratch of a larger vocabulary may hold anything in what is not used."""
    logits, out = randn((1, 3000)), device.empty(1, np.int32)
    scratch = device.put(np.full((4, 40), np.nan, np.float32)), device.empty((4, 40), np.int32)
    sampling.argmax(device.put(logits), out, scratch)
    assert device.get(out)[0] == logits[0].argmax()


def test_wrong_arguments(randn):
    out = np.empty(1, np.int32)
    with pytest.raises(ShapeError, match="`scratch` is too small"):
        sampling.argmax(randn((1, 5000)), out, sampling.workspace(1, 100, like=out))
    with pytest.raises(ShapeError, match="no largest of no logits"):
        sampling.argmax(randn((1, 0)), out, sampling.workspace(1, 1, like=out))

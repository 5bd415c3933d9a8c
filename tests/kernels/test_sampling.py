"""Argmax over a vocabulary: NaN counts as largest, ties take the lowest index."""

import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels import sampling
from warploom.kernels.sampling import kernel, reference


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


# ---- the K largest -------------------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch):
    """Blocks that hold few elements, so that short rows are split as long ones are."""
    monkeypatch.setattr(sampling, "MOST_ELEMENTS", 64)


def chosen(device, x, k):
    values, indices = device.empty((len(x), k), x.dtype), device.empty((len(x), k), np.int32)
    sampling.top_k(device.put(x), values, indices)
    return device.get(values), device.get(indices)


@pytest.mark.parametrize(
    ("length", "dtype", "ks"),
    [
        *((1, "f32", [1]), (8, "f16", [1, 8]), (33, "bf16", [7, 33]), (64, "f32", [64])),
        *((65, "f32", [1, 7, 64]), (200, "bf16", [7, 30]), (513, "f32", [7]), (1024, "bf16", [5])),
    ],
)
def test_the_largest_in_order(device, short, randn, length, dtype, ks):
    """Clusters of 1 to 16, ragged parts, blocks that have fewer elements than are wanted."""
    x = randn((2, length), dtype)
    for k in ks:
        values, indices = chosen(device, x, k)
        wanted = reference.top_k(x, k)
        assert np.array_equal(indices, wanted[1])
        assert np.array_equal(values, wanted[0])


@pytest.mark.case("C30")
def test_largest_of_special_rows(device, short):
    """Ties within and between blocks, NaN and infinities, zeros of both signs, and a row of −∞."""
    x = np.zeros((5, 128), np.float32)
    x[0, [3, 40, 100]] = np.nan
    x[0, [5, 127]] = np.inf
    x[1] = -np.inf
    x[2, ::2] = -0.0
    x[3] = np.arange(128) // 40
    x[4] = -np.inf
    x[4, 127] = -1
    values, indices = chosen(device, x, 9)
    wanted = reference.top_k(x, 9)
    assert np.array_equal(indices, wanted[1])
    assert np.array_equal(values, wanted[0], equal_nan=True)


def test_the_choice_of_a_cluster_is_clean(randn):
    x = randn((2, 300))
    launcher = kernel.top_k.launch(8, cluster=4, warps=2)
    values, indices = np.zeros((2, 5), np.float32), np.zeros((2, 5), np.int32)
    found = launcher.check(x, values, indices, K=5, BN=80, seeds=5)
    assert found.clean, found.text()


def test_splits_hold_all_of_a_row():
    for length in (1, 8192, 8193, 49_152, 151_936, 262_144):
        blocks, part = sampling.split(length)
        assert blocks in (1, 2, 4, 8, 16) and part <= sampling.MOST_ELEMENTS
        assert blocks * part >= length


def test_what_top_k_refuses(randn):
    x, index = randn((1, 10)), np.zeros((1, 11), np.int32)
    with pytest.raises(ShapeError, match="K is at most 10"):
        sampling.top_k(x, np.zeros((1, 11), np.float32), index)
    with pytest.raises(ShapeError, match="`values` is f16"):
        sampling.top_k(x, np.zeros((1, 3), np.float16), index[:, :3])
    assert chosen_nothing(x).shape == (1, 0)


def chosen_nothing(x):
    values = np.zeros((1, 0), np.float32)
    sampling.top_k(x, values, np.zeros((1, 0), np.int32))
    return values

"""Rotary embedding in both pairings against a scalar loop."""

import numpy as np
import pytest

from warploom.base.errors import LaunchError, ShapeError
from warploom.kernels import rope
from warploom.kernels.rope import reference

STYLES = ("half", "interleaved")


def frequencies(rotary: int) -> np.ndarray:
    return (1e5 ** -(np.arange(0, rotary, 2) / rotary)).astype(np.float32)


def run(device, x, positions, inv_freq, style, dtype=None):
    out = device.empty(x.shape, dtype or x.dtype)
    rope.rope(device.put(x), device.put(positions), device.put(inv_freq), out, style=style)
    return device.get(out)


@pytest.mark.case("C35")
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dim", [64, 80, 128])
@pytest.mark.parametrize("part", [1, 2])
@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_against_the_scalar_loop(device, randn, close, style, dim, part, tokens):
    x, inv_freq = randn((tokens, 5, dim)), frequencies(dim // part)
    positions = np.array([7, 0, 2**17 + 3], np.int32)[:tokens]
    expected = reference.rope(x, positions, inv_freq, style)
    close(run(device, x, positions, inv_freq, style), expected, 1e-5)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_short_floats(device, randn, close, style, dtype):
    x, inv_freq, positions = randn((2, 3, 64), dtype), frequencies(64), np.array([5, 900], np.int32)
    expected = reference.rope(x, positions, inv_freq, style)
    close(run(device, x, positions, inv_freq, style), expected, 1e-5)


@pytest.mark.parametrize("rotary", [2, 6, 10])
@pytest.mark.parametrize("style", STYLES)
def test_odd_widths(device, randn, close, style, rotary):
    """Few columns turn, and a head has an odd number of them."""
    x, positions = randn((2, 40, rotary + 3)), np.array([3, 11], np.int32)
    expected = reference.rope(x, positions, frequencies(rotary), style)
    close(run(device, x, positions, frequencies(rotary), style), expected, 1e-5)


@pytest.mark.case("C35")
@pytest.mark.parametrize("style", STYLES)
def test_position_zero_is_the_identity(device, randn, style):
    x, positions = randn((2, 3, 64), "bf16"), np.zeros(2, np.int32)
    assert np.array_equal(run(device, x, positions, frequencies(64), style), x)


@pytest.mark.case("C35")
@pytest.mark.parametrize("style", STYLES)
def test_a_slice_of_packed_queries_in_place(device, randn, close, style):
    """q and k of a packed [T, (Hq + 2·Hk)·D] row turn where they lie; v stays."""
    packed, positions = randn((3, 5 * 64)), np.array([1, 2, 70], np.int32)
    whole = device.put(packed)
    part = whole.reshape(3, 5, 64)[:, :4]
    rope.rope(part, device.put(positions), device.put(frequencies(64)), part, style=style)
    got = device.get(whole).reshape(3, 5, 64)
    expected = packed.reshape(3, 5, 64)
    close(got[:, :4], reference.rope(expected[:, :4], positions, frequencies(64), style), 1e-5)
    assert np.array_equal(got[:, 4], expected[:, 4])


@pytest.mark.parametrize("style", STYLES)
def test_many_heads_in_place(device, randn, close, style):
    x, positions = randn((2, 37, 80)), np.array([9, 4], np.int32)
    both = device.put(x)
    rope.rope(both, device.put(positions), device.put(frequencies(40)), both, style=style)
    close(device.get(both), reference.rope(x, positions, frequencies(40), style), 1e-5)


def test_the_styles_differ_by_a_permutation(randn):
    x, positions, order = randn((1, 1, 64)), np.array([5], np.int32), np.arange(64)
    split = np.concatenate([order[0::2], order[1::2]])
    half = reference.rope(x[..., split], positions, frequencies(64), "half")
    interleaved = reference.rope(x, positions, frequencies(64), "interleaved")
    assert np.array_equal(half, interleaved[..., split])


def test_empty(device):
    x = np.zeros((0, 3, 64), np.float32)
    assert run(device, x, np.zeros(0, np.int32), frequencies(64), "half").shape == x.shape


def test_wrong_arguments(randn):
    x, positions = randn((2, 3, 64)), np.zeros(2, np.int32)
    with pytest.raises(LaunchError, match="style='neox' is not possible"):
        rope.rope(x, positions, frequencies(64), x, style="neox")
    with pytest.raises(ShapeError, match="33 frequencies for heads of 64"):
        rope.rope(x, positions, frequencies(66), x)

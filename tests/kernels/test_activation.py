"""SiLU·mul, GELU and softmax against float64."""

import numpy as np
import pytest

from warploom.base.errors import LaunchError, ShapeError
from warploom.kernels import activation
from warploom.kernels.activation import reference


@pytest.mark.parametrize("width", [1, 7, 80, 576, 1536, 2500])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_silu_mul(device, randn, close, width, dtype):
    gate, up = randn((3, width), dtype), randn((3, width), dtype)
    out = device.empty((3, width), gate.dtype)
    activation.silu_mul(device.put(gate), device.put(up), out)
    close(device.get(out), reference.silu_mul(gate, up))


def test_silu_mul_of_two_halves(device, randn, close):
    both = randn((2, 192))
    rows, out = device.put(both), device.empty((2, 96), np.float32)
    activation.silu_mul(rows[:, :96], rows[:, 96:], out)
    close(device.get(out), reference.silu_mul(both[:, :96], both[:, 96:]))


def test_silu_of_large_numbers(device, close):
    gate = np.array([[-200.0, -88.0, -0.0, 0.0, 88.0, 200.0]], np.float32)
    up, out = np.ones_like(gate), device.empty(gate.shape, np.float32)
    activation.silu_mul(device.put(gate), device.put(up), out)
    close(device.get(out), reference.silu_mul(gate, up), 1e-6)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("width", [1, 7, 576, 1100])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_gelu(device, randn, close, approximate, width, dtype):
    x = randn((2, width), dtype) * 3
    out = device.empty(x.shape, x.dtype)
    activation.gelu(device.put(x), out, approximate)
    close(device.get(out), reference.gelu(x, approximate), 2e-6)


def test_gelu_in_place(device, randn, close):
    x = randn((2, 96))
    both = device.put(x)
    activation.gelu(both, both)
    close(device.get(both), reference.gelu(x), 2e-6)


@pytest.mark.parametrize("rows", [0, 1, 17])
@pytest.mark.parametrize("columns", [1, 7, 80, 96, 576, 9000])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_softmax(device, randn, close, rows, columns, dtype):
    x = randn((rows, columns), dtype)
    out = device.empty(x.shape, x.dtype)
    activation.softmax(device.put(x), out)
    close(device.get(out), reference.softmax(x), 1e-6)


@pytest.mark.parametrize("columns", [70, 9000])
def test_softmax_of_special_rows(device, randn, close, columns):
    """Large scores, one live entry among −∞; rows with NaN, +∞ or −∞ only are NaN, as in torch."""
    x = randn((6, columns))
    x[0] -= 1e5
    x[1, :] = -np.inf
    x[1, columns // 2] = 3.0
    x[2] = -np.inf
    x[3, 1] = np.inf
    x[4, 2] = np.nan
    out = device.empty(x.shape, np.float32)
    activation.softmax(device.put(x), out)
    got = device.get(out)
    assert got[1, columns // 2] == 1.0
    assert got[1].sum() == 1.0
    assert np.isnan(got[2:5]).any(1).all()
    close(got[[0, 1, 5]], reference.softmax(x[[0, 1, 5]]), 1e-6)


@pytest.mark.parametrize("how", ["strided", "offset", "transposed"])
def test_views(device, randn, seen_as, close, how):
    x = randn((17, 80), "bf16")
    for call, expected in (
        (activation.softmax, reference.softmax),
        (activation.gelu, reference.gelu),
    ):
        out = device.put_strided(seen_as(np.zeros(x.shape, np.float32), how))
        call(device.put_strided(seen_as(x, how)), out)
        close(device.get(out), expected(x), 2e-6)


def test_wrong_arguments(randn):
    x = randn((2, 8))
    with pytest.raises(LaunchError, match="approximate='erf' is not possible"):
        activation.gelu(x, x, "erf")
    with pytest.raises(ShapeError, match="axis 0 of `up` is 1, and T is 2"):
        activation.silu_mul(x, x[:1], x)

"""RMSNorm and LayerNorm against their formulas in float64."""

import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels import norm
from warploom.kernels.norm import reference

EPS = 1e-5


@pytest.mark.case("C34")
@pytest.mark.parametrize("hidden", [1, 7, 96, 576, 4096, 7168, 9001])
@pytest.mark.parametrize(
    ("dtype", "weight_dtype"), [("f32", "f32"), ("bf16", "bf16"), ("f16", "f32")]
)
def test_rms_norm(device, randn, close, hidden, dtype, weight_dtype):
    x, weight = randn((3, hidden), dtype), randn(hidden, weight_dtype)
    out = device.empty((3, hidden), x.dtype)
    norm.rms_norm(device.put(x), device.put(weight), out, EPS)
    close(device.get(out), reference.rms_norm(x, weight, EPS))


@pytest.mark.parametrize("hidden", [1, 7, 96, 576, 9001])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_layer_norm(device, randn, close, hidden, dtype):
    x, weight, bias = randn((3, hidden), dtype), randn(hidden), randn(hidden)
    out = device.empty((3, hidden), x.dtype)
    norm.layer_norm(device.put(x), device.put(weight), device.put(bias), out, EPS)
    close(device.get(out), reference.layer_norm(x, weight, bias, EPS), 2e-5)


@pytest.mark.case("C34")
@pytest.mark.parametrize("value", [0.0, 1e-20, 1e4])
def test_extreme_rows(device, close, value):
    """Zero rows, rows where eps decides, and f16 whose square overflows f16."""
    x = np.full((2, 96), value, np.float16 if value > 1 else np.float32)
    weight = np.full(96, 2.0, np.float32)
    out = device.empty((2, 96), np.float32)
    norm.rms_norm(device.put(x), device.put(weight), out, EPS)
    close(device.get(out), reference.rms_norm(x, weight, EPS), 1e-6 * max(1e-20, abs(value)))


def test_mean_far_from_zero(device, randn, close):
    """LayerNorm subtracts the mean before it squares: x = 1000 ± 1 keeps its digits."""
    x = randn((2, 576)) + np.float32(1000)
    ones, zeros = np.ones(576, np.float32), np.zeros(576, np.float32)
    out = device.empty((2, 576), np.float32)
    norm.layer_norm(device.put(x), device.put(ones), device.put(zeros), out, EPS)
    close(device.get(out), reference.layer_norm(x, ones, zeros, EPS), 5e-4)


@pytest.mark.parametrize("how", ["strided", "offset", "transposed"])
def test_views(device, randn, seen_as, close, how):
    x, weight = randn((17, 80), "bf16"), randn(80)
    out = device.put_strided(seen_as(np.zeros((17, 80), np.float32), how))
    norm.rms_norm(device.put_strided(seen_as(x, how)), device.put(weight), out, EPS)
    close(device.get(out), reference.rms_norm(x, weight, EPS))


@pytest.mark.parametrize("hidden", [96, 9001])
def test_in_place(device, randn, close, hidden):
    x, weight = randn((2, hidden)), randn(hidden)
    both = device.put(x)
    norm.rms_norm(both, device.put(weight), both, EPS)
    close(device.get(both), reference.rms_norm(x, weight, EPS))


def test_a_row_does_not_depend_on_its_neighbours(device, randn):
    x, weight = randn((5, 576)), randn(576)
    alone, together = device.empty((1, 576), np.float32), device.empty((5, 576), np.float32)
    norm.rms_norm(device.put(x[3:4]), device.put(weight), alone, EPS)
    norm.rms_norm(device.put(x), device.put(weight), together, EPS)
    assert np.array_equal(device.get(alone)[0], device.get(together)[3])


def test_empty(device):
    for shape in ((0, 96), (3, 0)):
        out = device.empty(shape, np.float32)
        weight = device.put(np.zeros(shape[1], np.float32))
        norm.rms_norm(device.put(np.zeros(shape, np.float32)), weight, out, EPS)
        assert device.get(out).shape == shape


def test_wrong_arguments(randn):
    x, weight = randn((2, 8)), randn(9)
    with pytest.raises(ShapeError, match="axis 0 of `weight` is 9, and H is 8"):
        norm.rms_norm(x, weight, x, EPS)

"""The references themselves, against plain loops over single numbers and against known values."""

import math

import numpy as np
import pytest

from warploom.kernels.activation import reference as activation
from warploom.kernels.attention import reference as attention
from warploom.kernels.linear import reference as linear
from warploom.kernels.norm import reference as norm
from warploom.kernels.rope import reference as rope


def test_attention_by_single_numbers(randn):
    q, k, v = randn((2, 4, 3)), randn((6, 2, 3)), randn((6, 2, 3))
    out = attention.decode(q, k, v, np.array([5, 2]), 0.5)
    for t, last in ((0, 5), (1, 2)):
        for h in range(4):
            scores = [
                0.5 * sum(float(q[t, h, d]) * float(k[s, h // 2, d]) for d in range(3))
                for s in range(last + 1)
            ]
            weights = [math.exp(s) for s in scores]
            for d in range(3):
                mixed = sum(w * float(v[s, h // 2, d]) for s, w in enumerate(weights))
                assert math.isclose(out[t, h, d], mixed / sum(weights), rel_tol=1e-12)


def test_attention_to_one_key_is_its_value(randn):
    q, k, v = randn((1, 2, 8)), randn((3, 2, 8)), randn((3, 2, 8))
    assert np.allclose(attention.decode(q, k, v, np.array([0]), 1.0)[0], v[0], rtol=1e-12)


def test_norms_by_single_numbers(randn):
    x, weight, bias = randn((1, 5)), randn(5), randn(5)
    row = [float(v) for v in x[0]]
    mean = sum(row) / 5
    square = sum(v * v for v in row) / 5
    spread = sum((v - mean) ** 2 for v in row) / 5
    rms, layer = norm.rms_norm(x, weight, 1e-5)[0], norm.layer_norm(x, weight, bias, 1e-5)[0]
    for i, v in enumerate(row):
        assert math.isclose(rms[i], v / math.sqrt(square + 1e-5) * float(weight[i]), rel_tol=1e-12)
        centred = (v - mean) / math.sqrt(spread + 1e-5) * float(weight[i]) + float(bias[i])
        assert math.isclose(layer[i], centred, rel_tol=1e-12, abs_tol=1e-15)


def test_linear_by_single_numbers(randn):
    x, w, bias, residual = randn((2, 3)), randn((4, 3)), randn(4), randn((2, 4))
    y = linear.linear(x, w, bias, residual)
    for t in range(2):
        for n in range(4):
            total = sum(float(a) * float(b) for a, b in zip(x[t], w[n], strict=True))
            assert math.isclose(y[t, n], total + float(bias[n]) + float(residual[t, n]))


def test_activations_at_known_values():
    x = np.array([[-1.0, 0.0, 2.0]])
    assert np.allclose(activation.silu_mul(x, np.full_like(x, 3.0))[0, 2], 6 / (1 + math.exp(-2)))
    assert np.allclose(activation.gelu(x), [[-0.15865525, 0.0, 1.95449974]], atol=1e-8)
    assert np.allclose(activation.gelu(x, "tanh"), [[-0.15880801, 0.0, 1.95459769]], atol=1e-8)
    assert np.allclose(activation.softmax(np.log([[1.0, 3.0, 4.0]])), [[0.125, 0.375, 0.5]])


@pytest.mark.case("C35")
@pytest.mark.parametrize("style", ["half", "interleaved"])
def test_rope_keeps_length_and_turns_relatively(randn, style):
    """Rotations keep norms, and the product of two turned vectors depends on the distance only."""
    x, y = randn((1, 1, 8)), randn((1, 1, 8))
    inv_freq = np.array([1.0, 0.5, 0.25, 0.125], np.float32)

    def product(a: int, b: int) -> float:
        turned = (rope.rope(v, np.array([p]), inv_freq, style) for v, p in ((x, a), (y, b)))
        return float(np.sum(np.prod(list(turned), axis=0)))

    assert math.isclose(product(3, 8), product(20, 25), rel_tol=1e-12)
    turned = rope.rope(x, np.array([11]), inv_freq, style)
    assert math.isclose(np.linalg.norm(turned), np.linalg.norm(x.astype(np.float64)))


def test_rope_pairs():
    assert rope.pairs(6, "half") == [(0, 3), (1, 4), (2, 5)]
    assert rope.pairs(6, "interleaved") == [(0, 1), (2, 3), (4, 5)]

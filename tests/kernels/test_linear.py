"""Linear layers for one to eight tokens against float64 matrix products."""

import numpy as np
import pytest

from warploom.base.errors import LaunchError, ShapeError
from warploom.kernels import linear
from warploom.kernels.linear import config, reference

TINY = 2.0**-24


def bound(x, w, extra=0.0):
    """What 16 roundings of the largest partial sum may cost, and those of bias and residual."""
    return 16 * TINY * reference.error_scale(x, w) + 4 * TINY * np.abs(extra)


def run(device, x, w, dtype=np.float32, bias=None, residual=None):
    out = device.empty((len(x), len(w)), dtype)
    extra = [None if a is None else device.put(a) for a in (bias, residual)]
    linear.linear(device.put(x), device.put(w), out, *extra)
    return device.get(out)


@pytest.mark.case("C14")
@pytest.mark.parametrize("k", [1, 7, 80, 96, 200, 576, 1536])
@pytest.mark.parametrize("n", [1, 7, 22, 130])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_shapes(device, randn, close, k, n, dtype):
    x, w = randn((2, k)), randn((n, k), dtype)
    close(run(device, x, w), reference.linear(x, w), bound(x, w))


@pytest.mark.parametrize("tokens", [0, 1, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_tokens(device, randn, close, tokens, dtype):
    x, w = randn((tokens, 300), "bf16"), randn((37, 300), dtype)
    close(run(device, x, w), reference.linear(x, w), bound(x, w))


@pytest.mark.parametrize("out", [np.float32, np.float16])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("with_residual", [False, True])
def test_bias_and_residual(device, randn, close, out, with_bias, with_residual):
    x, w = randn((3, 96)), randn((22, 96), "bf16")
    bias = randn(22, "bf16") if with_bias else None
    residual = randn((3, 22)) if with_residual else None
    expected = reference.linear(x, w, bias, residual)
    close(run(device, x, w, out, bias, residual), expected, bound(x, w, 8.0))


def test_residual_in_place(device, randn, close):
    x, w, stream = randn((2, 576)), randn((96, 576), "bf16"), randn((2, 96))
    both = device.put(stream)
    linear.linear(device.put(x), device.put(w), both, residual=both)
    close(device.get(both), reference.linear(x, w, None, stream), bound(x, w, 8.0))


def test_one_hot_columns_are_exact(device):
    """A dropped or doubled column of a ragged K shows at once."""
    for k in (24, 40, 56, 120, 168):
        w = np.arange(3 * k, dtype=np.float32).reshape(3, k)
        for column in (0, k // 2, k - 1):
            x = np.zeros((1, k), np.float32)
            x[0, column] = 1.0
            assert np.array_equal(run(device, x, w)[0], w[:, column])


@pytest.mark.case("C19")
@pytest.mark.parametrize("how", ["strided", "offset", "transposed"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_views(device, randn, seen_as, close, how, dtype):
    x, w = randn((3, 63)), randn((60, 63), dtype)
    out = device.put_strided(seen_as(np.zeros((3, 60), np.float32), how))
    linear.linear(device.put_strided(seen_as(x, how)), device.put_strided(seen_as(w, how)), out)
    close(device.get(out), reference.linear(x, w), bound(x, w))


@pytest.mark.case("C19")
def test_views_have_the_bits_of_contiguous_arrays(device, randn, seen_as):
    x, w = randn((1, 570)), randn((20, 570), "bf16")
    plain = run(device, x, w)
    out = device.empty((1, 20), np.float32)
    linear.linear(device.put(x), device.put_strided(seen_as(w, "offset")), out)
    assert np.array_equal(device.get(out), plain)


@pytest.mark.case("C16")
@pytest.mark.parametrize("k", [1, 17, 63, 65, 100])
def test_nan_beyond_the_rows(device, randn, seen_as, k):
    """`seen_as` puts NaN before, between and behind the rows."""
    x, w = randn((2, k)), randn((9, k), "bf16")
    out = device.empty((2, 9), np.float32)
    linear.linear(
        device.put_strided(seen_as(x, "offset")), device.put_strided(seen_as(w, "offset")), out
    )
    assert np.isfinite(device.get(out)).all()


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("k", [576, 700, 1100])
def test_a_token_does_not_depend_on_its_neighbours(device, randn, dtype, k):
    x, w = randn((8, k)), randn((40, k), dtype)
    together = run(device, x, w)
    for t in (0, 3, 7):
        assert np.array_equal(run(device, x[t : t + 1], w)[0], together[t])


def test_rows_per_block_and_depth_do_not_change_bits(randn):
    x, w = randn((1, 600)), randn((24, 600), "bf16")
    results = []
    for rows, depth in ((4, 1), (4, 3), (8, 2)):
        out = np.empty((1, 24), np.float32)
        linear.kernel.linear[-(-24 // rows)](x, w, out, T=1, BN=rows, BK=256, DEPTH=depth)
        results.append(out)
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_config_keeps_sums_in_registers():
    for dtype in ("f32", "f16", "bf16"):
        for tokens in range(1, 9):
            for rows in (1, 576, 4096):
                for columns in (1, 576, 768, 1536, 4096):
                    chosen = config.choose(dtype, tokens, rows, columns)
                    assert tokens * chosen.BN * chosen.BK <= 128 * 128


def test_wrong_arguments(randn):
    x, w, out = randn((9, 8)), randn((4, 8)), np.empty((9, 4), np.float32)
    with pytest.raises(ShapeError, match="9 tokens in one call"):
        linear.linear(x, w, out)
    with pytest.raises(ShapeError, match="axis 1 of `w` is 7, and K is 8"):
        linear.linear(x[:1], w[:, :7], out[:1])
    with pytest.raises(ShapeError, match="`w` is f64"):
        linear.linear(x[:1], w.astype(np.float64), out[:1])


def test_a_result_on_an_operand_is_refused(randn):
    memory = randn((4, 16))
    with pytest.raises(LaunchError, match="H007"):
        linear.linear(memory[:2], randn((16, 16)), memory[1:3])
    linear.linear(memory[:2], randn((16, 16)), memory[2:])

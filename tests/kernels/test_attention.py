"""Decode attention against float64, with everything that leaks: NaN past the end, empty rows."""

import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels import attention
from warploom.kernels.attention import config, reference


def run(device, q, k, v, positions, scale=None, dtype=np.float32, capacity=None):
    out = device.empty(q.shape, dtype)
    partial = attention.workspace(q.shape[0], q.shape[1], q.shape[2], capacity or len(k), like=out)
    positions = np.asarray(positions, np.int32)
    attention.decode(
        device.put(q), device.put(k), device.put(v), device.put(positions), out,
        scale if scale is not None else q.shape[2] ** -0.5, partial=partial,
    )  # fmt: skip
    return device.get(out)


def expected(q, k, v, positions, scale=None):
    scale = scale if scale is not None else q.shape[2] ** -0.5
    return reference.decode(q, k, v, np.asarray(positions), scale)


DIMS = (64, 72, 80, 96, 112, 128, 192, 256)
RATIOS = (1, 3, 5, 6, 7, 8, 12, 16)
# Each size and each ratio once by default; all pairs are slow.
DIAGONAL = list(zip(DIMS, RATIOS, strict=True))
REST = [(d, r) for d in DIMS for r in RATIOS if (d, r) not in DIAGONAL]


@pytest.mark.case("C27")
@pytest.mark.parametrize(
    ("dim", "ratio"), [*DIAGONAL, *(pytest.param(*p, marks=pytest.mark.slow) for p in REST)]
)
def test_head_sizes_and_ratios(device, randn, close, dim, ratio):
    q, k, v = randn((1, 2 * ratio, dim)), randn((40, 2, dim), "bf16"), randn((40, 2, dim), "bf16")
    close(run(device, q, k, v, [36]), expected(q, k, v, [36]), 1e-5)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("position", [0, 1, 31, 32, 63, 255, 256, 257, 511, 699])
def test_contexts(device, randn, close, dtype, position):
    q, k, v = randn((1, 3, 64)), randn((700, 1, 64), dtype), randn((700, 1, 64), dtype)
    close(run(device, q, k, v, [position]), expected(q, k, v, [position]), 1e-5)


def test_more_splits_than_one_merge(device, randn, close):
    keys = config.SPLIT * (config.MERGE + 2) + 5
    q, k, v = randn((1, 2, 64)), randn((keys, 1, 64), "bf16"), randn((keys, 1, 64), "bf16")
    positions = [keys - 1]
    close(run(device, q, k, v, positions), expected(q, k, v, positions), 1e-5)


@pytest.mark.parametrize("tokens", [1, 2, 4, 8])
def test_tokens_of_a_chunk(device, randn, close, tokens):
    q, k, v = randn((tokens, 9, 64), "bf16"), randn((300, 3, 64)), randn((300, 3, 64))
    positions = np.arange(250, 250 + tokens)
    got = run(device, q, k, v, positions)
    close(got, expected(q, k, v, positions), 1e-5)
    for t in (0, tokens - 1):
        alone = run(device, q[t : t + 1], k, v, positions[t : t + 1])
        assert np.array_equal(alone[0], got[t]), "a token depends on its neighbours"


def test_capacity_does_not_change_bits(device, randn):
    q, k, v = randn((1, 3, 64)), randn((600, 1, 64)), randn((600, 1, 64))
    small = run(device, q, k[:100], v[:100], [99])
    assert np.array_equal(run(device, q, k, v, [99]), small)
    assert np.array_equal(run(device, q, k[:100], v[:100], [99], capacity=5000), small)


@pytest.mark.case("C16")
@pytest.mark.parametrize("length", [1, 17, 63, 65, 100])
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_garbage_past_the_end(device, randn, close, length, poison):
    q, k, v = randn((1, 4, 64)), randn((300, 2, 64), "bf16"), randn((300, 2, 64), "bf16")
    k[length:], v[length:] = poison, poison
    got = run(device, q, k, v, [length - 1])
    assert np.isfinite(got).all()
    close(got, expected(q, k[:length], v[:length], [length - 1]), 1e-5)


@pytest.mark.case("C23")
@pytest.mark.parametrize("positions", [[-1, 2, -1, 4], [-1, -1], [-1]])
def test_rows_without_keys_give_zero(device, randn, close, positions):
    q, k, v = randn((len(positions), 6, 64)), randn((5, 2, 64)), randn((5, 2, 64))
    got = run(device, q, k, v, positions)
    close(got, expected(q, k, v, positions), 1e-5)
    empty = np.array(positions) < 0
    assert not got[empty].any()


def test_no_cache_and_no_tokens(device, randn):
    q = randn((2, 4, 64))
    nothing = np.zeros((0, 2, 64), np.float32)
    assert not run(device, q, nothing, nothing, [0, 0]).any()
    k = randn((5, 2, 64))
    assert run(device, q[:0], k, k, []).shape == (0, 4, 64)


def test_a_position_past_the_cache_means_all_keys(device, randn, close):
    q, k, v = randn((1, 2, 64)), randn((40, 1, 64)), randn((40, 1, 64))
    close(run(device, q, k, v, [1000]), expected(q, k, v, [39]), 1e-5)


def test_large_and_small_scores(device, randn, close):
    """Scores around −10⁵: no finite stand-in for minus infinity may hide the only key."""
    q, k, v = (
        np.full((1, 2, 64), -40.0, np.float32),
        np.full((70, 1, 64), 40.0, np.float32),
        randn((70, 1, 64)),
    )
    for position in (0, 40, 69):
        close(run(device, q, k, v, [position], 1.0), expected(q, k, v, [position], 1.0), 1e-5)


def test_nan_in_a_key_stays_nan(device, randn):
    q, k, v = randn((1, 2, 64)), randn((10, 1, 64)), randn((10, 1, 64))
    k[3] = np.nan
    assert np.isnan(run(device, q, k, v, [9])).all()


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_output_dtypes(device, randn, close, dtype):
    q, k, v = randn((1, 2, 64), dtype), randn((40, 1, 64), dtype), randn((40, 1, 64), dtype)
    close(run(device, q, k, v, [39], dtype=q.dtype), expected(q, k, v, [39]), 1e-5)


def test_strided_queries_and_a_layer_of_a_cache(device, randn, close):
    packed, caches = randn((2, 8, 64)), randn((2, 50, 2, 64), "bf16")
    rows, cache = device.put(packed), device.put(caches)
    out, positions = device.empty((2, 4, 64), np.float32), np.array([3, 49], np.int32)
    partial = attention.workspace(2, 4, 64, 50, like=out)
    attention.decode(
        rows[:, :4], cache[0], cache[1], device.put(positions), out, 0.125, partial=partial
    )
    close(device.get(out), expected(packed[:, :4], caches[0], caches[1], positions, 0.125), 1e-5)


def test_config_divides_heads_and_split():
    for ratio in range(1, 17):
        for dim in (8, 64, 72, 80, 96, 112, 128, 192, 256, 512):
            chosen = config.choose(ratio, dim)
            assert chosen.heads * chosen.groups == ratio
            assert config.SPLIT % (chosen.BN * config.DEPTH) == 0


def test_wrong_arguments(randn):
    q, k, positions = randn((1, 4, 64)), randn((10, 3, 64)), np.zeros(1, np.int32)
    partial = attention.workspace(1, 4, 64, 10, like=q)
    with pytest.raises(ShapeError, match="4 query heads do not divide over 3 key heads"):
        attention.decode(q, k, k, positions, q, 1.0, partial=partial)
    k = randn((300, 2, 64))
    with pytest.raises(ShapeError, match="`partial` is too small"):
        attention.decode(q, k, k, positions, q, 1.0, partial=partial)

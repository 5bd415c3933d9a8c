"""Decode attention whose keys are split over a cluster, against float64."""

import numpy as np
import pytest

from warploom.base.errors import LaunchError, ShapeError
from warploom.kernels import attention
from warploom.kernels.attention import kernel, reference


def run(device, q, k, v, positions, cluster: int) -> np.ndarray:
    out = device.empty(q.shape, np.float32)
    held = [device.put(part) for part in (q, k, v, np.asarray(positions, np.int32))]
    attention.decode_in_cluster(*held, out, q.shape[2] ** -0.5, cluster)
    return device.get(out)


def expected(q, k, v, positions) -> np.ndarray:
    return reference.decode(q, k, v, np.asarray(positions), q.shape[2] ** -0.5)


@pytest.mark.parametrize("cluster", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("position", [-1, 0, 31, 63, 64, 300, 10_000])
def test_contexts(device, randn, close, cluster: int, position: int) -> None:
    """Parts that are empty, ragged and whole; past the cache all keys count."""
    q, k, v = randn((1, 4, 64)), randn((400, 2, 64), "bf16"), randn((400, 2, 64), "bf16")
    close(run(device, q, k, v, [position], cluster), expected(q, k, v, [position]), 1e-5)


@pytest.mark.parametrize(("dim", "ratio"), [(64, 1), (80, 5), (128, 4), (256, 8)])
def test_head_sizes_and_ratios(device, randn, close, dim: int, ratio: int) -> None:
    q, k = randn((2, 2 * ratio, dim), "bf16"), randn((90, 2, dim), "bf16")
    close(run(device, q, k, k, [40, 88], 4), expected(q, k, k, [40, 88]), 1e-5)


@pytest.mark.case("C16")
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_garbage_past_the_end(device, randn, close, poison: float) -> None:
    q, k, v = randn((1, 4, 64)), randn((300, 2, 64), "bf16"), randn((300, 2, 64), "bf16")
    k[65:], v[65:] = poison, poison
    close(run(device, q, k, v, [64], 8), expected(q, k, v, [64]), 1e-5)


def test_neither_capacity_nor_neighbours_change_bits(device, randn) -> None:
    q, k, v = randn((2, 3, 64)), randn((600, 1, 64)), randn((600, 1, 64))
    small = run(device, q, k[:100], v[:100], [99, 50], 4)
    assert np.array_equal(run(device, q, k, v, [99, 50], 4), small)
    assert np.array_equal(run(device, q[:1], k, v, [99], 4)[0], small[0])


def test_clean_in_any_order() -> None:
    found = kernel.decode_cluster.example_call().check(seeds=3)
    assert found.clean, found.text()


def test_refused() -> None:
    q, k = np.zeros((1, 3, 64), np.float32), np.zeros((8, 2, 64), np.float32)
    position = np.zeros(1, np.int32)
    with pytest.raises(ShapeError, match="3 query heads"):
        attention.decode_in_cluster(q, k, k, position, q.copy(), 1.0)
    with pytest.raises(LaunchError, match="H030"):
        attention.decode_in_cluster(q, k[:, :1], k[:, :1], position, q.copy(), 1.0, cluster=0)
    with pytest.raises(LaunchError, match="H007"):
        attention.decode_in_cluster(q, k[:, :1], k[:, :1], position, q, 1.0)

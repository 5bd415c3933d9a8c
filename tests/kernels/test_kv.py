"""Appending keys and values to a cache."""

import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels import kv
from warploom.kernels.kv import reference


@pytest.mark.parametrize(("heads", "dim"), [(1, 1), (3, 64), (2, 80), (40, 128)])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_append(device, randn, heads, dim, dtype):
    k, v = randn((3, heads, dim)), randn((3, heads, dim))
    caches = [randn((9, heads, dim), dtype) for _ in range(2)]
    positions = np.array([8, 0, 4], np.int32)
    on_device = [device.put(c) for c in caches]
    kv.append(device.put(k), device.put(v), *on_device, device.put(positions))
    reference.append(k, v, *caches, positions)
    for got, expected in zip(on_device, caches, strict=True):
        assert np.array_equal(device.get(got), expected)


def test_positions_outside_write_nothing(device, randn):
    k, cache = randn((2, 3, 8)), randn((4, 3, 8))
    on_device = device.put(cache), device.put(cache)
    positions = device.put(np.array([-1, 4], np.int32))
    kv.append(device.put(k), device.put(k), *on_device, positions)
    assert all(np.array_equal(device.get(c), cache) for c in on_device)


def test_slices_of_packed_rows(device, randn):
    packed, caches = randn((2, 5, 64)), [randn((6, 1, 64), "bf16") for _ in range(2)]
    rows, positions = device.put(packed), np.array([2, 3], np.int32)
    on_device = [device.put(c) for c in caches]
    kv.append(rows[:, 3:4], rows[:, 4:], *on_device, device.put(positions))
    reference.append(packed[:, 3:4], packed[:, 4:], *caches, positions)
    for got, expected in zip(on_device, caches, strict=True):
        assert np.array_equal(device.get(got), expected)


def test_wrong_arguments(randn):
    k, cache = randn((2, 3, 8)), randn((4, 3, 8))
    with pytest.raises(ShapeError, match="axis 1 of `v_cache` is 2, and Hk is 3"):
        kv.append(k, k, cache, cache[:, :2], np.zeros(2, np.int32))

"""Rows of a table by index, on both devices."""

import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels import embedding
from warploom.kernels.embedding import reference


@pytest.mark.parametrize("width", [1, 7, 576, 1100])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("tokens", [0, 1, 5])
def test_rows(device, randn, width, dtype, tokens):
    table = randn((11, width), dtype)
    ids = np.array([10, 0, 3, 3, 7], np.int32)[:tokens]
    out = device.empty((tokens, width), np.float32)
    embedding.embed(device.put(ids), device.put(table), out)
    assert np.array_equal(device.get(out), reference.embed(ids, table))


@pytest.mark.parametrize("how", ["strided", "offset", "transposed"])
def test_views(device, randn, seen_as, how):
    table, ids = randn((11, 80), "bf16"), np.array([4, 10], np.int32)
    out = device.put_strided(seen_as(np.zeros((2, 80), np.float32), how))
    embedding.embed(device.put(ids), device.put_strided(seen_as(table, how)), out)
    assert np.array_equal(device.get(out), reference.embed(ids, table))


def test_an_id_outside_the_table_gives_zeros(device, randn):
    table, ids = randn((4, 33)), np.array([-1, 3, 4], np.int32)
    out = device.empty((3, 33), np.float32)
    embedding.embed(device.put(ids), device.put(table), out)
    assert np.array_equal(device.get(out), reference.embed(ids, table))
    assert not device.get(out)[[0, 2]].any()


def test_wrong_arguments(randn):
    ids, table, out = np.zeros(2, np.int32), randn((4, 8)), np.empty((2, 8), np.float32)
    with pytest.raises(ShapeError, match="axis 1 of `out` is 7, and H is 8"):
        embedding.embed(ids, table, out[:, :7])
    with pytest.raises(ShapeError, match="`ids` is i64"):
        embedding.embed(ids.astype(np.int64), table, out)

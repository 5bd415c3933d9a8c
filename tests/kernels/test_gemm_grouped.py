"""Products of different sizes in one launch: empty, tiny, ragged groups; what lies between them."""

import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels.gemm import grouped_matmul, reference
from warploom.kernels.gemm.grouped import kernel

ROWS = {
    "one": [0, 70],
    "empty": [0, 0, 70, 70, 70, 150, 150],
    "nothing": [3, 3, 3],
    "no_group": [5],
    "whole_tiles": [0, 64, 128, 256],
    "single_rows": [5, 6, 7, 8, 9],
    "mixed": [2, 3, 131, 195, 196, 330],
}


def integers(shape, seed=0):
    """Small whole numbers: every sum of products is exact in f32."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float16)


def laid(device, array, turned):
    """On the device; `turned`: the last two axes are stored the other way round."""
    if not turned:
        return device.put(array)
    return device.put_strided(np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2))


@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize("name", ROWS)
def test_rows(device, name, layout):
    offsets = np.array(ROWS[name], np.int32)
    rows = (int(offsets[-1]) + 12) // 8 * 8
    a, b = integers((rows, 72)), integers((len(offsets) - 1, 72, 136), 1)
    start = np.full((rows, 136), -7, np.float32)
    out = device.put(start)
    left, right = laid(device, a, layout[0] == "t"), laid(device, b, layout[1] == "t")
    assert grouped_matmul(left, right, device.put(offsets), out) is out
    assert np.array_equal(device.get(out), reference.grouped_rows(a, b, offsets, start))


@pytest.mark.parametrize("blocks", [1, 2, 5])
@pytest.mark.parametrize("math", [1, 2])
@pytest.mark.parametrize("stages", [1, 3])
def test_rows_by_any_number_of_blocks(device, blocks, math, stages):
    offsets = np.array(ROWS["mixed"], np.int32)
    a, b = integers((340, 104)), integers((5, 104, 64), 1)
    start = np.full((340, 64), -7, np.float32)
    out = device.put(start)
    tiles = {"BM": 64 * math, "BN": 64, "BK": 32, "EN": 32, "STAGES": stages, "MATH": math}
    held = device.put(a), device.put(b), out, device.put(offsets)
    kernel.grouped_rows[blocks](*held, **tiles)
    assert np.array_equal(device.get(out), reference.grouped_rows(a, b, offsets, start))


def test_neighbours_of_a_group_do_not_reach_it(device):
    """NaN in the rows of one group stays there, though the engine reads them for another."""
    offsets = np.array([0, 30, 60, 90], np.int32)
    a, b = integers((96, 64)), integers((3, 64, 64), 1)
    a[30:60] = np.nan
    out = device.empty((96, 64), np.float32)
    grouped_matmul(device.put(a), device.put(b), device.put(offsets), out)
    made = device.get(out)
    assert np.isnan(made[30:60]).all() and np.isfinite(made[:30]).all()
    assert np.isfinite(made[60:90]).all()


@pytest.mark.parametrize("name", ROWS)
def test_columns(device, name):
    offsets = np.array(ROWS[name], np.int32)
    columns = (int(offsets[-1]) + 12) // 8 * 8
    a, b = integers((len(offsets) - 1, 40, 72)), integers((72, columns), 1)
    start = np.full((40, columns), -7, np.float32)
    out = device.put(start)
    grouped_matmul(device.put(a), device.put(b), device.put(offsets), out)
    turned = reference.grouped_rows(b.T, a.swapaxes(-1, -2), offsets, start.T)
    assert np.array_equal(device.get(out), turned.T)


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("name", [name for name in ROWS if name != "no_group"])
def test_depth(device, name, layout):
    offsets = np.array(ROWS[name], np.int32)
    depth = (int(offsets[-1]) + 12) // 8 * 8
    a, b = integers((72, depth)), integers((depth, 136), 1)
    # What belongs to no group reaches no sum.
    a[:, offsets[-1] :], b[offsets[-1] :] = np.nan, np.inf
    out = device.empty((len(offsets) - 1, 72, 136), np.float32)
    left, right = laid(device, a, layout[0] == "t"), laid(device, b, layout[1] == "t")
    grouped_matmul(left, right, device.put(offsets), out)
    assert np.array_equal(device.get(out), reference.grouped_depth(a, b, offsets))


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("blocks", [1, 3])
def test_depth_of_every_number_of_steps(device, stages, blocks):
    offsets = np.cumsum([0, 0, 15, 16, 17, 1, 32, 33, 0, 47, 48, 64]).astype(np.int32)
    depth = (int(offsets[-1]) + 7) // 8 * 8
    a, b = integers((72, depth)), integers((depth, 64), 1)
    out = device.empty((11, 72, 64), np.float32)
    tiles = {"BM": 64, "BN": 64, "BK": 16, "EN": 32, "STAGES": stages}
    kernel.grouped_depth[blocks](*(device.put(a), device.put(b), out, device.put(offsets)), **tiles)
    assert np.array_equal(device.get(out), reference.grouped_depth(a, b, offsets))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("out", ["f16", "bf16", "f32"])
def test_dtypes(device, randn, close, dtype, out):
    offsets = np.array([0, 100, 101, 200], np.int32)
    a, b = randn((200, 64), dtype), randn((3, 64, 72), dtype)
    made = device.get(
        grouped_matmul(
            *(device.put(a), device.put(b), device.put(offsets)),
            device.empty((200, 72), randn(1, out).dtype),
        )
    )
    expected = reference.grouped_rows(a, b, offsets, np.zeros((200, 72)))
    scale = reference.grouped_rows(np.abs(a), np.abs(b), offsets, np.zeros((200, 72)))
    close(made, expected, 16 * 2.0**-24 * scale)


def test_an_output_that_the_copy_engine_cannot_take(device):
    offsets = np.array([0, 64, 128], np.int32)
    a, b = integers((128, 64)), integers((2, 64, 60), 1)
    wide = np.zeros((2, 64, 64), np.float16)
    wide[:, :, :60] = b
    out = device.empty((128, 60), np.float16)
    right = device.put_strided(wide[:, :, :60])
    grouped_matmul(device.put(a), right, device.put(offsets), out)
    expected = reference.grouped_rows(a, b, offsets, np.zeros((128, 60)))
    assert np.array_equal(device.get(out), expected.astype(np.float16))


def test_a_result_is_made(device):
    a, b = integers((40, 64)), integers((2, 64, 24), 1)
    offsets = np.array([0, 16, 40], np.int32)
    made = grouped_matmul(device.put(a), device.put(b), device.put(offsets), dtype=np.float32)
    expected = reference.grouped_rows(a, b, offsets, np.zeros((40, 24)))
    assert np.array_equal(device.get(made), expected)


def test_wrong_arguments(randn):
    a, b = randn((40, 64), "f16"), randn((2, 64, 24), "f16")
    offsets = np.array([0, 16, 40], np.int32)
    with pytest.raises(ShapeError, match="axis 0 of `offsets without the last` is 2, and G is 3"):
        grouped_matmul(a, randn((3, 64, 24), "f16"), offsets)
    with pytest.raises(ShapeError, match="`b` is 63, and K is 64"):
        grouped_matmul(a, b[:, :63], offsets)
    with pytest.raises(ShapeError, match="have 3, 3 and 1 axes"):
        grouped_matmul(b, b, offsets)
    with pytest.raises(ShapeError, match="`offsets` is i64"):
        grouped_matmul(a, b, offsets.astype(np.int64))
    with pytest.raises(ShapeError, match="`a` is f32"):
        grouped_matmul(a.astype(np.float32), b, offsets)
    with pytest.raises(ShapeError, match="do not ascend from 0 to at most T = 40"):
        grouped_matmul(a, b, np.array([0, 50, 40], np.int32))
    with pytest.raises(ShapeError, match="a stride of 130 bytes along axis 0"):
        grouped_matmul(randn((40, 65), "f16")[:, :64], b, offsets)
    with pytest.raises(ShapeError, match="`out` overlaps `a`"):
        grouped_matmul(a, b, offsets, a[:, :24])

"""Three kernels as a user would write them, on every shape and striding that has ever hurt."""

from itertools import pairwise

import numpy as np
import pytest

import warploom as wl

ROWS = (0, 1, 17, 1000)
COLUMNS = (1, 7, 80, 96, 576)
VIEWS = ("contiguous", "strided", "offset", "transposed")

everywhere = pytest.mark.parametrize("how", VIEWS)
each_shape = pytest.mark.parametrize("rows", ROWS)
each_width = pytest.mark.parametrize("columns", COLUMNS)
each_dtype = pytest.mark.parametrize("dtype", ["f32", "bf16"])


@wl.kernel
def copy(x: wl.Tensor, y: wl.Tensor, BM: wl.const, BN: wl.const):
    m, n = wl.program_id(0) * BM, wl.program_id(1) * BN
    wl.store(y[wl.ds(m, BM), wl.ds(n, BN)], wl.load(x[wl.ds(m, BM), wl.ds(n, BN)]))


@wl.kernel
def softmax(x: wl.Tensor, y: wl.Tensor, BM: wl.const, BN: wl.const):
    m = wl.program_id(0) * BM
    row = wl.load(x[wl.ds(m, BM), wl.ds(0, BN)], other=float("-inf")).cast(wl.f32)
    e = wl.exp(row - wl.max(row, 1)[:, None])
    wl.store(y[wl.ds(m, BM), wl.ds(0, BN)], (e / wl.sum(e, 1)[:, None]).cast(y.dtype))


@wl.kernel
def matvec(a: wl.Tensor, x: wl.Tensor, y: wl.Tensor, BM: wl.const, BK: wl.const):
    m = wl.program_id(0) * BM
    total = wl.zeros((BM, BK), wl.f32)
    for k in wl.range(0, a.shape[1], BK):
        tile = wl.load(a[wl.ds(m, BM), wl.ds(k, BK)]).cast(wl.f32)
        total = total + tile * wl.load(x[wl.ds(k, BK)]).cast(wl.f32)[None, :]
    wl.store(y[wl.ds(m, BM)], wl.sum(total, 1).cast(y.dtype))


@everywhere
@each_shape
@each_width
@each_dtype
def test_copy(device, randn, seen_as, how, rows, columns, dtype):
    x = randn((rows, columns), dtype)
    y = device.put_strided(seen_as(np.zeros_like(x), how))
    copy[-(-rows // 16), -(-columns // 64)](device.put_strided(seen_as(x, how)), y, BM=16, BN=64)
    assert np.array_equal(device.get(y), x)


@everywhere
@each_shape
@each_width
@each_dtype
def test_softmax(device, randn, seen_as, close, how, rows, columns, dtype):
    x = randn((rows, columns), dtype)
    y = device.put_strided(seen_as(np.zeros_like(x), how))
    softmax[-(-rows // 8)](device.put_strided(seen_as(x, how)), y, BM=8, BN=columns)
    e = np.exp(x.astype(np.float64))
    close(device.get(y), e / e.sum(1, keepdims=True), 1e-6)


@everywhere
@each_shape
@each_width
@each_dtype
def test_matvec(device, randn, seen_as, close, how, rows, columns, dtype):
    a, x = randn((rows, columns), dtype), randn(columns, dtype)
    y = device.empty(rows, np.float32)
    matvec[-(-rows // 16)](device.put_strided(seen_as(a, how)), device.put(x), y, BM=16, BK=128)
    exact_a, exact_x = a.astype(np.float64), x.astype(np.float64)
    bound = 16 * 2.0**-24 * (np.abs(exact_a) @ np.abs(exact_x))
    close(device.get(y), exact_a @ exact_x, bound)


def test_writes_stay_inside_a_view(device, randn):
    x = randn((17, 7))
    owner = device.put(np.full((20, 12), 5.0, np.float32))
    copy[2, 1](device.put(x), owner[1:18, 3:10], BM=16, BN=64)
    whole = np.full((20, 12), 5.0, np.float32)
    whole[1:18, 3:10] = x
    assert np.array_equal(device.get(owner), whole)


@pytest.mark.case("C19")
def test_a_misaligned_view_is_one_more_variant(device, randn):
    """Warmed up on aligned arrays, the same kernel then meets a view that starts elsewhere."""

    @wl.kernel
    def double(x: wl.Tensor, y: wl.Tensor, BN: wl.const):
        n = wl.program_id(0) * BN
        wl.store(y[wl.ds(n, BN)], wl.load(x[wl.ds(n, BN)]) + wl.load(x[wl.ds(n, BN)]))

    def variants() -> int:
        return wl.stats().variants.get("double", 0)

    x = randn(1025, "f16")
    held, y = device.put(x), device.empty(1024, np.float16)
    counts = [variants()]
    for part in (slice(0, 1024), slice(1, 1025), slice(1, 1025)):
        double[8](held[part], y, BN=128)
        assert np.array_equal(device.get(y), x[part] * np.float16(2))
        counts.append(variants())
    assert [b - a for a, b in pairwise(counts)] == [1, 1, 0]

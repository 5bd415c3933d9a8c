"""Copy, softmax and matrix times vector over sizes and views, one test each, on both devices."""

import numpy as np
import pytest

import warploom as wl

ROWS = [0, 1, 17, 1000]
COLUMNS = [1, 7, 80, 96, 576]
VIEWS = ["contiguous", "strided", "offset", "transposed"]
sizes = pytest.mark.parametrize("rows", ROWS)
widths = pytest.mark.parametrize("columns", COLUMNS)
views = pytest.mark.parametrize("how", VIEWS)


def seen_as(array, how):
    """The same values in memory of another shape; the rest of that memory is NaN."""
    rows, columns = array.shape
    if how == "contiguous":
        return array.copy()
    shape = {
        "strided": (rows, 2 * columns + 1),
        "offset": (rows + 1, columns + 3),
        "transposed": (columns, rows),
    }[how]
    memory = np.full(shape, np.nan, array.dtype)
    view = {
        "strided": memory[:, 1 : 2 * columns + 1 : 2],
        "offset": memory[1:, 3:],
        "transposed": memory.T,
    }[how]
    view[...] = array
    return view


def data(rows, columns):
    return np.random.default_rng(rows + columns).standard_normal((rows, columns)).astype(np.float32)


def output(device, shape, how):
    return device.put_strided(seen_as(np.full(shape, 7, np.float32), how))


@wl.kernel
def copy(x: wl.Tensor, y: wl.Tensor, M: wl.const, N: wl.const):
    m, n = wl.program_id(0) * M, wl.program_id(1) * N
    wl.store(y[wl.ds(m, M), wl.ds(n, N)], wl.load(x[wl.ds(m, M), wl.ds(n, N)]))


@sizes
@widths
@views
def test_copy(device, rows, columns, how):
    x = data(rows, columns)
    out = output(device, x.shape, how)
    grid = (-(-rows // 16), -(-columns // 64))
    copy[grid](device.put_strided(seen_as(x, how)), out, M=16, N=64)
    assert np.array_equal(device.get(out), x)


@wl.kernel
def softmax(x: wl.Tensor, y: wl.Tensor, M: wl.const, N: wl.const):
    m = wl.program_id(0) * M
    t = wl.load(x[wl.ds(m, M), wl.ds(0, N)], other=float("-inf"))
    e = wl.exp(t - wl.max(t, 1)[:, None])
    wl.store(y[wl.ds(m, M), wl.ds(0, N)], e / wl.sum(e, 1)[:, None])


@sizes
@widths
@views
def test_softmax(device, rows, columns, how):
    x = data(rows, columns)
    out = output(device, x.shape, how)
    softmax[-(-rows // 8)](device.put_strided(seen_as(x, how)), out, M=8, N=columns)
    found = device.get(out)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True)) if rows else x
    expected = e / e.sum(1, keepdims=True) if rows else x
    assert np.allclose(found, expected, rtol=3e-6, atol=1e-9)
    assert np.allclose(found.sum(1), 1, atol=1e-5)


@wl.kernel
def matvec(w: wl.Tensor, x: wl.Tensor, y: wl.Tensor, M: wl.const, K: wl.const):
    m = wl.program_id(0) * M
    acc = wl.zeros((M, K), wl.f32)
    for k in wl.range(0, w.shape[1], K):
        acc = wl.fma(wl.load(w[wl.ds(m, M), wl.ds(k, K)]), wl.load(x[wl.ds(k, K)])[None, :], acc)
    wl.store(y[wl.ds(m, M)], wl.sum(acc, 1))


@sizes
@widths
@views
def test_matvec(device, rows, columns, how):
    w = data(rows, columns)
    x = data(1, columns)
    out = device.empty((rows,), np.float32)
    given = device.put_strided(seen_as(x, how)[0])
    matvec[-(-rows // 16)](device.put_strided(seen_as(w, how)), given, out, M=16, K=64)
    expected = w.astype(np.float64) @ x[0].astype(np.float64)
    bound = np.abs(w).astype(np.float64) @ np.abs(x[0]).astype(np.float64)
    assert (np.abs(device.get(out) - expected) <= 2.0**-20 * bound + 1e-30).all()

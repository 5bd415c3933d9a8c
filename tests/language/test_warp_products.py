"""Products of single warps in roles, from shared memory, and what is refused."""

import ml_dtypes
import numpy as np
import pytest

import warploom as wl
from tests.ops.mma import fragments
from warploom.base.errors import CompileError
from warploom.ir.ops.mma import sum_place
from warploom.testing.golden import Golden


@wl.kernel
def streamed(w: wl.Tensor, x: wl.Tensor, y: wl.Tensor, ROLES: wl.const, K: wl.const):
    """y = w · xᵀ for 16 rows a warp and 8 columns: column 4j + e of a step of 16 counts as k of the
    thread j, alike in w and x, so both are read as they lie in memory."""
    vectors = wl.shared((K // 16 * 32, 4), w.dtype, swizzle=0)
    ring = wl.pipe(stages=2, slots=[wl.shared((ROLES * 32, 8), w.dtype, swizzle=0)])
    vectors.store(wl.load(x[wl.ds(0, K // 16 * 32), :4]))
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, K, 16):
                with ring.put() as tile:
                    part = w[k // 16, wl.ds(0, ROLES * 256)]
                    wl.copy_bulk(part, tile.reshape((ROLES * 256,)))
        with wl.role("multiply", warps=1, replicas=ROLES) as r:
            acc = wl.zeros((32, 4), wl.f32)
            for k in wl.range(0, K, 16):
                b = vectors[wl.ds(k * 2, 32), :].load()
                with ring.get() as tile:
                    acc = wl.mma(tile[wl.ds(r * 32, 32), :].load(), b, acc)
            wl.store(y[r, wl.ds(0, 32), :4], acc)


def packed(w: np.ndarray) -> np.ndarray:
    """[N, K] as the kernel reads it: a step of 16 columns, a warp's 16 rows, a thread's 8."""
    rows, columns = w.shape
    # (warp, half, row, step, pair, side, low) to (step, warp, row, pair, side, half, low)
    parts = w.reshape(rows // 16, 2, 8, columns // 16, 4, 2, 2)
    return parts.transpose(3, 0, 2, 4, 5, 1, 6).reshape(columns // 16, -1)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("columns", [16, 32, 80])
def test_weights_stream_past_eight_vectors(device, dtype, columns: int) -> None:
    rng = np.random.default_rng(columns)
    w = rng.integers(-8, 9, (48, columns)).astype(dtype)
    x = rng.integers(-8, 9, (8, columns)).astype(dtype)
    # Step by step, vector by vector, sixteen columns.
    held = x.reshape(8, columns // 16, 16).transpose(1, 0, 2).reshape(-1, 4)
    y = device.empty((3, 32, 4), np.float32)
    streamed[1](device.put(packed(w)), device.put(held), y, ROLES=3, K=columns)
    sums = w.astype(np.float32) @ x.astype(np.float32).T
    found = device.get(y).reshape(96, 4)
    assert np.array_equal(found, fragments(sums.reshape(3, 1, 16, 8), sum_place, 4))


@pytest.mark.parametrize("column", range(8))
def test_a_column_does_not_depend_on_the_others(device, column: int) -> None:
    rng = np.random.default_rng(3)
    w = rng.standard_normal((16, 64)).astype(ml_dtypes.bfloat16)
    x = rng.standard_normal((8, 64)).astype(ml_dtypes.bfloat16)
    alone = np.full_like(x, np.nan)
    alone[column] = x[column]
    found = []
    for vectors in (x, alone):
        held = vectors.reshape(8, 4, 16).transpose(1, 0, 2).reshape(-1, 4)
        y = device.empty((1, 32, 4), np.float32)
        streamed[1](device.put(packed(w)), device.put(held), y, ROLES=1, K=64)
        lane, element = column // 2, column % 2
        kept = device.get(y)[0, lane::4]
        found.append(kept[:, [element, element + 2]])
    assert np.isfinite(found[0]).all()
    assert np.array_equal(*found)


@wl.kernel
def of_floats(x: wl.Tensor):
    t = wl.load(x[wl.ds(0, 128), :8])
    wl.store(x[wl.ds(0, 128), :4], wl.mma(t, t[:, 0:4], wl.zeros((128, 4), wl.f32)))


@wl.kernel
def sums_of_bf16(x: wl.Tensor):
    t = wl.load(x[wl.ds(0, 128), :8])
    wl.store(x[wl.ds(0, 128), :4], wl.mma(t, t[:, 0:4], wl.zeros((128, 4), wl.bf16)))


@wl.kernel
def wrong_rows(x: wl.Tensor):
    t = wl.load(x[wl.ds(0, 64), :8])
    wl.store(x[wl.ds(0, 64), :4], wl.mma(t, t[:, 0:4], wl.zeros((64, 4), wl.f32)))


@wl.kernel
def wrong_steps(x: wl.Tensor):
    t = wl.load(x[wl.ds(0, 256), :8])
    wl.store(x[wl.ds(0, 128), :4], wl.mma(t, t[0:128, 0:4], wl.zeros((128, 4), wl.f32)))


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        (of_floats, np.float32),
        (sums_of_bf16, ml_dtypes.bfloat16),
        (wrong_rows, ml_dtypes.bfloat16),
        (wrong_steps, ml_dtypes.bfloat16),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_refused(kernel, dtype, golden: Golden) -> None:
    with pytest.raises(CompileError) as refused:
        kernel[1](np.zeros((256, 8), dtype))
    golden(str(refused.value))

"""Products whose K axis is dealt to all blocks: every share, the fixed order, what they leave."""

import json
from dataclasses import replace

import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels import gemm
from warploom.kernels.activation.kernel import silu
from warploom.kernels.gemm import config, reference
from warploom.kernels.gemm.split import kernel as split_kernel

SMALL = config.Config(BM=64, BN=64, EN=32, STAGES=3, MATH=1, BK=16)


def integers(shape, dtype, seed=0):
    """Small whole numbers: every sum of products is exact in f32, in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def laid(device, array, turned):
    return device.put_strided(array.T.copy().T) if turned else device.put(array)


def run(device, a, b, chosen, layout="nn", dtype=np.float32, **more):
    out = device.empty((a.shape[0], b.shape[1]), dtype)
    left, right = laid(device, a, layout[0] == "t"), laid(device, b, layout[1] == "t")
    gemm.matmul(left, right, out, config=chosen, **more)
    return device.get(out)


@pytest.mark.parametrize("blocks", [1, 2, 3, 5, 8, 9, 27, 36, 100])
def test_shares(device, blocks):
    """Whole tiles, tiles of two and of many blocks, blocks with one step, too many blocks."""
    a, b = integers((130, 144), np.float16), integers((144, 72), np.float16, 1)
    made = run(device, a, b, replace(SMALL, SPLIT=blocks))
    assert np.array_equal(made, reference.matmul(a, b))


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("k", [8, 16, 24, 48, 64, 80, 136])
def test_trip_counts(device, stages, k):
    a, b = integers((64, k), np.float16), integers((k, 64), np.float16, 1)
    made = run(device, a, b, replace(SMALL, STAGES=stages, SPLIT=3))
    assert np.array_equal(made, reference.matmul(a, b))


@pytest.mark.parametrize("layout", ["nt", "nn", "tn", "tt"])
@pytest.mark.parametrize(("rows", "columns"), [(64, 128), (128, 64), (256, 64)])
def test_layouts(device, layout, rows, columns):
    chosen = replace(config.fitted(rows, columns, 1 if rows == 64 else 2, 2), SPLIT=5)
    a, b = integers((200, 264), np.float16), integers((264, 136), np.float16, 1)
    made = run(device, a, b, chosen, layout, np.float16)
    assert np.array_equal(made, reference.matmul(a, b).astype(np.float16))


@pytest.mark.parametrize("m", [2, 16, 33])
def test_swapped_operands(device, m):
    chosen = replace(config.fitted(128, 48, 2, 2), SWAP=True, SPLIT=7)
    a, b = integers((m, 520), np.float16), integers((520, 200), np.float16, 1)
    bias = integers(200, np.float32, 2)
    made = run(device, a, b, chosen, "nt", bias=device.put(bias))
    assert np.array_equal(made, reference.matmul(a, b, bias))


def test_epilogue_comes_once(device, randn, close):
    """Bias, activation and residual belong to the sums of all parts."""
    a, b, bias, residual = randn((70, 264), "bf16"), randn((264, 136), "bf16"), randn(136), None
    residual = randn((70, 136))
    made = run(
        *(device, a, b, replace(SMALL, SPLIT=11)),
        **{"bias": device.put(bias), "residual": device.put(residual)},
        **{"activation": silu, "alpha": 0.5, "beta": -1.0},
    )
    sums = 0.5 * reference.matmul(a, b) + bias
    bound = 2.0**-20 * (reference.error_scale(a, b) + 8)
    close(made, sums / (1 + np.exp(-sums)) - residual, bound)


def test_bits_stay_the_same_and_counters_return_to_zero(device, randn):
    """Whoever comes last adds in the order of k."""
    a, b = randn((130, 1040), "bf16"), randn((1040, 72), "bf16")
    left, right = device.put(a), device.put(b)
    parts = device.put(np.full((26, 64, 64), np.nan, np.float32))
    counts = device.put(np.zeros(6, np.int32))
    tiles = {"BM": 64, "BN": 64, "BK": 16, "EN": 32, "STAGES": 3, "MATH": 1}
    first = None
    for _ in range(20):
        out = device.empty((130, 72), np.float32)
        split_kernel.split_gemm[13](left, right, out, None, None, parts, counts, **tiles)
        bits = device.get(out).tobytes()
        first = first or bits
        assert bits == first and not device.get(counts).any()


def test_the_sums_of_parts_are_as_exact(device, randn, close):
    a, b = randn((64, 2056), "bf16"), randn((2056, 64), "bf16")
    made = run(device, a, b, replace(SMALL, SPLIT=16))
    bound = (4 + np.sqrt(2056)) * 2.0**-24 * reference.error_scale(a, b)
    close(made, reference.matmul(a, b), bound)


@pytest.mark.parametrize("k", [0, 8])
def test_nothing_to_share(device, k):
    a, b = np.zeros((65, k), np.float16), np.zeros((k, 72), np.float16)
    assert np.array_equal(run(device, a, b, replace(SMALL, SPLIT=4)), np.zeros((65, 72)))


def test_a_batch_keeps_whole_tiles(device):
    a, b = integers((3, 70, 48), np.float16), integers((48, 72), np.float16, 1)
    out = device.empty((3, 70, 72), np.float32)
    gemm.matmul(device.put(a), device.put(b), out, config=replace(SMALL, SPLIT=4))
    assert np.array_equal(device.get(out), (a.astype(np.float64) @ b).astype(np.float32))


def test_it_does_not_go_with_ping_pong():
    a, b = np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float16)
    both = replace(SMALL, SPLIT=4, PINGPONG=True)
    with pytest.raises(ShapeError, match="SPLIT besides PINGPONG"):
        gemm.matmul(a, b, config=both)


def test_rows_that_must_not_depend_on_the_others_are_not_shared(tmp_path, monkeypatch):
    shape = config.Shape(512, 512, 512, False, True, 2, 132)
    row = {"key": shape.key(), "config": replace(SMALL, SPLIT=132).row()}
    (tmp_path / "this.json").write_text(json.dumps({"sms": 132, "rows": [row]}))
    monkeypatch.setattr(config, "_TABLES", tmp_path)
    config.choose.cache_clear()
    config.measured.cache_clear()
    assert config.choose(shape).SPLIT == 132
    assert config.choose(shape, batch_invariant=True).SPLIT == 0
    config.choose.cache_clear()
    config.measured.cache_clear()


def test_candidates_fit():
    for m, n, k in ((16, 14336, 4096), (1152, 2304, 16384), (512, 512, 512)):
        shape = config.Shape(m, n, k, False, True, 2, 132)
        found = list(config.shared_out(shape, 4))
        assert len(found) == 4 and not any(c.PINGPONG for c in found)
        for chosen in found:
            # Pieces of one size, and no more of them than fill the machine.
            pieces, rest = divmod(chosen.shares(shape), chosen.tiles(m, n))
            assert pieces > 1 and rest == 0 and chosen.tiles(m, n) * (pieces - 1) < 132

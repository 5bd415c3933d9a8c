"""A warp-specialised matrix product on the simulator against NumPy in float64."""

import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from warploom.kernels.gemm.kernel import gemm

BF16, F16 = ml_dtypes.bfloat16, np.float16


def run(m: int, n: int, k: int, *, blocks: int = 1, seeds: int = 0, **options: Any) -> None:
    """One product of random operands, checked on `seeds` seeds without a finding."""
    dtype = options.pop("dtype", BF16)
    a_t, b_t = options.get("A_T", False), options.setdefault("B_T", True)
    rng = np.random.default_rng(m + n + k)
    a = rng.standard_normal((k, m) if a_t else (m, k)).astype(dtype)
    b = rng.standard_normal((n, k) if b_t else (k, n)).astype(dtype)
    a, b = a.T if a_t else a, b.T if b_t else b
    c = np.full((m, n), 7, np.float32)
    launcher = gemm.launch(blocks)
    if seeds:
        found = launcher.check(a, b, c, seeds=seeds, **options)
        assert not found.found, [f.report.render() for f in found.found]
    else:
        launcher(a, b, c, **options)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c - expected).max(initial=0) < 1e-5 * (k + 16)


def steps_of(stages: int) -> list[int]:
    return sorted({0, 1, stages - 1, stages, stages + 1})


RINGS = [(stages, steps) for stages in range(1, 9) for steps in steps_of(stages)]


@pytest.mark.parametrize(("stages", "steps"), RINGS)
def test_every_number_of_steps_in_every_ring(stages: int, steps: int):
    options = {"BM": 64, "BN": 64, "EN": 32, "MATH": 1, "B_T": False}
    run(64, 64, 64 * steps, STAGES=stages, **options)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_any_schedule_gives_the_same_without_findings(stages: int):
    run(200, 136, 328, blocks=2, seeds=6, BM=128, BN=64, EN=64, STAGES=stages, MATH=2)


@pytest.mark.parametrize("shape", [(1, 8, 8), (65, 72, 72), (130, 200, 200), (300, 136, 520)])
def test_ragged_shapes(shape: tuple[int, int, int]):
    run(*shape, blocks=3, BM=128, BN=64, EN=32, STAGES=3, MATH=2)


@pytest.mark.parametrize("a_t", [False, True])
@pytest.mark.parametrize("b_t", [False, True])
@pytest.mark.parametrize("dtype", [BF16, F16])
def test_operands_in_every_order(a_t: bool, b_t: bool, dtype: Any):
    options = {"A_T": a_t, "B_T": b_t, "dtype": dtype}
    run(136, 128, 200, seeds=1, BM=128, BN=128, EN=64, STAGES=2, MATH=2, **options)


def test_a_block_is_simulated_in_half_a_second():
    a, b = np.zeros((128, 1024), BF16), np.zeros((128, 1024), BF16)
    launch = gemm.launch(1).bound(a, b.T, np.zeros((128, 128), BF16), B_T=True, BM=128, BN=128)
    launch()
    begin = time.process_time()
    launch()
    assert time.process_time() - begin < 0.5

"""Which tiles a sweep of matrix products times; the timing itself needs a GPU."""

from warploom.bench import sweep_gemm
from warploom.bench.suites import gemm
from warploom.kernels.gemm.config import Shape


def test_the_best_estimates_come_in_groups_of_several_heights() -> None:
    found = list(sweep_gemm.candidates(Shape(4096, 4096, 4096, False, True, 2, 132), 4))
    alternate = [c for c in found if c.PINGPONG]
    assert len(found) - len(alternate) == len(set(found) - {*alternate})
    assert len(found) - len(alternate) == 2 * len(sweep_gemm.GROUPS) + 2
    assert len(alternate) == len(set(alternate)) >= 6
    assert {c.GROUP for c in found[:3]} == set(sweep_gemm.GROUPS)


def test_one_row_of_tiles_has_one_group() -> None:
    found = list(sweep_gemm.candidates(Shape(16, 4096, 4096, False, True, 2, 132), 4))
    assert [c.SWAP for c in found] == [True] * 3 + [False] * 4


def test_cases_are_read_as_they_are_written() -> None:
    assert gemm.split("bf16/nt/8192x28672x4096") == ("bf16", "nt", (8192, 28672, 4096))
    assert len(set(gemm.cases("gpu"))) == 27

"""Which tiles a sweep of matrix products times; the timing itself needs a GPU."""

from dataclasses import replace

from warploom.bench import sweep_gemm
from warploom.bench.suites import gemm
from warploom.kernels.gemm.config import Config, Shape


def found(m: int) -> list[Config]:
    tiles = list(sweep_gemm.candidates(Shape(m, 4096, 4096, False, True, 2, 132), 4))
    assert len(tiles) == len(set(tiles))
    return tiles


def test_the_best_estimates_come_in_groups_of_several_heights_and_in_clusters() -> None:
    tiles = found(4096)
    groups, clusters = len(sweep_gemm.GROUPS), 1 + len(sweep_gemm.CLUSTERS)
    assert len(tiles) == 2 * groups * clusters + 2 + 1
    assert {c.GROUP for c in tiles[:-1]} == set(sweep_gemm.GROUPS)
    assert tiles[-1].MATH == 3


def test_one_row_of_tiles_has_one_group() -> None:
    assert [c.SWAP for c in found(16)] == [True] * 3 + [False] * 4


def test_what_lost_so_far_takes_part_when_asked_for() -> None:
    shape = Shape(512, 512, 8192, False, True, 2, 132)
    usual = set(sweep_gemm.candidates(shape, 4))
    more = [c for c in sweep_gemm.candidates(shape, 4, every=True) if c not in usual]
    assert [c.PINGPONG for c in more] == [True, True, False, False]
    assert [c.SPLIT > 0 for c in more] == [False, False, True, True]


def test_replicas_that_share_a_tile_are_timed_in_turn_too() -> None:
    one, two = Config(64, 64, 64, 4, 1), Config(128, 128, 64, 4, 2)
    found = list(sweep_gemm.variants([one, two, replace(two, PINGPONG=True)]))
    assert [c.STAGGER for c in found] == [False] * 2 + [False, True] * 2 + [False] * 2
    assert sum(c.PDL for c in found) == 4


def test_cases_are_read_as_they_are_written() -> None:
    assert gemm.split("bf16/nt/8192x28672x4096") == ("bf16", "nt", (8192, 28672, 4096))
    assert len(set(gemm.cases("gpu"))) >= 27

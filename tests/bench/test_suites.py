"""What suites offer without measuring: names of rows, and the kernel that measures reading."""

import numpy as np
import pytest

from warploom.bench import suites
from warploom.bench.kernel import read_all


@pytest.mark.parametrize("name", suites.NAMES)
def test_a_suite_names_its_rows_and_where_it_runs(name: str) -> None:
    suite = suites.load(name)
    cases = suite.cases(suite.DEVICE)
    assert cases
    assert len(set(cases)) == len(cases)
    assert suite.DEVICE in ("sim", "gpu")
    assert suite.LIMIT_S > 0


@pytest.mark.parametrize("count", [1, 100, 1024, 5000])
def test_the_read_kernel_reads_everything_once(count: int) -> None:
    x = np.arange(count, dtype=np.float32) % 7
    sums = np.full(4, np.nan, np.float32)
    read_all[4](x, sums, TILE=256)
    assert sums.sum() == x.sum()


def test_the_read_kernels_example_is_clean() -> None:
    assert read_all.example_call().check().clean

"""Random kernels: lowered with all checks, simulated, equal to the tile IR bit for bit."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz import reference
from tests.fuzz.generator import Case, case_of, cases
from tests.ir.kernels import lowered
from warploom.ir.printer import print_kernel
from warploom.sim.program import TensorArg, prepare


def bits(array: np.ndarray) -> np.ndarray:
    """The array's bits; all NaNs alike."""
    plain = np.ascontiguousarray(array)
    if plain.dtype.kind not in "iub":
        plain = np.where(np.isnan(plain), np.nan, plain).astype(plain.dtype)
    return plain.view(f"u{plain.dtype.itemsize}")


def check(case: Case) -> None:
    text = print_kernel(case.kernel)
    expected, found = case.copies(), case.copies()
    reference.run(case.kernel, case.grid, expected)
    kernel = lowered(case.kernel)
    arguments = [TensorArg(a) if isinstance(a, np.ndarray) else a for a in found]
    result = prepare(kernel).run(case.grid, arguments)
    assert result.findings == []
    for param, want, have in zip(kernel.params, expected, found, strict=True):
        if isinstance(want, np.ndarray):
            np.testing.assert_array_equal(bits(have), bits(want), f"{param.name}\n{text}")


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(cases())
def test_lowered_kernels_compute_what_the_tile_ir_says(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("seed", range(40))
def test_kernels_of_these_numbers(seed: int) -> None:
    check(case_of(seed))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_many_more(first: int) -> None:
    for seed in range(first, first + 100):
        check(case_of(seed))

"""Random kernels: lowered with all checks, simulated, equal to the tile IR bit for bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.strategies import cases
from tests.ir.kernels import lowered
from warploom.ir.printer import print_kernel
from warploom.sim.program import TensorArg, prepare
from warploom.testing.fuzz import machine_gpu as gpu
from warploom.testing.fuzz import tile_reference as reference
from warploom.testing.fuzz.tile_case import Case
from warploom.testing.fuzz.tile_generator import case_of
from warploom.testing.fuzz.tiles import bits


def check(case: Case, *, checked: bool = False) -> None:
    """Lower, simulate, compare. `checked`: the simulator also looks for unwritten elements."""
    text = print_kernel(case.kernel)
    expected, found = case.copies(), case.copies()
    reference.run(case.kernel, case.grid, expected)
    kernel = lowered(case.kernel)
    arguments = [TensorArg(a) if isinstance(a, np.ndarray) else a for a in found]
    result = prepare(kernel).run(case.grid, arguments, checked=checked)
    assert result.findings == []
    compare(case, expected, found, text)


def compare(case: Case, expected: list[Any], found: list[Any], text: str) -> None:
    """Every tensor has the same bits."""
    for param, want, have in zip(case.kernel.params, expected, found, strict=True):
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


@pytest.mark.parametrize("seed", range(40, 60))
def test_the_checked_simulator_finds_nothing(seed: int) -> None:
    """Pads and replicas are no one's data: nothing unwritten reaches an address or an output."""
    check(case_of(seed), checked=True)


@pytest.mark.parametrize("seed", range(60, 64))
def test_the_compiler_takes_them(seed: int) -> None:
    assert gpu.cubin_of(lowered(case_of(seed).kernel))


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(0, 200, 10))
def test_the_gpu_computes_the_same(first: int) -> None:
    for seed in range(first, first + 10):
        case = case_of(seed)
        text = print_kernel(case.kernel)
        expected, found = case.copies(), case.copies()
        reference.run(case.kernel, case.grid, expected)
        gpu.run(lowered(case.kernel), case.grid, found)
        compare(case, expected, found, f"seed {seed}\n{text}")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_many_more(first: int) -> None:
    for seed in range(first, first + 100):
        check(case_of(seed))

"""How finely checked mode tells memory apart, and cells of accesses in a row."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warploom as wl
from tests.sim.programs import lowered
from warploom.kernels.gemm.kernel import gemm
from warploom.sim.arguments import TensorArg
from warploom.sim.boxes import CHUNK, places_of, reach_of
from warploom.sim.cells import in_a_row, moved
from warploom.sim.granularity import tensor_cell, whole
from warploom.sim.translate import Translator

BF16 = ml_dtypes.bfloat16


def shared_cell_of(call) -> int:
    t = Translator(lowered(call), checked=True)
    t.steps(t.kernel.body)
    return t.shared_cell


def product(m: int, n: int, k: int, **options):
    a, b, c = np.zeros((m, k), BF16), np.zeros((k, n), BF16), np.zeros((m, n), BF16)
    return gemm.launch(1).call(a, b, c, BM=64, BN=64, MATH=1, STAGES=2, **options)


def test_a_product_moves_whole_chunks():
    call = product(64, 64, 64)
    kernel = lowered(call)
    assert shared_cell_of(call) == CHUNK
    assert [tensor_cell(kernel, p) for p in kernel.params] == [CHUNK] * 3


@wl.kernel
def elements(x: wl.Tensor, y: wl.Tensor):
    """One buffer that one role fills and another reads, an element a lane."""
    held, full = wl.shared((32,), wl.f32), wl.barrier(1, arrivals=32)
    with wl.roles():
        with wl.role("first", warps=1):
            held.store(wl.load(x[0:32]))
            full[0].arrive()
        with wl.role("second", warps=1):
            full[0].wait(0)
            wl.store(y[0:32], held.load())


def test_single_elements_make_single_cells():
    x, y = np.zeros(33, np.float32), np.zeros(33, np.float32)
    assert shared_cell_of(elements.launch(1).call(x, y)) == 4


@pytest.mark.parametrize(
    ("array", "cell"),
    [
        (np.zeros((8, 64), BF16), 16),
        (np.zeros((8, 60), BF16), 8),
        (np.zeros((8, 64), BF16)[:, :63], 2),
        (np.zeros((8, 64), BF16)[::-1, :32], 16),
        (np.zeros((8, 1), BF16), 16),
        (np.zeros((7, 1), BF16), 2),
        (np.zeros((1, 64), np.float32), 16),
        (np.broadcast_to(np.zeros(64, BF16), (8, 64)), 16),
    ],
)
def test_rows_of_a_tensor_are_whole_cells(array: np.ndarray, cell: int):
    assert whole(16, TensorArg(array).memory) == cell


@given(st.lists(st.integers(0, 40), min_size=1, max_size=20), st.integers(-5, 60))
def test_cells_in_a_row_are_a_slice_of_the_same_cells(numbers: list[int], by: int):
    cells = np.array(numbers)
    found = moved(in_a_row(cells), by)
    if isinstance(found, slice):
        assert sorted(n + by for n in numbers) == list(range(found.start, found.stop))
    else:
        assert (found == cells + by).all()
        assert len(set(numbers)) < len(numbers) or max(numbers) - min(numbers) >= len(numbers)


@pytest.mark.parametrize("span", [0, 32, 64, 128])
@pytest.mark.parametrize("count", [1, 4, 8, 24, 64, 128])
@pytest.mark.parametrize("address", [0, 128, 1024, 2176])
def test_a_box_reaches_the_chunks_that_it_fills(address: int, count: int, span: int):
    places, reach = (f(address, count * CHUNK, span) for f in (places_of, reach_of))
    every = np.arange(1024)
    assert sorted(every[places]) == sorted(every[reach])

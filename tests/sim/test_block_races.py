"""Two blocks at one element in kernels whose blocks nothing orders: against all pairs of accesses,
and no false alarm where blocks only touch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warploom as wl
from tests.sim.programs import lowered
from warploom.base.dtypes import BY_NAME
from warploom.ir.kernel import walk
from warploom.ir.ops.global_memory import Store
from warploom.sim.block_races import Owners
from warploom.sim.order.history import Does
from warploom.sim.program import prepare
from warploom.sim.translate import Translator

ACCESS = st.tuples(
    st.sampled_from(list(Does)),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=6),
)


Made = tuple[Does, int, int]


def conflicts(before: list[Made], now: list[Made]) -> set[int]:
    """Cells at which an access of `now` conflicts with one before it or with it."""
    found = set()
    for number, (does, cell, block) in enumerate(now):
        for did, its_cell, its_block in [*before, *now[:number]]:
            both = does is did and does is not Does.WRITE
            if cell == its_cell and block != its_block and not both:
                found.add(cell)
    return found


@given(st.lists(ACCESS, max_size=8))
def test_conflicts_are_those_of_all_pairs(accesses: list[tuple[Does, list[tuple[int, int]]]]):
    """Until the first one: what comes after a race is not looked at as closely."""
    owners, before = Owners(6), []
    op = next(op for op in walk(lowered(copied_call(1, 8, 8)).body) if isinstance(op, Store))
    for does, pairs in accesses:
        now = [(does, cell, block) for cell, block in pairs]
        wanted = conflicts(before, now)
        cells, blocks = (np.array(numbers) for numbers in zip(*pairs, strict=True))
        found = owners.touch(cells, blocks, op, does)
        assert (found is not None) == bool(wanted)
        if found is not None:
            assert found.cell in wanted
            assert found.block != found.its_block
            seen = [(found.did, found.cell, found.its_block), (does, found.cell, found.block)]
            assert all(access in [*before, *now] for access in seen)
            return
        before += now


@wl.kernel
def copied(x: wl.Tensor, y: wl.Tensor, step: wl.i32, SIZE: wl.const):
    at = wl.program_id(0) * step
    wl.store(y[wl.ds(at, SIZE)], wl.load(x[wl.ds(at, SIZE)]))


def copied_call(blocks: int, size: int, step: int, dtype: str = "f32", n: int = 200):
    x, y = (np.zeros(n, BY_NAME[dtype].numpy) for _ in range(2))
    return copied.launch(blocks).call(x, y, step, SIZE=size)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "u8"])
@pytest.mark.parametrize("size", [1, 2, 3, 8, 24, 33, 64])
@pytest.mark.parametrize("n", [60, 200, 203])
def test_neighbours_do_not_race(size: int, dtype: str, n: int):
    assert copied_call(5, size, size, dtype, n).check(seeds=2).clean


@pytest.mark.parametrize("dtype", ["f32", "bf16", "u8"])
@pytest.mark.parametrize("size", [2, 3, 8, 24, 33, 64])
def test_windows_that_overlap_by_one_element_race(size: int, dtype: str):
    found = copied_call(3, size, size - 1, dtype).check()
    assert [f.report.code for f in found] == ["R102"]
    notes = found.found[0].report.notes
    assert any(note.startswith(f"byte {(size - 1) * BY_NAME[dtype].bytes} ") for note in notes)


@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_bytes_count_from_the_first_one(first: int):
    """Cells are aligned as accesses are, whatever the array's own start."""
    held = np.zeros(64, np.float32)
    x, y = np.zeros(32, np.float32), held[first : first + 32]
    found = copied.launch(2).check(x, y, 0, SIZE=32)
    assert [f.report.code for f in found] == ["R102"]
    assert found.found[0].report.notes[0] == "byte 0 of `y`"


def test_one_block_may_write_an_element_twice():
    assert copied_call(1, 33, 0).check().clean
    assert [f.report.code for f in copied_call(2, 33, 0).check()] == ["R102"]


def test_what_is_only_read_is_not_looked_at():
    x, y = np.zeros(64, np.float32), np.zeros(256, np.float32)
    assert gathered.launch(4).check(x, y).clean


@wl.kernel
def gathered(x: wl.Tensor, y: wl.Tensor):
    wl.store(y[wl.ds(wl.program_id(0) * 64, 64)], wl.load(x[0:64]))


def test_batches_of_blocks_know_of_each_other():
    """Blocks far apart run in batches of their own."""
    n = 2048
    x, y = np.zeros(n * 64, np.float32), np.zeros(64 * n, np.float32)
    assert copied.launch(n).check(x, y, 64, SIZE=64).clean
    assert not wrapped.launch(n).check(x, y, n - 1, SIZE=64).clean


@wl.kernel
def wrapped(x: wl.Tensor, y: wl.Tensor, last: wl.i32, SIZE: wl.const):
    i = wl.program_id(0)
    at = (0 if i == last else i) * SIZE
    wl.store(y[wl.ds(at, SIZE)], wl.load(x[wl.ds(at, SIZE)]))


def test_the_blocks_of_a_kernel_with_ordered_atomics_have_an_engine():
    kernel = lowered(counted.launch(2).call(np.zeros(2, np.int32), np.zeros(1, np.int32)))
    assert Translator(kernel, checked=True).waits
    assert not Translator(kernel, checked=False).waits
    args = (np.zeros(2, np.int32), np.zeros(1, np.int32))
    assert prepare(kernel).run((2,), args, checked=True).findings == []
    assert list(args[1]) == [2]


@wl.kernel
def counted(x: wl.Tensor, count: wl.Tensor):
    i = wl.program_id(0)
    wl.store(x[wl.ds(i, 1)], wl.full((1,), 1, wl.i32))
    if wl.atomic_add(count[0], 1, order="acq_rel") == 1:
        wl.store(x[0:2], wl.load(x[0:2]) + 1)

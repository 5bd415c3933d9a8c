"""Loops and branches whose bounds and conditions differ among the blocks of a batch."""

import numpy as np
import pytest

import warploom as wl
from tests.sim.programs import program_of

N = 40


@pytest.fixture(params=[True, False], ids=["assigned", "yields"])
def run(request):
    """Run a call's kernel on its arrays, blocks in one batch."""

    def run_call(call, grid, *args):
        return program_of(call, storages=request.param).run((grid,), args)

    return run_call


def data(rows=9):
    return np.random.default_rng(1).integers(-8, 8, (rows, N)).astype(np.float32)


@wl.kernel
def triangle(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    i = wl.program_id(0)
    acc = wl.zeros((SIZE,), wl.f32)
    for k in wl.range(0, i + 1):
        acc = acc + wl.load(x[k, wl.ds(0, SIZE)])
    wl.store(y[i, wl.ds(0, SIZE)], acc)


def test_loops_of_different_length(run):
    x, y = data(), np.zeros((9, N), np.float32)
    run(triangle.launch(9).call(x, y, SIZE=N), 9, x, y)
    assert np.array_equal(y, np.cumsum(x, 0, dtype=np.float32))


@wl.kernel
def zero_trips(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    i = wl.program_id(0)
    acc = wl.full((SIZE,), 0.5, wl.f32)
    for k in wl.range(i % 3, 0, -1):
        acc = acc + wl.load(x[k, wl.ds(0, SIZE)])
    wl.store(y[i, wl.ds(0, SIZE)], acc)


def test_some_blocks_make_no_trip_and_loops_count_down(run):
    x, y = data(), np.zeros((9, N), np.float32)
    run(zero_trips.launch(9).call(x, y, SIZE=N), 9, x, y)
    expected = [0.5 + sum((x[k] for k in range(i % 3, 0, -1)), np.zeros(N)) for i in range(9)]
    assert np.array_equal(y, np.array(expected, np.float32))


@wl.kernel
def branches(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    i = wl.program_id(0)
    row = wl.load(x[i, wl.ds(0, SIZE)])
    count = i * 10
    if i % 3 == 0:
        row = row * 2.0
        if i > 3:
            row = row + 100.0
            count = count + 1
    else:
        row = row - wl.sum(row, 0)
        count = count - 1
    wl.store(y[i, wl.ds(0, SIZE)], row + count.cast(wl.f32))


def test_branches_split_and_merge(run):
    x, y = data(), np.zeros((9, N), np.float32)
    run(branches.launch(9).call(x, y, SIZE=N), 9, x, y)
    for i in range(9):
        if i % 3 == 0:
            row, count = x[i] * 2 + (100 if i > 3 else 0), i * 10 + (i > 3)
        else:
            row, count = x[i] - x[i].sum(), i * 10 - 1
        assert np.array_equal(y[i], row + count), i


@wl.kernel
def branch_in_loop(lengths: wl.Tensor, x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    i = wl.program_id(0)
    acc = wl.zeros((SIZE,), wl.f32)
    last = wl.zeros((SIZE,), wl.f32)
    for k in wl.range(0, wl.load(lengths[i])):
        row = wl.load(x[k, wl.ds(0, SIZE)])
        if (k + i) % 2 == 0:
            acc = acc + row
        else:
            acc = acc - row
        acc, last = last, acc
    wl.store(y[i, wl.ds(0, SIZE)], acc)
    wl.store(y[i, wl.ds(SIZE, SIZE)], last)


def test_branches_inside_loops_and_swapped_values(run):
    x, lengths = data(), np.array([3, 0, 9, 5, 3, 1, 2, 9], np.int32)
    y = np.zeros((8, 2 * N), np.float32)
    run(branch_in_loop.launch(8).call(lengths, x, y, SIZE=N), 8, lengths, x, y)
    for i, length in enumerate(lengths):
        acc, last = np.zeros(N, np.float32), np.zeros(N, np.float32)
        for k in range(length):
            acc = acc + x[k] if (k + i) % 2 == 0 else acc - x[k]
            acc, last = last, acc
        assert np.array_equal(y[i], np.concatenate([acc, last])), i


@wl.kernel
def shared_in_branch(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    i = wl.program_id(0)
    t = wl.load(x[i, wl.ds(0, SIZE)])
    total = wl.sum(t, 0)
    if i % 2 == 1:
        total = wl.max(t, 0) + total
    wl.store(y[wl.ds(i, 1)], total[None])


def test_shared_memory_in_a_part_of_the_batch(run):
    """A row over several warps reduces through shared memory, in the odd blocks a second time."""
    x = np.random.default_rng(2).integers(-9, 9, (7, 2000)).astype(np.float32)
    y = np.zeros(7, np.float32)
    call = shared_in_branch.launch(7).call(x, y, SIZE=2000)
    assert "shared_memory" in call.text("machine")
    run(call, 7, x, y)
    odd = np.arange(7) % 2 == 1
    assert np.array_equal(y, x.sum(1) + np.where(odd, x.max(1), 0))


@wl.kernel
def same_in_all(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    n = wl.load(x[0])
    acc = wl.zeros((SIZE,), wl.i32)
    for k in wl.range(0, n):
        acc = acc + k
    if n > 3:
        acc = -acc
    wl.store(y[wl.program_id(0), wl.ds(0, SIZE)], acc)


def test_loaded_bounds_that_agree_do_not_split(run):
    x, y = np.array([5], np.int32), np.zeros((4, 8), np.int32)
    run(same_in_all.launch(4).call(x, y, SIZE=8), 4, x, y)
    assert (y == -10).all()


@wl.kernel
def accumulate(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const, STEPS: wl.const):
    i = wl.program_id(0)
    acc = wl.zeros((SIZE,), wl.f32)
    kept = acc
    for k in wl.range(0, STEPS):
        kept = acc
        acc = acc + wl.load(x[i, wl.ds(k * SIZE, SIZE)])
    wl.store(y[i, wl.ds(0, SIZE)], acc - kept)


def test_a_value_that_is_kept_is_not_written_over(run):
    """Accumulators are updated in place, but not where an older value is still wanted."""
    x = np.random.default_rng(5).standard_normal((6, 4096)).astype(np.float32)
    y = np.zeros((6, 1024), np.float32)
    run(accumulate.launch(6).call(x, y, SIZE=1024, STEPS=4), 6, x, y)
    parts = x.reshape(6, 4, 1024)
    before = parts[:, 0] + parts[:, 1] + parts[:, 2]
    assert np.array_equal(y, (before + parts[:, 3]) - before)


@wl.kernel
def halved(x: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    """As often as the block's own number can be halved; block 0 makes no trip."""
    i = wl.program_id(0)
    acc, left = wl.load(x[i, wl.ds(0, SIZE)]), i
    while left > 0:
        acc = acc + wl.load(x[left, wl.ds(0, SIZE)])
        left = left // 2
    wl.store(y[i, wl.ds(0, SIZE)], acc)


def test_whiles_of_different_length(run):
    x, y = data(), np.zeros((9, N), np.float32)
    run(halved.launch(9).call(x, y, SIZE=N), 9, x, y)
    for i in range(9):
        expected, left = x[i].copy(), i
        while left > 0:
            expected, left = expected + x[left], left // 2
        assert np.array_equal(y[i], expected), i


@wl.kernel
def unwritten(x: wl.Tensor, y: wl.Tensor):
    at = 0
    while wl.load(x[at]) > 0.0:
        at = at + 1
    wl.store(y[0], at.cast(wl.f32))


def test_an_unwritten_condition_is_found_at_the_trip_that_reads_it():
    x = wl.Make().empty((4,), wl.f32)
    x[:2] = 1.0
    found = unwritten.launch(1).call(x, np.zeros(1, np.float32)).check()
    assert [f.code for f in found] == ["M002"]
    assert "decides this loop" in found.text()


# ---- loops that do not end ---------------------------------------------------------------------


@wl.kernel
def halves(x: wl.Tensor, y: wl.Tensor, BY: wl.const = 2):
    """y = how often x of the block can be divided by BY, for ever where that changes nothing."""
    i = wl.program_id(0)
    left, count = wl.load(x[i]), wl.i32(0)
    while left > 0:
        left, count = left // BY, count + 1
    wl.store(y[i], count)


def numbers() -> tuple[np.ndarray, np.ndarray]:
    return np.array([0, 1, 1000], np.int32), np.full(3, -1, np.int32)


def test_a_loop_that_ends(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("warploom.sim.machine._MOST_TRIPS", 10)
    x, y = numbers()
    halves[3](x, y)
    assert y.tolist() == [0, 1, 10]


def test_a_loop_that_does_not_end(golden, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("warploom.sim.machine._MOST_TRIPS", 1000)
    x, y = numbers()
    with pytest.raises(wl.CheckError) as caught:
        halves[3](x, y, BY=1)
    assert caught.value.code == "D002"
    golden(str(caught.value))


@wl.kernel
def strides(steps: wl.Tensor, y: wl.Tensor, n: wl.i32):
    """y = the turns of a loop from 0 to n by the step of the block."""
    by = wl.load(steps[wl.program_id(0)])
    turns = wl.i32(0)
    for _ in wl.range(0, n, by):
        turns = turns + 1
    wl.store(y[wl.program_id(0)], turns)


@wl.kernel
def strides_of_roles(steps: wl.Tensor, y: wl.Tensor, n: wl.i32):
    """The same where the body of the loop waits."""
    by = wl.load(steps[wl.program_id(0)])
    ring = wl.channel((8,), wl.i32)
    with wl.roles():
        with wl.role("send", warps=1):
            for i in wl.range(0, n, by):
                ring.send(wl.full((8,), i, wl.i32))
        with wl.role("take", warps=1):
            turns = wl.i32(0)
            for _ in wl.range(0, n, by):
                ring.receive()
                turns = turns + 1
            wl.store(y[wl.program_id(0)], turns)


STRIDES = pytest.mark.parametrize("kernel", [strides, strides_of_roles], ids=lambda k: k.name)


@STRIDES
def test_steps_of_both_signs_known_at_run_time(device, kernel: wl.Kernel):
    y = device.empty(4, np.int32)
    kernel[4](device.put(np.array([1, 3, 20, -1], np.int32)), y, 10)
    assert device.get(y).tolist() == [10, 4, 1, 0]


@STRIDES
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("steps", [[0, 0], [1, 0]])
def test_a_step_of_zero(kernel: wl.Kernel, checked: bool, steps: list[int], golden):
    call = kernel.launch(2).call(np.array(steps, np.int32), np.zeros(2, np.int32), 10)
    if checked:
        found = [f.report for f in call.check(seeds=1)]
    else:
        with pytest.raises(wl.CheckError) as caught:
            call.run()
        found = list(caught.value.reports)
    assert {r.code for r in found} == {"D002"}
    text = found[0].render()
    assert "its step is 0" in text
    assert not steps[0] or "block (1, 0, 0)" in text
    if kernel is strides and not checked:
        golden(text)


@wl.kernel
def never(y: wl.Tensor):
    """A role that asks for ever whether a barrier is ready which nobody completes."""
    done = wl.barrier(1, arrivals=1)
    with wl.roles():
        with wl.role("ask", warps=1):
            n = wl.i32(0)
            while not done.test(0):
                n = n + 1
            wl.store(y[0], n)
        with wl.role("rest", warps=1):
            pass


def test_a_role_that_asks_for_ever(golden, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("warploom.sim.machine._MOST_CHECKED_TRIPS", 100)
    for seed in range(3):
        found = list(never.launch(1).call(np.zeros(1, np.int32)).check(first_seed=seed))
        assert [f.code for f in found] == ["D002"]
    golden(found[0].report.render())

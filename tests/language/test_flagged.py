"""Flagged data: exchanges of several rounds, from block to block and all to all, and what is
refused or reported. The operations one by one: tests/ops/flagged.py."""

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CheckError, CompileError, LaunchError
from warploom.testing.golden import Golden

N = 96


@wl.kernel
def sums(x: wl.Tensor, mail: wl.Tensor, first: wl.i32, ROUNDS: wl.const, BLOCKS: wl.const):
    """x[b] += Σ x of all blocks, round and round: the data itself says that it is there. Whoever
    sends a round has received the one before, with all of its warps: two buffers are enough."""
    here = wl.program_id(0)
    box = wl.flagged(mail, wl.i32)
    part = wl.load(x[here, wl.ds(0, N)])
    for i in wl.range(0, ROUNDS):
        box[i % 2, here, wl.ds(0, N)].send(part, first + i)
        parts = box[i % 2, wl.ds(0, BLOCKS), wl.ds(0, N)].receive(first + i)
        part = part + wl.sum(wl.sum(parts, axis=1), axis=0)
    wl.store(x[here, wl.ds(0, N)], part)


def summed(host: np.ndarray, times: int) -> np.ndarray:
    for _ in range(times):
        host = host + host.sum(dtype=np.int32)
    return host


def launched(device, blocks: int, first: int, times: int) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel makes of some numbers, and what it should."""
    host = np.random.default_rng(blocks).integers(-9, 9, (blocks, N)).astype(np.int32)
    x, mail = device.put(host), device.put(np.full((2, blocks, N), 2**40, np.int64))
    sums.launch(blocks, cooperative=True)(x, mail, first, ROUNDS=times, BLOCKS=blocks)
    return device.get(x), summed(host, times)


@pytest.mark.parametrize("blocks", [1, 2, 5, 16])
@pytest.mark.parametrize("times", [0, 1, 2, 5])
def test_rounds(device, blocks: int, times: int) -> None:
    got, wanted = launched(device, blocks, 1, times)
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("first", [2**31 - 3, -3])
def test_epochs_wrap(device, first: int) -> None:
    got, wanted = launched(device, 3, first, 5)
    assert np.array_equal(got, wanted)


@wl.kernel
def triples(x: wl.Tensor, mail: wl.Tensor, y: wl.Tensor, SIZE: wl.const):
    """The softmax triple of all blocks, in one word an element: maximum, sum, weighted value."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    box = wl.flagged(mail, (wl.f32, wl.f32, wl.f32))
    row = wl.load(x[here, wl.ds(0, SIZE)])
    box[here, wl.ds(0, SIZE)].send((row, row * 2.0, -row), 1)
    top = wl.full((SIZE,), -float("inf"), wl.f32)
    total, value = wl.zeros((SIZE,), wl.f32), wl.zeros((SIZE,), wl.f32)
    for b in wl.range(0, blocks):
        m, s, v = box[b, wl.ds(0, SIZE)].receive(1)
        top, total, value = wl.maximum(top, m), total + s, value + v
    wl.store(y[0, here, wl.ds(0, SIZE)], top)
    wl.store(y[1, here, wl.ds(0, SIZE)], total)
    wl.store(y[2, here, wl.ds(0, SIZE)], value)


@pytest.mark.parametrize("size", [1, 31, 64, 130])
def test_three_values_a_word(device, size: int) -> None:
    host = np.arange(4 * size, dtype=np.float32).reshape(4, size) - 7
    y = device.empty((3, 4, size), np.float32)
    mail = device.put(np.zeros((4, size, 2), np.int64))
    triples.launch(4, cooperative=True)(device.put(host), mail, y, SIZE=size)
    sums = host.sum(axis=0)
    for row in range(4):
        got = device.get(y)[:, row]
        assert np.array_equal(got, np.stack([host.max(axis=0), 2 * sums, -sums]))


@pytest.mark.parametrize("blocks", [1, 3])
def test_rounds_are_clean_in_any_order(blocks: int) -> None:
    """Of one block all warps poll the same words, and none is sent again before they have."""
    x, mail = np.ones((blocks, N), np.int32), np.zeros((2, blocks, N), np.int64)
    call = sums.launch(blocks, cooperative=True).call(x, mail, 1, ROUNDS=4, BLOCKS=blocks)
    found = call.check(seeds=6)
    assert found.clean, found.text()
    assert "read of tensor mail, then write of tensor mail" in call.text("cuda")


def test_triples_are_clean_in_any_order() -> None:
    x, y = np.ones((3, N), np.float32), np.zeros((3, 3, N), np.float32)
    launcher = triples.launch(3, cooperative=True)
    found = launcher.call(x, np.zeros((3, N, 2), np.int64), y, SIZE=N).check(seeds=6)
    assert found.clean, found.text()


def test_memory_that_nobody_has_written(golden: Golden) -> None:
    """Its words may have the epoch by chance."""
    mail = wl.Make("sim", 0).empty((64,), wl.i64)
    epoch = int(np.asarray(mail)[0] >> 32)
    found = chance.launch(2, cooperative=True).check(mail, np.zeros(64, np.float32), EPOCH=epoch)
    assert [f.report.code for f in found][:1] == ["M002"]
    golden(next(iter(found)).report.render())


@wl.kernel
def chance(mail: wl.Tensor, y: wl.Tensor, EPOCH: wl.const):
    box = wl.flagged(mail, wl.f32)
    if wl.program_id(0) == 1:
        wl.store(y[wl.ds(0, 64)], box[wl.ds(0, 64)].receive(EPOCH))


@wl.kernel
def late(mail: wl.Tensor, y: wl.Tensor):
    box = wl.flagged(mail, wl.f32)
    if wl.program_id(0) == 0:
        box[wl.ds(0, 64)].send(1.5, 7)
    else:
        wl.store(y[wl.ds(0, 64)], box[wl.ds(0, 64)].receive(8))


def test_an_epoch_that_nobody_sends(golden: Golden) -> None:
    with pytest.raises(CheckError) as stopped:
        late.launch(2, cooperative=True)(np.zeros(64, np.int64), np.zeros(64, np.float32))
    golden(str(stopped.value))


def test_blocks_that_may_not_run_together(golden: Golden) -> None:
    with pytest.raises(LaunchError) as refused:
        late[2](np.zeros(64, np.int64), np.zeros(64, np.float32))
    golden(str(refused.value))


def test_words_outside_are_neither_sent_nor_waited_for(device) -> None:
    mail, y = device.put(np.zeros(40, np.int64)), device.empty((64,), np.float32)
    ragged[1](mail, y)
    assert np.array_equal(device.get(y), np.where(np.arange(64) < 40, 2.5, 0).astype(np.float32))


@wl.kernel
def ragged(mail: wl.Tensor, y: wl.Tensor):
    box = wl.flagged(mail, wl.f32)
    box[wl.ds(0, 64)].send(2.5, -1)
    wl.store(y[wl.ds(0, 64)], box[wl.ds(0, 64)].receive(-1))


@wl.kernel
def of_floats(mail: wl.Tensor):
    wl.flagged(mail, wl.f32)[0].send(1.0, 1)


@wl.kernel
def of_halves(mail: wl.Tensor):
    wl.flagged(mail, wl.f16)


@wl.kernel
def too_few(mail: wl.Tensor):
    wl.flagged(mail, (wl.f32, wl.f32))[0].send(1.0, 1)


@wl.kernel
def other_dtype(mail: wl.Tensor):
    wl.flagged(mail, wl.f32)[wl.ds(0, 4)].send(wl.zeros((4,), wl.i32), 1)


@wl.kernel
def alone(mail: wl.Tensor):
    with wl.one_thread():
        wl.flagged(mail, wl.f32)[0].send(1.0, 1)


@wl.kernel
def misaligned(mail: wl.Tensor):
    wl.flagged(mail, (wl.f32, wl.f32))[0].send((1.0, 1.0), 1)


@pytest.mark.parametrize(
    ("kernel", "mail"),
    [
        (of_floats, np.zeros(4, np.float32)),
        (of_halves, np.zeros(4, np.int64)),
        (too_few, np.zeros((4, 2), np.int64)),
        (other_dtype, np.zeros(4, np.int64)),
        (alone, np.zeros(4, np.int64)),
        (misaligned, np.zeros((4, 3), np.int64)[:, :2]),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_refused(kernel, mail: np.ndarray, golden: Golden) -> None:
    with pytest.raises(CompileError) as refused:
        kernel[1](mail)
    golden(str(refused.value))

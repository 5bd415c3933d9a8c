"""Copies, operands and barriers that leave the buffer that the source names for another one."""

from typing import Any

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def copied(x: wl.Tensor, y: wl.Tensor, AT: wl.i32, BULK: wl.const):
    """Two rows of slots; slot AT of the first one is filled."""
    first = wl.shared((16, 64), wl.f32, slots=2, swizzle=0)
    second = wl.shared((16, 64), wl.f32, slots=2, swizzle=0)
    full = wl.barrier()
    second[0].store(wl.zeros((16, 64), wl.f32))
    wl.fence_async()
    with wl.one_thread():
        full.expect(64 * 4 if BULK else 16 * 64 * 4)
        if BULK:
            wl.copy_bulk(x[0, wl.ds(0, 64)], first[AT][wl.ds(0, 1), :].reshape((64,)), full)
        else:
            wl.copy_async(x[wl.ds(0, 16), wl.ds(0, 64)], first[AT], barrier=full)
    full.wait(0)
    wl.store(y[wl.ds(0, 16), wl.ds(0, 64)], second[0].load())


@wl.kernel
def multiplied(a: wl.Tensor, c: wl.Tensor, AT: wl.i32):
    """A product of slot AT of the first row with the second."""
    first = wl.shared((64, 64), wl.f16, slots=2)
    second = wl.shared((64, 64), wl.f16, slots=2)
    for s in wl.unroll(2):
        first[s].store(wl.load(a[wl.ds(0, 64), wl.ds(0, 64)]))
        second[s].store(wl.load(a[wl.ds(0, 64), wl.ds(0, 64)]))
    acc = wl.dot_async(first[AT], second[0].T, wl.zeros((64, 64), wl.f32))
    wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc.wait())


@wl.kernel
def arrived(y: wl.Tensor, AT: wl.i32, PEER: wl.const):
    """An arrival at barrier AT of the first two; two more lie behind them."""
    first, second = wl.barrier(2), wl.barrier(2)
    if PEER:
        first[AT].on(wl.cluster_rank()).arrive()
    else:
        first[AT].arrive()
    if AT < 2:
        first[AT].wait(0)
    else:
        second[AT - 2].wait(0)
    wl.store(y[wl.ds(0, 64)], wl.zeros((64,), wl.f32))


def codes(call: Any) -> set[str]:
    return {f.code for f in call.check()}


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_copy(at: int):
    x, y = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)
    found = codes(copied.launch(1).call(x, y, AT=at, BULK=False))
    assert ("M001" in found) == (at > 1)
    assert at > 1 or not found


def test_an_operand():
    a, c = np.ones((64, 64), np.float16), np.zeros((64, 64), np.float32)
    for at in range(4):
        found = codes(multiplied.launch(1).call(a, c, AT=at))
        assert found == ({"M001"} if at > 1 else set()), at


@pytest.mark.parametrize("peer", [False, True])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_barrier(at: int, peer: bool):
    y = np.zeros(64, np.float32)
    found = codes(arrived.launch(1, cluster=(1, 1, 1)).call(y, AT=at, PEER=peer))
    assert found == ({"M010"} if at > 1 else set())

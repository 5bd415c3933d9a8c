"""Channels: tiles of registers from role to role, several receivers, polls."""

import itertools

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def chain(
    x: wl.Tensor, y: wl.Tensor, n: wl.i32, STAGES: wl.const, WARPS: wl.const, SHAPE: wl.const
):
    """y = 2 · x + 1, a step a role: each hands its tile on."""
    first = wl.channel(SHAPE, wl.f32, STAGES)
    second = wl.channel(SHAPE, wl.f16, stages=STAGES)
    with wl.roles():
        with wl.role("read", warps=WARPS):
            for k in wl.range(n):
                first.send(wl.load(x[k, wl.ds(0, SHAPE[0]), wl.ds(0, SHAPE[1])]))
        with wl.role("double", warps=4):
            for _ in wl.range(n):
                second.send((first.receive() * 2.0).cast(second.dtype))
        with wl.role("write", warps=2):
            for k in wl.range(n):
                t = second.receive().cast(wl.f32) + 1.0
                wl.store(y[k, wl.ds(0, second.shape[0]), wl.ds(0, SHAPE[1])], t)


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("shape", [(16, 32), (3, 5), (1, 1)])
def test_tiles_go_from_role_to_role(device, stages, warps, shape):
    for n in (0, 1, stages, 2 * stages + 1):
        x = np.random.default_rng(n).integers(-99, 99, (n, *shape)).astype(np.float32)
        y = device.put(np.full(x.shape, np.nan, np.float32))
        chain[1](device.put(x), y, n, stages, warps, shape)
        assert np.array_equal(device.get(y), 2 * x + 1), n


@wl.kernel
def numbers(y: wl.Tensor, n: wl.i32, STAGES: wl.const, DELIVER: wl.const):
    """Numbers to two replicas: all to both, or every other to each."""
    given = wl.channel((1,), wl.i32, STAGES, deliver=DELIVER)
    with wl.roles():
        with wl.role("count", warps=1):
            for k in wl.range(n):
                given.send(wl.full((1,), 0, wl.i32) + k * k)
        with wl.role("take", warps=2, replicas=2) as r:
            if DELIVER == "one":
                given.skip(wl.minimum(r, n))
                for k in wl.range(r, n, 2):
                    wl.store(y[r, wl.ds(k, 1)], given.receive())
                    given.skip(wl.minimum(n - 1 - k, 1))
            else:
                for k in wl.range(n):
                    at = wl.scalar(wl.sum(given.receive(), 0))
                    wl.store(y[r, wl.ds(k, 1)], wl.full((1,), 1, wl.i32) * at)


@pytest.mark.parametrize(("stages", "deliver"), list(itertools.product([1, 2, 3], ["all", "one"])))
def test_who_receives(device, stages, deliver):
    for n in (0, 1, 2, 7):
        y = device.put(np.full((2, 8), -1, np.int32))
        numbers[1](y, n, stages, deliver)
        expected = np.full((2, 8), -1)
        expected[:, :n] = np.arange(n) ** 2
        if deliver == "one":
            expected[0, 1::2] = expected[1, 0::2] = -1
        assert np.array_equal(device.get(y), expected), n


@wl.kernel
def polled(x: wl.Tensor, y: wl.Tensor, n: wl.i32, WARPS: wl.const):
    """Take what is ready, wait for the rest: every item once, whatever the polls say."""
    ring = wl.pipe(3, slots=[wl.shared((8, 32), wl.f32)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(n):
                with ring.put() as tile:
                    wl.copy_async(x[k, wl.ds(0, 8), wl.ds(0, 32)], tile)
        with wl.role("add", warps=WARPS, replicas=2) as r:
            total = wl.zeros((8, 32), wl.f32)
            taken = 0
            for _ in wl.range(n):
                if ring.ready():
                    with ring.get() as tile:
                        total = total + tile.load()
                    taken = taken + 1
            for _ in wl.range(taken, n):
                with ring.get() as tile:
                    total = total + tile.load()
            wl.store(y[r, wl.ds(0, 8), wl.ds(0, 32)], total)


@pytest.mark.parametrize("warps", [1, 2, 4])
def test_a_poll_is_one_answer_for_the_role(device, warps):
    for n in (0, 1, 20):
        x = np.random.default_rng(n).integers(-9, 9, (n, 8, 32)).astype(np.float32)
        y = device.put(np.full((2, 8, 32), np.nan, np.float32))
        polled[1](device.put(x), y, n, warps)
        for seen in device.get(y):
            assert np.array_equal(seen, x.sum(0)), n


def test_polls_on_many_schedules():
    x, y = np.ones((9, 8, 32), np.float32), np.zeros((2, 8, 32), np.float32)
    findings = polled.launch(1).check(x, y, 9, 2, seeds=20)
    assert findings.clean, findings.text()
    assert (y == 9).all()

"""Items that belong to one replica each, and turns: replicas that alternate, with or without an
order between their takes, slots of their own or shared, equal and unequal shares."""

import itertools
import re

import ml_dtypes
import numpy as np
import pytest

import warploom as wl

bf16 = ml_dtypes.bfloat16


@wl.kernel
def dealt(
    x: wl.Tensor,
    y: wl.Tensor,
    tiles: wl.i32,
    steps: wl.i32,
    STAGES: wl.const,
    REPLICAS: wl.const,
    TURNS: wl.const,
    BEHIND: wl.const,
):
    """y[t] = Σ of the `steps` pieces of tile t of x; replica r does the tiles r, r + REPLICAS, …"""
    ring = wl.pipe(STAGES, slots=[wl.shared((8, 32), wl.f32)], deliver="one")
    unit = wl.turns(REPLICAS) if TURNS else None
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.range(tiles):
                for k in wl.range(steps):
                    with ring.put() as tile:
                        wl.copy_async(x[wl.ds(t * 8, 8), wl.ds(k * 32, 32)], tile)
        with wl.role("add", warps=2, replicas=REPLICAS) as r:
            ring.skip(wl.minimum(r, tiles) * steps)
            for t in wl.range(r, tiles, REPLICAS):
                if TURNS:
                    with unit.turn(r):
                        total = added(ring, steps, BEHIND)
                else:
                    total = added(ring, steps, BEHIND)
                ring.skip(wl.minimum(tiles - t - 1, REPLICAS - 1) * steps)
                wl.store(y[wl.ds(t * 8, 8), wl.ds(0, 32)], total)


@wl.function
def added(ring, steps, BEHIND):
    total = wl.zeros((8, 32), wl.f32)
    for _ in wl.range(steps):
        with ring.get(behind=BEHIND) as tile:
            total = total + tile.load()
    return total


@pytest.mark.parametrize("turns", [True, False])
@pytest.mark.parametrize(("replicas", "stages"), list(itertools.product([1, 2, 3], [1, 2, 3, 4])))
def test_tiles_are_dealt(device, replicas, stages, turns):
    for tiles, steps in itertools.product([0, 1, 2, 5], [0, 1, stages, stages + 1, 7]):
        shape = (tiles * 8, steps * 32)
        x = (np.arange(np.prod(shape), dtype=np.float32) % 19).reshape(shape)
        y = device.put(np.full((tiles * 8, 32), -1, np.float32))
        behind = min(stages - 1, 1)
        dealt[1](device.put(x), y, tiles, steps, stages, replicas, turns, behind)
        expected = x.reshape(tiles * 8, steps, 32).sum(1)
        assert np.array_equal(device.get(y), expected), (tiles, steps)


@wl.kernel
def each_its_own(
    x: wl.Tensor, y: wl.Tensor, n: wl.i32, STAGES: wl.const, REPLICAS: wl.const, EXACT: wl.const
):
    """Item i is written by replica i mod REPLICAS; without EXACT the last skips pass the end."""
    ring = wl.pipe(STAGES, slots=[wl.shared((8, 32), wl.f32)], deliver="one")
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(n):
                with ring.put() as tile:
                    wl.copy_async(x[k, wl.ds(0, 8), wl.ds(0, 32)], tile)
        with wl.role("write", warps=1, replicas=REPLICAS) as r:
            ring.skip(wl.minimum(r, n) if EXACT else r)
            for k in wl.range(r, n, REPLICAS):
                with ring.get() as tile:
                    wl.store(y[k, wl.ds(0, 8), wl.ds(0, 32)], tile.load() + r.cast(wl.f32))
                ring.skip(wl.minimum(n - k - 1, REPLICAS - 1) if EXACT else REPLICAS - 1)


@pytest.mark.parametrize(("replicas", "stages"), [(2, 2), (2, 4), (3, 3), (2, 3), (3, 4), (4, 1)])
def test_an_item_a_replica(device, replicas, stages):
    for n in (0, 1, replicas, 3 * stages + 1):
        x = np.random.default_rng(n).standard_normal((n, 8, 32)).astype(np.float32)
        y = device.put(np.full((n, 8, 32), np.nan, np.float32))
        each_its_own[1](device.put(x), y, n, stages, replicas, stages % replicas != 0)
        own = (np.arange(n) % replicas).astype(np.float32)[:, None, None]
        assert np.array_equal(device.get(y), x + own), n


def empties(kernel, *args) -> tuple[int, bool]:
    """Arrivals that hand an item back, and whether skipped items are looked at."""
    text = kernel.launch(1).call(*args).text("tile")
    (arrivals,) = re.findall(r"ring_empty: .*arrivals=(\d+)", text)
    (visits,) = set(re.findall(r"roles\.skip\(.*visits=(\w+)", text))
    return int(arrivals), visits == "True"


def test_what_a_skip_costs():
    """A skip looks at the items only where nothing else orders the takes."""
    x, y = np.zeros((8, 64), np.float32), np.zeros((8, 32), np.float32)
    assert empties(dealt, x, y, 1, 2, 3, 2, True, 1) == (2, False)  # by turns
    assert empties(dealt, x, y, 1, 2, 4, 2, True, 1) == (2, False)
    assert empties(dealt, x, y, 1, 2, 4, 2, False, 1) == (4, True)  # slots are shared
    x = y = np.zeros((3, 8, 32), np.float32)
    assert empties(each_its_own, x, y.copy(), 3, 4, 2, False) == (1, False)  # slots of their own
    assert empties(each_its_own, x, y.copy(), 3, 3, 2, True) == (2, True)
    assert empties(each_its_own, x, y.copy(), 3, 4, 2, True) == (2, True)  # not known to be
    assert empties(each_its_own, x, y.copy(), 3, 3, 3, False) == (1, False)


@wl.kernel
def asks(y: wl.Tensor, n: wl.i32, STAGES: wl.const, INSIDE: wl.const):
    """Two replicas in turns, each of which asks before it takes: in its turn, or before it."""
    ring = wl.channel((32,), wl.i32, STAGES, deliver="one")
    unit = wl.turns(2)
    with wl.roles():
        with wl.role("count", warps=1):
            for k in wl.range(n):
                ring.send(wl.arange(32) + k)
        with wl.role("take", warps=2, replicas=2) as r:
            asked = 0
            for k in wl.range(n):
                if k % 2 == r:
                    if not INSIDE:
                        asked = asked + wl.where(ring.ready(), 1, 0)
                    with unit.turn(r):
                        if INSIDE:
                            asked = asked + wl.where(ring.ready(), 1, 0)
                        t = ring.receive()
                    wl.store(y[k, wl.ds(0, 32)], t)
                else:
                    ring.skip(1)
            wl.store(y[n + r, wl.ds(0, 32)], wl.zeros((32,), wl.i32) + asked)


@pytest.mark.parametrize(("stages", "inside"), list(itertools.product([1, 2, 3], [True, False])))
def test_polls_count_as_takes(device, stages, inside):
    """A poll outside the turn has no order: there a skip looks at the items, or slots are owned."""
    y = device.put(np.full((9, 32), -1, np.int32))
    asks[1](y, 7, stages, inside)
    found = device.get(y)
    assert np.array_equal(found[:7], np.arange(32) + np.arange(7)[:, None])
    assert ((found[7:] >= 0) & (found[7:] <= 4)).all()
    text = asks.launch(1).call(np.zeros((9, 32), np.int32), 7, stages, inside).text("tile")
    visits = set(re.findall(r"roles\.skip\(.*visits=(\w+)", text))
    assert visits == {"False" if inside else "True"}


@wl.kernel
def rotation(y: wl.Tensor, rounds: wl.i32, MORE: wl.const):
    """Three roles of two sizes write their number into a list, one after the other; the first takes
    MORE turns than the others."""
    unit = wl.turns(4)
    last = wl.shared((1,), wl.i32)
    with wl.roles():
        with wl.role("first", warps=1):
            for k in wl.range(rounds + MORE):
                with unit.turn(0):
                    if k == 0:
                        last.store(wl.zeros((1,), wl.i32))
                    noted(y, last, 0)
        with wl.role("pair", warps=2, replicas=2) as r:
            for _ in wl.range(rounds):
                with unit.turn(r + 1):
                    noted(y, last, r + 1)
        with wl.role("last", warps=1):
            for k in wl.range(2 * rounds):
                if k % 2 == 0:
                    with unit.turn(3):
                        noted(y, last, 3)


@wl.function
def noted(y, last, who):
    """Append to the list whose length is in shared memory."""
    at = last.load()
    n = wl.scalar(wl.sum(at, 0))
    wl.store(y[wl.ds(n, 1)], wl.full((1,), 0, wl.i32) + who)
    last.store(at + 1)


@pytest.mark.parametrize(("rounds", "more"), [(1, 0), (4, 0), (3, 1), (2, 5)])
def test_turns_are_strict_and_pass_over_who_has_ended(device, rounds, more):
    total = 4 * rounds + more
    y = device.put(np.full(total + 4, -1, np.int32))
    rotation[1](y, rounds, more)
    expected = [0, 1, 2, 3] * rounds + [0] * more
    assert device.get(y).tolist() == [*expected, -1, -1, -1, -1]


@wl.kernel
def pingpong(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STAGES: wl.const):
    """c = a · bᵀ in row blocks of 64: two replicas share one ring, multiply in turns, and write
    while the other multiplies."""
    slots = [wl.shared((64, 64), wl.bf16), wl.shared((64, 64), wl.bf16)]
    ring = wl.pipe(STAGES, slots=slots, deliver="one")
    unit = wl.turns(2)
    tiles, steps = a.shape[0] // 64, a.shape[1] // 64
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.range(tiles):
                for k in wl.range(steps):
                    with ring.put() as (sa, sb):
                        wl.copy_async(a[wl.ds(t * 64, 64), wl.ds(k * 64, 64)], sa)
                        wl.copy_async(b[wl.ds(0, 64), wl.ds(k * 64, 64)], sb)
        with wl.role("math", warps=4, replicas=2) as r:
            ring.skip(wl.minimum(r, tiles) * steps)
            for t in wl.range(r, tiles, 2):
                with unit.turn(r):
                    acc = wl.zeros((64, 64), wl.f32)
                    for _ in wl.range(steps):
                        item = ring.take()
                        acc = wl.dot_async(item[0], item[1].T, acc)
                        item.release(after=acc, behind=1 if STAGES > 1 else 0)
                ring.skip(wl.minimum(tiles - t - 1, 1) * steps)
                wl.store(c[wl.ds(t * 64, 64), wl.ds(0, 64)], acc.wait())


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_pingpong(device, stages):
    rng = np.random.default_rng(stages)
    for tiles, steps in ((1, 1), (2, 3), (5, stages), (3, 0)):
        a = rng.integers(-3, 4, (tiles * 64, steps * 64)).astype(bf16)
        b = rng.integers(-3, 4, (64, steps * 64)).astype(bf16)
        c = device.empty((tiles * 64, 64), np.float32)
        pingpong[1](device.put(a), device.put(b), c, stages)
        expected = a.astype(np.float32) @ b.astype(np.float32).T
        assert np.array_equal(device.get(c), expected), (tiles, steps)


def test_pingpong_is_clean_on_many_schedules():
    a, b = np.ones((192, 128), bf16), np.ones((64, 128), bf16)
    c = np.zeros((192, 64), np.float32)
    findings = pingpong.launch(1).check(a, b, c, 3, seeds=10)
    assert findings.clean, findings.text()
    assert (c == 128).all()

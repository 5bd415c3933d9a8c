"""Who fills an item: threads that store, copies beside them, several roles together."""

import itertools
import re

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def stored(
    x: wl.Tensor,
    y: wl.Tensor,
    tiles: wl.i32,
    steps: wl.i32,
    STAGES: wl.const,
    WARPS: wl.const,
    READERS: wl.const,
):
    """y[r, t] = Σ of 2 · x over the pieces of tile t: the producer computes what it puts."""
    ring = wl.pipe(STAGES, slots=[wl.shared((8, 32), wl.f32)])
    with wl.roles():
        with wl.role("make", warps=WARPS):
            for t in wl.range(tiles):
                for k in wl.range(steps):
                    with ring.put() as tile:
                        part = wl.load(x[wl.ds(t * 8, 8), wl.ds(k * 32, 32)])
                        tile.store(part * 2.0)
        with wl.role("add", warps=3, replicas=READERS) as r:
            for t in wl.range(tiles):
                total = wl.zeros((8, 32), wl.f32)
                for _ in wl.range(steps):
                    with ring.get() as tile:
                        total = total + tile.T.load().T
                wl.store(y[r, wl.ds(t * 8, 8), wl.ds(0, 32)], total)


@pytest.mark.parametrize("stages", [1, 2, 3, 8])
@pytest.mark.parametrize("warps", [1, 2, 4])
def test_a_role_stores_what_it_puts(device, stages, warps):
    for steps in sorted({0, 1, stages - 1, stages, stages + 1, 2 * stages + 1}):
        x = (np.arange(16 * steps * 32, dtype=np.float32) % 17).reshape(16, steps * 32)
        y = device.put(np.full((2, 16, 32), -1, np.float32))
        stored[1](device.put(x), y, 2, steps, stages, warps, 2)
        expected = 2 * x.reshape(16, steps, 32).sum(1)
        for seen in device.get(y):
            assert np.array_equal(seen, expected), steps


@wl.kernel
def together(x: wl.Tensor, w: wl.Tensor, y: wl.Tensor, n: wl.i32, STAGES: wl.const, BOTH: wl.const):
    """An item has three tiles: one is copied by a role of one warp, one is stored by two replicas,
    a half each, who with BOTH copy the third in the same `put`."""
    slots = [wl.shared((16, 32), wl.f32), wl.shared((16, 32), wl.f32), wl.shared((16, 32), wl.f32)]
    ring = wl.pipe(STAGES, slots=slots)
    with wl.roles():
        with wl.role("copy", warps=1):
            for k in wl.range(n):
                with ring.put() as (a, _, c):
                    wl.copy_async(x[k, wl.ds(0, 16), wl.ds(0, 32)], a)
                    if not BOTH:
                        wl.copy_async(x[k, wl.ds(0, 16), wl.ds(0, 32)], c)
        with wl.role("store", warps=2, replicas=2) as r:
            for k in wl.range(n):
                with ring.put() as (_, b, c):
                    part = wl.load(w[k, wl.ds(r * 8, 8), wl.ds(0, 32)])
                    if BOTH:
                        wl.copy_async(x[k, wl.ds(r * 8, 8), wl.ds(0, 32)], c[wl.ds(r * 8, 8), :])
                    b[wl.ds(r * 8, 8), :].store(part + 1.0)
        with wl.role("add", warps=4):
            for k in wl.range(n):
                with ring.get() as (a, b, c):
                    t = a.load() + b.load() * c.load()
                wl.store(y[k, wl.ds(0, 16), wl.ds(0, 32)], t)


@pytest.mark.parametrize(("stages", "both"), list(itertools.product([1, 2, 3], [False, True])))
def test_several_roles_fill_an_item(device, stages, both):
    rng = np.random.default_rng(stages)
    for n in (0, 1, stages, 7):
        x, w = (rng.integers(-9, 9, (n, 16, 32)).astype(np.float32) for _ in range(2))
        y = device.put(np.full(x.shape, np.nan, np.float32))
        together[1](device.put(x), device.put(w), y, n, stages, both)
        assert np.array_equal(device.get(y), x + (w + 1) * x), n


def test_what_fills_an_item_is_counted():
    x = np.zeros((3, 16, 32), np.float32)
    for both, arrivals in ((False, 1 + 2 * 2), (True, 1 + 2 * (2 + 1))):
        text = together.launch(1).call(x, x.copy(), x.copy(), 3, 2, both).text("tile")
        assert f"ring_full: barriers<2> = mbarrier.alloc() [count=2, arrivals={arrivals}]" in text
    for seeds, both in ((5, False), (5, True)):
        given = [np.ones((5, 16, 32), np.float32) for _ in range(3)]
        findings = together.launch(1).check(*given, 5, 2, both, seeds=seeds)
        assert findings.clean, findings.text()


@wl.kernel
def mixed(x: wl.Tensor, y: wl.Tensor, n: wl.i32, STAGES: wl.const, COPIES: wl.const):
    """A role fills some items by a copy and others by its threads: each warp arrives for either."""
    ring = wl.pipe(STAGES, slots=[wl.shared((8, 32), wl.f32)])
    with wl.roles():
        with wl.role("load", warps=2):
            for k in wl.range(n):
                if k % 2 == 0:
                    with ring.put() as tile:
                        if COPIES:
                            wl.copy_async(x[k, wl.ds(0, 8), wl.ds(0, 32)], tile)
                        else:
                            tile.store(wl.load(x[k, wl.ds(0, 8), wl.ds(0, 32)]))
                else:
                    with ring.put() as tile:
                        tile.store(wl.full((8, 32), 1.0, wl.f32) * k.cast(wl.f32))
        with wl.role("write", warps=4):
            for k in wl.range(n):
                with ring.get() as tile:
                    wl.store(y[k, wl.ds(0, 8), wl.ds(0, 32)], tile.load())


@pytest.mark.parametrize(("stages", "copies"), list(itertools.product([1, 2, 3], [False, True])))
def test_a_role_fills_items_in_two_ways(device, stages, copies):
    for n in (0, 1, 2, 7):
        x = np.random.default_rng(n).standard_normal((n, 8, 32)).astype(np.float32)
        y = device.put(np.full(x.shape, np.nan, np.float32))
        mixed[1](device.put(x), y, n, stages, copies)
        expected = x.copy()
        expected[1::2] = np.arange(1, n, 2)[:, None, None]
        assert np.array_equal(device.get(y), expected), n
    given = np.ones((5, 8, 32), np.float32)
    text = mixed.launch(1).call(given, given.copy(), 5, stages, copies).text("tile")
    assert re.search(rf"ring_full: .*arrivals={2 + copies}\]", text)
    findings = mixed.launch(1).check(given, given.copy(), 5, stages, copies, seeds=5)
    assert findings.clean, findings.text()


@wl.kernel
def by_elements(x: wl.Tensor, y: wl.Tensor, n: wl.i32, STAGES: wl.const, HALF: wl.const):
    """Threads copy elements into an item, without registers and without waiting for them; with HALF
    they store the second half, and put every third item by stores alone."""
    ring = wl.pipe(STAGES, slots=[wl.shared((16, 64), wl.f32)])
    with wl.roles():
        with wl.role("load", warps=2):
            for k in wl.range(n):
                if HALF and k % 3 == 2:
                    with ring.put() as tile:
                        tile.store(wl.load(x[k, wl.ds(0, 16), wl.ds(0, 64)]))
                else:
                    with ring.put() as tile:
                        wl.copy_by_threads(x[k, wl.ds(0, 8), wl.ds(0, 64)], tile[wl.ds(0, 8), :])
                        if HALF:
                            tile[wl.ds(8, 8), :].store(wl.load(x[k, wl.ds(8, 8), wl.ds(0, 64)]))
                        else:
                            rest = tile[wl.ds(8, 8), :]
                            wl.copy_by_threads(x[k, wl.ds(8, 8), wl.ds(0, 64)], rest)
        with wl.role("write", warps=4):
            for k in wl.range(n):
                with ring.get() as tile:
                    wl.store(y[k, wl.ds(0, 16), wl.ds(0, 64)], tile.load())


@pytest.mark.parametrize(("stages", "half"), list(itertools.product([1, 2, 3], [False, True])))
def test_elements_that_threads_copy_are_waited_for(device, stages, half):
    for n in (0, 1, stages, 7):
        x = np.random.default_rng(n).standard_normal((n, 16, 64)).astype(np.float32)
        y = device.put(np.full(x.shape, np.nan, np.float32))
        by_elements[1](device.put(x), y, n, stages, half)
        assert np.array_equal(device.get(y), x), n
    x, y = np.ones((7, 16, 64), np.float32), np.zeros((7, 16, 64), np.float32)
    call = by_elements.launch(1).call(x, y, 7, stages, half)
    assert re.search(rf"ring_full: .*count={stages}, arrivals={2 + 64}\]", call.text("tile"))
    findings = call.check(seeds=5)
    assert findings.clean, findings.text()
    assert (y == 1).all()


@wl.kernel
def elements_to_products(a: wl.Tensor, c: wl.Tensor, n: wl.i32):
    """The matrix unit reads what threads of another role have copied."""
    ring = wl.pipe(2, slots=[wl.shared((64, 64), wl.bf16)])
    with wl.roles():
        with wl.role("load", warps=4):
            for k in wl.range(n):
                with ring.put() as tile:
                    wl.copy_by_threads(a[wl.ds(0, 64), wl.ds(k * 64, 64)], tile)
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for _ in wl.range(n):
                with ring.get() as tile:
                    acc = wl.dot_async(tile, tile.T, acc)
            wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc.wait())


def test_products_of_elements_that_threads_copy(device):
    values = np.random.default_rng(3).integers(-3, 4, (64, 4 * 64))
    c = device.put(np.zeros((64, 64), np.float32))
    elements_to_products[1](device.put(values.astype(wl.bf16.numpy)), c, 4)
    assert np.array_equal(device.get(c), (values @ values.T).astype(np.float32))
    a, c = np.ones((64, 256), wl.bf16.numpy), np.zeros((64, 64), np.float32)
    call = elements_to_products.launch(1).call(a, c, 4)
    assert "copies by threads of another role" in call.text("machine")
    findings = call.check(seeds=5)
    assert findings.clean, findings.text()


@wl.kernel
def guarded(x: wl.Tensor, y: wl.Tensor, n: wl.i32, FIRST: wl.const, SECOND: wl.const):
    """Roles that constants remove: each takes its ends of the pipes with it, and a pipe that nobody
    uses takes no memory."""
    ring = wl.pipe(2, slots=[wl.shared((8, 32), wl.f32)])
    other = wl.pipe(2, slots=[wl.shared((8, 32), wl.f32)])
    out = wl.pipe(2, slots=[wl.shared((8, 32), wl.f32)], to=wl.copy_engine)
    unit = wl.turns(2)
    with wl.roles():
        if FIRST or SECOND:
            with wl.role("load", warps=1):
                for k in wl.range(n):
                    with ring.put() as tile:
                        wl.copy_async(x[k, wl.ds(0, 8), wl.ds(0, 32)], tile)
        if FIRST:
            with wl.role("first", warps=2):
                for k in wl.range(n):
                    with ring.get() as tile:
                        wl.store(y[0, k, wl.ds(0, 8), wl.ds(0, 32)], tile.load())
        if SECOND:
            with wl.role("again", warps=1, replicas=2) as r:
                with unit.turn(r), other.put() as tile:
                    tile.store(wl.zeros((8, 32), wl.f32))
                for k in wl.range(n):
                    with ring.get() as tile:
                        t = tile.load()
                    if k % 2 == r:
                        with out.put() as slot:
                            slot.store(t + 1.0)
                            wl.copy_async(slot, y[1, k, wl.ds(0, 8), wl.ds(0, 32)])
            with wl.role("drop", warps=1), other.get() as tile:
                wl.store(y[2, 0, wl.ds(0, 8), wl.ds(0, 32)], tile.load())


@pytest.mark.parametrize(("first", "second"), list(itertools.product([False, True], repeat=2)))
def test_roles_that_constants_remove(device, first, second):
    x = np.random.default_rng(0).standard_normal((5, 8, 32)).astype(np.float32)
    y = device.put(np.full((3, 5, 8, 32), 7, np.float32))
    guarded[1](device.put(x), y, 5, first, second)
    found = device.get(y)
    assert np.array_equal(found[0], x if first else np.full_like(x, 7))
    assert np.array_equal(found[1], x + 1 if second else np.full_like(x, 7))
    assert (found[2, 0] == (0 if second else 7)).all()


def test_what_nobody_uses_takes_no_memory():
    x, y = np.zeros((5, 8, 32), np.float32), np.zeros((3, 5, 8, 32), np.float32)
    sizes = {}
    for first, second in itertools.product([False, True], repeat=2):
        text = guarded.launch(1).call(x, y, 5, first, second).text("machine")
        sizes[first, second] = text.count("shared_memory.buffer")
    # Tiles, full and empty of each ring; the slots of `out`; two arrays of barriers of the turns.
    assert sizes == {(False, False): 0, (True, False): 3, (False, True): 9, (True, True): 9}


@wl.kernel
def by_products(a: wl.Tensor, c: wl.Tensor, n: wl.i32, STAGES: wl.const):
    """c = Σ A_k · A_kᵀ where threads store what the matrix unit reads: a fence stands between."""
    ring = wl.pipe(STAGES, slots=[wl.shared((64, 64), wl.bf16)])
    with wl.roles():
        with wl.role("make", warps=4):
            for k in wl.range(n):
                with ring.put() as tile:
                    tile.store(wl.load(a[wl.ds(0, 64), wl.ds(k * 64, 64)]))
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for _ in wl.range(n):
                with ring.get() as tile:
                    acc = wl.dot_async(tile, tile.T, acc)
            wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], acc.wait())


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_threads_feed_the_matrix_unit(device, stages):
    for n in (0, 1, 4):
        values = np.random.default_rng(n).integers(-3, 4, (64, n * 64))
        a = values.astype(wl.bf16.numpy)
        c = device.put(np.full((64, 64), -1, np.float32))
        by_products[1](device.put(a), c, n, stages)
        assert np.array_equal(device.get(c), (values @ values.T).astype(np.float32)), n
    a, c = np.ones((64, 256), wl.bf16.numpy), np.zeros((64, 64), np.float32)
    findings = by_products.launch(1).check(a, c, 4, stages, seeds=5)
    assert findings.clean, findings.text()

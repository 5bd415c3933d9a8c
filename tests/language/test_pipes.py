"""Programs of roles and pipes, run: stages and steps in every relation, items held back, branches,
several consumers, both ends in one role, and the same by hand on barriers."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import warploom as wl

bf16 = ml_dtypes.bfloat16


@wl.kernel
def sums(
    x: wl.Tensor,
    y: wl.Tensor,
    tiles: wl.i32,
    steps: wl.i32,
    STAGES: wl.const,
    BEHIND: wl.const,
    REPLICAS: wl.const,
    WARPS: wl.const,
    GET: wl.const,
):
    """y[r, t] = Σ of the `steps` pieces of row block t of x, as replica r sees them."""
    ring = wl.pipe(STAGES, slots=[wl.shared((8, 32), wl.f32)])
    with wl.roles():
        with wl.role("load", warps=WARPS):
            for t in wl.range(tiles):
                for k in wl.range(steps):
                    with ring.put() as tile:
                        wl.copy_async(x[wl.ds(t * 8, 8), wl.ds(k * 32, 32)], tile)
        with wl.role("add", warps=2, replicas=REPLICAS) as r:
            for t in wl.range(tiles):
                total = wl.zeros((8, 32), wl.f32)
                for _ in wl.range(steps):
                    if GET:
                        with ring.get(behind=BEHIND) as tile:
                            total = total + tile.load()
                    else:
                        item = ring.take()
                        total = total + item[0].load()
                        item.release(behind=BEHIND)
                wl.store(y[r, wl.ds(t * 8, 8), wl.ds(0, 32)], total)


@pytest.mark.case("C01")
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("warps", [1, 4])
def test_stages_and_steps_in_every_relation(device, stages, warps):
    steps = sorted({0, 1, stages - 1, stages, stages + 1, 2 * stages, 2 * stages + 1})
    for count, behind in itertools.product(steps, range(min(stages, 3))):
        x = (np.arange(24 * count * 32, dtype=np.float32) % 17).reshape(24, count * 32)
        for replicas, get in ((1, False), (2, True)):
            y = device.put(np.full((replicas, 24, 32), -1, np.float32))
            sums[1](device.put(x), y, 3, count, stages, behind, replicas, warps, get)
            expected = x.reshape(24, count, 32).sum(1)
            for seen in device.get(y):
                assert np.array_equal(seen, expected), (count, behind, replicas)


@pytest.mark.case("C01")
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
def test_nothing_is_left_in_flight(stages):
    """No copy and no arrival is under way when a block ends, whatever the loops run."""
    for tiles, count in itertools.product((2, 3), (0, 1, stages - 1, stages, 2 * stages + 1)):
        x = np.ones((tiles * 8, count * 32), np.float32)
        y = np.full((2, tiles * 8, 32), -1, np.float32)
        behind = min(stages - 1, 1)
        launch = sums.launch(1)
        findings = launch.check(x, y, tiles, count, stages, behind, 2, 1, True, seeds=2)
        assert findings.clean, findings.text()
        assert (y == count).all()


@wl.kernel
def clipped(x: wl.Tensor, w: wl.Tensor, y: wl.Tensor, STAGES: wl.const, BOX: wl.const):
    """Two operands a slot on one barrier, in boxes that pass the ends of their tensors."""
    slots = [wl.shared((BOX, 32), wl.f16), wl.shared((32, BOX), wl.f32)]
    ring = wl.pipe(STAGES, slots=slots)
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, x.shape[0], BOX):
                with ring.put() as (a, b):
                    wl.copy_async(x[wl.ds(k, BOX), wl.ds(0, 32)], a)
                    wl.copy_async(w[wl.ds(0, 32), wl.ds(k, BOX)], b)
        with wl.role("add", warps=4):
            total = wl.zeros((BOX, 32), wl.f32)
            for _ in wl.range(0, x.shape[0], BOX):
                with ring.get() as (a, b):
                    total = total + a.load().cast(wl.f32) * b.T.load()
            wl.store(y[wl.ds(0, BOX), wl.ds(0, 32)], total)


@pytest.mark.case("C04")
@pytest.mark.parametrize("rows", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("columns", [8, 24, 32])
def test_a_box_past_the_end_counts_whole(device, rows, columns):
    """The engine counts the bytes of the whole box; what lies outside arrives as zero."""
    rng = np.random.default_rng(rows)
    x = rng.integers(-9, 9, (rows, columns)).astype(np.float16)
    wide = (rows + 3) // 4 * 4
    w = rng.integers(-9, 9, (columns, wide)).astype(np.float32)
    y = device.put(np.full((32, 32), np.nan, np.float32))
    clipped[1](device.put(x), device.put(w), y, 2, 32)
    steps = -(-rows // 32)
    left, right = np.zeros((steps * 32, 32), np.float32), np.zeros((32, steps * 32), np.float32)
    left[:rows, :columns], right[:columns, : min(wide, steps * 32)] = x, w[:, : steps * 32]
    expected = (left * right.T).reshape(steps, 32, 32).sum(0)
    assert np.array_equal(device.get(y), expected)


@pytest.mark.case("C04")
@pytest.mark.parametrize("rows", [1, 33, 100])
def test_a_box_past_the_end_is_no_finding(rows):
    x, w = np.ones((rows, 24), np.float16), np.ones((24, (rows + 3) // 4 * 4), np.float32)
    findings = clipped.launch(1).check(x, w, np.zeros((32, 32), np.float32), 2, 32, seeds=5)
    assert findings.clean, findings.text()


@wl.kernel
def picked(x: wl.Tensor, y: wl.Tensor, n: wl.i32, STAGES: wl.const):
    """Two consumers: one adds up all items, the other takes two at a time. A third of the items is
    put under an `if`, and taken under the same."""
    ring = wl.pipe(STAGES, slots=[wl.shared((8, 32), wl.f32)])
    extra = wl.pipe(2, slots=[wl.shared((8, 32), wl.f32)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(n):
                with ring.put() as tile:
                    wl.copy_async(x[k, wl.ds(0, 8), wl.ds(0, 32)], tile)
                if k % 3 == 1:
                    with extra.put() as tile:
                        wl.copy_async(x[k, wl.ds(0, 8), wl.ds(0, 32)], tile)
        with wl.role("all", warps=1):
            total = wl.zeros((8, 32), wl.f32)
            for k in wl.range(n):
                with ring.get() as tile:
                    total = total + tile.load()
                if k % 3 == 1:
                    with extra.get() as tile:
                        total = total + 100.0 * tile.load()
            wl.store(y[0, wl.ds(0, 8), wl.ds(0, 32)], total)
        with wl.role("pairs", warps=3):
            total = wl.zeros((8, 32), wl.f32)
            for _ in wl.range(n // 2):
                first = ring.take()
                second = ring.take()
                total = total + second[0].load() - first[0].load()
                second.release()
                first.release()
            wl.store(y[1, wl.ds(0, 8), wl.ds(0, 32)], total)


@pytest.mark.parametrize("stages", [2, 3, 5])
@pytest.mark.parametrize("n", [0, 2, 8])
def test_consumers_at_their_own_pace(device, stages, n):
    x = np.random.default_rng(n).integers(-9, 9, (n, 8, 32)).astype(np.float32)
    y = device.put(np.full((2, 8, 32), np.nan, np.float32))
    picked[1](device.put(x), y, n, stages)
    everything, pairs = device.get(y)
    assert np.array_equal(everything, x.sum(0) + 100 * x[1::3].sum(0))
    assert np.array_equal(pairs, x[1::2].sum(0) - x[0::2].sum(0))


@wl.kernel
def alone(x: wl.Tensor, y: wl.Tensor, STAGES: wl.const):
    """One role at both ends of a pipe; another one beside it that reduces for itself."""
    ring = wl.pipe(STAGES, slots=[wl.shared((16, 32), wl.f32)])
    with wl.roles():
        with wl.role("both", warps=4):
            total = wl.zeros((16,), wl.f32)
            for k in wl.range(x.shape[0]):
                with ring.put() as tile:
                    wl.copy_async(x[k, wl.ds(0, 16), wl.ds(0, 32)], tile)
                with ring.get() as tile:
                    total = total + wl.sum(tile.load(), 1)
            wl.store(y[wl.ds(0, 16)], total)
        with wl.role("other", warps=3, replicas=2) as r:
            counted = wl.sum(wl.arange(64) + r, 0)
            wl.store(y[wl.ds(16 + r, 1)], counted.cast(wl.f32)[None])


@pytest.mark.parametrize("stages", [1, 2])
def test_both_ends_in_one_role(device, stages):
    x = np.random.default_rng(0).integers(0, 9, (5, 16, 32)).astype(np.float32)
    y = device.put(np.zeros(18, np.float32))
    alone[1](device.put(x), y, stages)
    found = device.get(y)
    assert np.array_equal(found[:16], x.sum((0, 2)))
    assert found[16:].tolist() == [2016.0, 2080.0]


@wl.kernel
def bounded(x: wl.Tensor, y: wl.Tensor, n: wl.i32, STAGES: wl.const, IN_FLIGHT: wl.const):
    """y = Σ x, of which every third item is put without a bound."""
    ring = wl.pipe(STAGES, slots=[wl.shared((16, 32), wl.f32)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(n):
                if k % 3 == 2:
                    with ring.put() as tile:
                        wl.copy_async(x[k, wl.ds(0, 16), wl.ds(0, 32)], tile)
                else:
                    with ring.put(in_flight=IN_FLIGHT) as tile:
                        wl.copy_async(x[k, wl.ds(0, 16), wl.ds(0, 32)], tile)
        with wl.role("add", warps=2):
            total = wl.zeros((16, 32), wl.f32)
            for _ in wl.range(n):
                with ring.get() as tile:
                    total = total + tile.load()
            wl.store(y[wl.ds(0, 16), wl.ds(0, 32)], total)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_few_in_flight(device, stages):
    steps = (0, 1, stages - 1, stages, stages + 1, 2 * stages + 1, 12)
    for in_flight, n in itertools.product(range(1, stages + 1), steps):
        x = np.random.default_rng(n).integers(0, 9, (n, 16, 32)).astype(np.float32)
        y = device.put(np.full((16, 32), -1, np.float32))
        bounded[1](device.put(x), y, n, stages, in_flight)
        assert np.array_equal(device.get(y), x.sum(0)), (in_flight, n)


@pytest.mark.parametrize("in_flight", [1, 2, 3])
def test_few_in_flight_is_no_finding(in_flight):
    x = np.ones((7, 16, 32), np.float32)
    findings = bounded.launch(1).check(x, np.zeros((16, 32), np.float32), 7, 3, in_flight, seeds=5)
    assert findings.clean, findings.text()


@wl.kernel
def seen(x: wl.Tensor, y: wl.Tensor, IN_FLIGHT: wl.const):
    """y = whether the first item is full once the second one was put."""
    ring = wl.pipe(4, slots=[wl.shared((16, 32), wl.f32)])
    with wl.roles(), wl.role("both", warps=1):
        for k in wl.unroll(2):
            with ring.put(in_flight=IN_FLIGHT) as tile:
                wl.copy_async(x[k, wl.ds(0, 16), wl.ds(0, 32)], tile)
        ready = ring.ready()
        total = wl.zeros((16, 32), wl.f32)
        for _ in wl.unroll(2):
            with ring.get() as tile:
                total = total + tile.load()
        wl.store(y[wl.ds(0, 1)], wl.full((1,), wl.where(ready, 1.0, 0.0), wl.f32))
        wl.store(y[wl.ds(1, 16)], wl.sum(total, 1))


def test_a_put_waits_for_an_earlier_item():
    """The engine of the simulator is late: without a bound, the item before is not there."""
    x = np.ones((2, 16, 32), np.float32)
    found = {}
    for in_flight in (1, 4):
        y = np.full(17, -1, np.float32)
        seen[1](x, y, in_flight)
        assert (y[1:] == 64).all()
        found[in_flight] = y[0]
    assert found == {1: 1, 4: 0}


@wl.kernel
def by_hand(x: wl.Tensor, y: wl.Tensor, STAGES: wl.const):
    """No roles, no pipes: barriers by their phases, in by one buffer and out by another."""
    tiles = wl.shared((16, 64), wl.f32, slots=STAGES)
    out = wl.shared((16, 64), wl.f32)
    full = wl.barrier(STAGES)
    n = x.shape[1] // 64
    for i in wl.unroll(STAGES):
        if i < n:
            with wl.one_thread():
                full[i].expect(16 * 64 * 4)
                wl.copy_async(x[wl.ds(0, 16), wl.ds(i * 64, 64)], tiles[i], barrier=full[i])
    for k in wl.range(n):
        slot = k % STAGES
        full[slot].wait(k // STAGES % 2)
        t = tiles[slot].load() * 2.0
        with wl.one_thread():
            wl.copy_wait(reads=True)
        out.store(t)
        with wl.one_thread():
            wl.copy_async(out, y[wl.ds(0, 16), wl.ds(k * 64, 64)])
            wl.copy_commit()
        if k + STAGES < n:
            with wl.one_thread():
                full[slot].expect(16 * 64 * 4)
                later = x[wl.ds(0, 16), wl.ds((k + STAGES) * 64, 64)]
                wl.copy_async(later, tiles[slot], barrier=full[slot])
    with wl.one_thread():
        wl.copy_wait()


@pytest.mark.parametrize(("stages", "n"), list(itertools.product([1, 2, 3], [1, 2, 5])))
def test_the_same_by_hand(device, stages, n):
    x = np.random.default_rng(n).standard_normal((16, 64 * n)).astype(np.float32)
    y = device.empty(x.shape, np.float32)
    by_hand[1](device.put(x), y, stages)
    assert np.array_equal(device.get(y), 2 * x)


@wl.kernel
def shared_by_two(a: wl.Tensor, c: wl.Tensor, STAGES: wl.const, REPLICAS: wl.const):
    """Warpgroups on one ring, as many as there are replicas; nobody types a count."""
    ring = wl.pipe(STAGES, slots=[wl.shared((64, 64), wl.bf16)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, a.shape[1], 64):
                with ring.put() as tile:
                    wl.copy_async(a[wl.ds(0, 64), wl.ds(k, 64)], tile)
        with wl.role("math", warps=4, replicas=REPLICAS) as r:
            acc = wl.zeros((64, 64), wl.f32)
            for _ in wl.range(0, a.shape[1], 64):
                with ring.get() as tile:
                    acc = wl.dot_async(tile, tile.T, acc)
            wl.store(c[wl.ds(r * 64, 64), wl.ds(0, 64)], acc.wait())


@pytest.mark.case("C03")
@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_arrivals_follow_from_the_consumers(device, stages, replicas):
    a = np.random.default_rng(stages).integers(-3, 4, (64, 320)).astype(bf16)
    c = device.put(np.full((64 * replicas, 64), -1, np.float32))
    shared_by_two[1](device.put(a), c, stages, replicas)
    wide = a.astype(np.float32)
    assert np.array_equal(device.get(c), np.tile(wide @ wide.T, (replicas, 1)))
    given = np.zeros((64, 320), bf16), np.zeros((64 * replicas, 64), np.float32)
    text = shared_by_two.launch(1).call(*given, stages, replicas).text("tile")
    assert f"ring_empty: barriers<{stages}> = mbarrier.alloc() [count={stages}, " in text
    assert f"arrivals={4 * replicas}]" in text[text.index("%ring_empty:") :].split("\n")[0]


@wl.function
def with_get(ring, steps, acc):
    """The item goes back when its product has retired: nobody says so."""
    for _ in wl.range(steps):
        with ring.get() as (sa, sb):
            acc = wl.dot_async(sa, sb.T, acc)
    return acc.wait()


@wl.function
def with_get_behind(ring, steps, acc):
    for _ in wl.range(steps):
        with ring.get(behind=1) as (sa, sb):
            acc = wl.dot_async(sa, sb.T, acc)
    return acc.wait()


@wl.function
def with_take(ring, steps, acc):
    for _ in wl.range(steps):
        item = ring.take()
        acc = wl.dot_async(item[0], item[1].T, acc)
        item.release(after=acc, behind=1)
    return acc.wait()


@wl.function
def two_accumulators(ring, steps, acc):
    other = wl.zeros((64, 64), wl.f32)
    for _ in wl.range(steps):
        item = ring.take()
        sa, sb = item
        acc = wl.dot_async(sa, sb.T, acc)
        other = wl.dot_async(sb, sa.T, other)
        item.release(after=other, behind=1)
    return acc.wait() + other.wait() * 2.0


@wl.function
def nested(ring, steps, acc):
    for _ in wl.range(2):
        for _ in wl.range(steps // 2):
            item = ring.take()
            acc = wl.dot_async(item[0], item[1].T, acc)
            item.release(after=acc, behind=1)
    return acc.wait()


@wl.function
def two_loops(ring, steps, acc):
    for _ in wl.unroll(2):
        for _ in wl.range(steps // 2):
            item = ring.take()
            acc = wl.dot_async(item[0], item[1].T, acc)
            item.release(after=acc, behind=1)
    return acc.wait()


@wl.function
def every_other(ring, steps, acc):
    for k in wl.range(steps):
        item = ring.take()
        if k % 2 == 0:
            acc = wl.dot_async(item[0], item[1].T, acc)
        item.release(after=acc, behind=1)
    return acc.wait()


@wl.function
def anew(ring, steps, acc):
    for _ in wl.range(steps):
        with ring.get() as (sa, sb):
            part = wl.dot_async(sa, sb.T, wl.zeros((64, 64), wl.f32))
            acc = acc + part.wait()
    return acc


@wl.function
def halved(ring, steps, acc):
    for _ in wl.range(steps):
        with ring.get() as (sa, sb):
            acc = wl.dot_async(sa, sb.T, acc).wait() * 0.5
    return acc


@wl.function
def twice(ring, steps, acc):
    for _ in wl.range(steps):
        with ring.get() as (sa, sb):
            for _ in wl.unroll(2):
                acc = wl.dot_async(sa, sb.T, acc)
    return acc.wait()


FORMS = {
    with_get: sum,
    with_get_behind: sum,
    with_take: sum,
    two_accumulators: lambda p: sum(p) + 2 * sum(q.T for q in p),
    nested: sum,
    two_loops: sum,
    every_other: lambda p: sum(p[::2]),
    anew: sum,
    halved: lambda p: sum(q * 0.5 ** (len(p) - i) for i, q in enumerate(p)),
    twice: lambda p: 2 * sum(p),
}


@wl.kernel
def products(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STAGES: wl.const, FORM: wl.const):
    """Products of the pieces of a and b along K, held and handed back as FORM does it."""
    ring = wl.pipe(STAGES, slots=[wl.shared((64, 64), wl.bf16), wl.shared((64, 64), wl.bf16)])
    steps = a.shape[1] // 64
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(steps):
                with ring.put() as (sa, sb):
                    wl.copy_async(a[wl.ds(0, 64), wl.ds(k * 64, 64)], sa)
                    wl.copy_async(b[wl.ds(0, 64), wl.ds(k * 64, 64)], sb)
        with wl.role("math", warps=4):
            t = FORM(ring, steps, wl.zeros((64, 64), wl.f32))
            wl.store(c[wl.ds(0, 64), wl.ds(0, 64)], t)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_products_of_items(device, form):
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-3, 4, (64, 256)).astype(bf16) for _ in range(2))
    parts = [
        a[:, k : k + 64].astype(np.float32) @ b[:, k : k + 64].astype(np.float32).T
        for k in range(0, 256, 64)
    ]
    for stages in (2, 3):
        c = device.empty((64, 64), np.float32)
        products[1](device.put(a), device.put(b), c, stages, form)
        assert np.array_equal(device.get(c), FORMS[form](parts)), stages


@wl.kernel
def major(
    a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, A_T: wl.const, B_T: wl.const, N: wl.const, K: wl.const
):
    """One product for each way in which operands can lie; rows of a in two blocks of 64."""
    sa = wl.shared((K, 128) if A_T else (128, K), a.dtype)
    sb = wl.shared((N, K) if B_T else (K, N), a.dtype)
    bar = wl.barrier()
    with wl.one_thread():
        bar.expect((128 + N) * K * 2)
        wl.copy_async(a[wl.ds(0, 128), wl.ds(0, K)], sa.T if A_T else sa, barrier=bar)
        wl.copy_async(b[wl.ds(0, K), wl.ds(0, N)], sb.T if B_T else sb, barrier=bar)
    bar.wait(0)
    acc = wl.dot_async(sa.T if A_T else sa, sb.T if B_T else sb, wl.zeros((128, N), wl.f32))
    wl.store(c[wl.ds(0, 128), wl.ds(0, N)], acc.wait())


@pytest.mark.parametrize(("n", "k"), [(16, 16), (32, 32), (64, 64), (96, 128), (256, 64)])
@pytest.mark.parametrize(("a_t", "b_t"), list(itertools.product([False, True], repeat=2)))
def test_operands_in_every_order(device, a_t, b_t, n, k):
    rng = np.random.default_rng(n)
    a, b = rng.integers(-4, 5, (128, k)), rng.integers(-4, 5, (k, n))
    given = [
        device.put_strided(m.T.astype(np.float16).copy().T if t else m.astype(np.float16))
        for m, t in ((a, a_t), (b, b_t))
    ]
    c = device.empty((128, n), np.float32)
    major[1](*given, c, a_t, b_t, n, k)
    assert np.array_equal(device.get(c), (a @ b).astype(np.float32))


@wl.kernel
def handed_over(x: wl.Tensor, y: wl.Tensor, n: wl.i32, PER: wl.const, ARRIVALS: wl.const):
    """Registers of one role to another through one shared tile, on barriers by hand."""
    tile = wl.shared((16, 32), wl.f32)
    full, empty = wl.barrier(1, ARRIVALS), wl.barrier(1, ARRIVALS)
    with wl.roles():
        with wl.role("write", warps=4):
            for k in wl.range(n):
                empty.wait(k % 2 ^ 1)
                tile.store(wl.load(x[k, wl.ds(0, 16), wl.ds(0, 32)]) + 1.0)
                full.arrive(per=PER)
        with wl.role("read", warps=4):
            for k in wl.range(n):
                full.wait(k % 2)
                t = tile.T.load()
                empty.arrive(per=PER)
                wl.store(y[k, wl.ds(0, 32), wl.ds(0, 16)], t)


@pytest.mark.parametrize(("per", "arrivals"), [("role", 1), ("warp", 4), ("thread", 128)])
def test_who_arrives(device, per, arrivals):
    x = np.random.default_rng(3).standard_normal((5, 16, 32)).astype(np.float32)
    y = device.empty((5, 32, 16), np.float32)
    handed_over[1](device.put(x), y, 5, per, arrivals)
    assert np.array_equal(device.get(y), (x + 1).transpose(0, 2, 1))

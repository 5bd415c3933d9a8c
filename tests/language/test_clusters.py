"""Blocks of a cluster: ranks, copies to several of them, items that they fill for each other, and
barriers of peers."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import warploom as wl

bf16 = ml_dtypes.bfloat16


@wl.kernel
def places(y: wl.Tensor):
    """y[block] = rank, rank along each axis, sizes."""
    block = wl.program_id(0) + wl.num_programs(0) * (
        wl.program_id(1) + wl.num_programs(1) * wl.program_id(2)
    )
    i = wl.arange(8)
    found = wl.where(i == 0, wl.cluster_rank(), wl.cluster_size())
    for axis in wl.unroll(3):
        found = wl.where(i == 1 + axis, wl.cluster_rank(axis), found)
        found = wl.where(i == 4 + axis, wl.cluster_size(axis), found)
    wl.store(y[block, wl.ds(0, 8)], found)


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((4, 1, 1), (1, 1, 1)),
        ((4, 1, 1), (2, 1, 1)),
        ((2, 4, 1), (1, 2, 1)),
        ((4, 2, 3), (2, 2, 1)),
        ((2, 2, 4), (2, 2, 2)),
        ((3, 2, 8), (1, 1, 8)),
        ((16, 1, 2), (16, 1, 1)),
        ((4, 6, 1), (4, 3, 1)),
    ],
)
def test_ranks_count_along_x_first(device, grid, cluster):
    y = device.empty((int(np.prod(grid)), 8), np.int32)
    places.launch(grid, cluster=cluster)(y)
    expected = []
    for z, b, x in itertools.product(*map(range, reversed(grid))):
        at = [n % c for n, c in zip((x, b, z), cluster, strict=True)]
        rank = at[0] + cluster[0] * (at[1] + cluster[1] * at[2])
        size = int(np.prod(cluster))
        expected.append([rank, *at, *cluster, size])
    assert device.get(y).tolist() == expected


@wl.kernel
def product(
    a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, BM: wl.const, BN: wl.const, BK: wl.const, S: wl.const
):
    """c = a · bᵀ by hand: blocks along AXIS have other columns and share a; b is each block's."""
    tile_a, tile_b = wl.shared((BM, BK), a.dtype, slots=S), wl.shared((BN, BK), b.dtype, slots=S)
    full, empty = wl.barrier(S), wl.barrier(S, arrivals=4 * wl.cluster_size())
    AXIS = 0 if wl.cluster_size(0) > 1 else 1
    n = wl.cluster_size()
    part = wl.cluster_rank() * (BM // n)
    row = wl.program_id(1 - AXIS) * BM
    column = wl.program_id(AXIS) * BN
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(a.shape[1] // BK):
                slot = k % S
                empty[slot].wait(k // S % 2 ^ 1)
                with wl.one_thread():
                    full[slot].expect((BM + BN) * BK * a.dtype.bytes)
                    mine = a[wl.ds(row + part, BM // n), wl.ds(k * BK, BK)]
                    where = tile_a[slot][wl.ds(part, BM // n), :]
                    everyone = wl.cluster_mask(AXIS)
                    wl.copy_async(mine, where, barrier=full[slot], multicast=everyone)
                    own = b[wl.ds(column, BN), wl.ds(k * BK, BK)]
                    wl.copy_async(own, tile_b[slot], barrier=full[slot])
        with wl.role("math", warps=4):
            acc = wl.zeros((BM, BN), wl.f32)
            for k in wl.range(a.shape[1] // BK):
                slot = k % S
                full[slot].wait(k // S % 2)
                acc = wl.dot_async(tile_a[slot], tile_b[slot].T, acc).wait()
                with wl.one_thread(per="warp"):
                    for rank in wl.unroll(n):
                        empty[slot].on(rank).arrive()
            wl.store(c[wl.ds(row, BM), wl.ds(column, BN)], acc)


@pytest.mark.case("C06")
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_one_operand_for_all_by_hand(device, size, axis, steps):
    rng = np.random.default_rng(size + steps)
    rows, columns = 2 * 64, 2 * size * 32
    a = rng.integers(-3, 4, (rows, 64 * steps)).astype(bf16)
    b = rng.integers(-3, 4, (columns, 64 * steps)).astype(bf16)
    c = device.put(np.full((rows, columns), np.nan, np.float32))
    grid, cluster = (2 * size, 2), (size, 1)
    if axis:
        grid, cluster = grid[::-1], cluster[::-1]
    product.launch(grid, cluster=cluster)(device.put(a), device.put(b), c, 64, 32, 64, 2)
    assert np.array_equal(device.get(c), a.astype(np.float32) @ b.astype(np.float32).T)


@wl.kernel
def shared_sums(
    x: wl.Tensor,
    y: wl.Tensor,
    tiles: wl.i32,
    steps: wl.i32,
    STAGES: wl.const,
    BEHIND: wl.const,
    REPLICAS: wl.const,
):
    """y[block, r, t] = Σ of the pieces of row block t of x; each block copies a part to all."""
    ring = wl.pipe(STAGES, slots=[wl.shared((32, 32), wl.f32)], cluster=True)
    PART = 32 // wl.cluster_size()
    part = wl.cluster_rank() * PART
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.range(tiles):
                for k in wl.range(steps):
                    with ring.put() as tile:
                        piece = x[wl.ds(t * 32 + part, PART), wl.ds(k * 32, 32)]
                        everyone = wl.cluster_mask(0, 1, 2)
                        wl.copy_async(piece, tile[wl.ds(part, PART), :], multicast=everyone)
        with wl.role("add", warps=2, replicas=REPLICAS) as r:
            block = wl.program_id(0) + wl.num_programs(0) * wl.program_id(1)
            for t in wl.range(tiles):
                total = wl.zeros((32, 32), wl.f32)
                for _ in wl.range(steps):
                    with ring.get(behind=BEHIND) as tile:
                        total = total + tile.load()
                wl.store(y[block, r, wl.ds(t * 32, 32), wl.ds(0, 32)], total)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (2, 2)])
def test_items_that_a_cluster_fills(device, stages, cluster):
    steps = sorted({0, 1, stages - 1, stages, stages + 1, 2 * stages + 1})
    blocks = 2 * cluster[0] * cluster[1]
    for count, behind in itertools.product(steps, range(min(stages, 2))):
        for replicas, tiles in ((1, 3), (2, 1)):
            x = (np.arange(32 * tiles * count * 32, dtype=np.float32) % 23).reshape(
                32 * tiles, count * 32
            )
            y = device.put(np.full((blocks, replicas, 32 * tiles, 32), -1, np.float32))
            launch = shared_sums.launch((2 * cluster[0], cluster[1]), cluster=cluster)
            launch(device.put(x), y, tiles, count, stages, behind, replicas)
            expected = x.reshape(32 * tiles, count, 32).sum(1)
            for seen in device.get(y).reshape(-1, 32 * tiles, 32):
                assert np.array_equal(seen, expected), (count, behind, replicas)


@wl.kernel
def dealt(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, steps: wl.i32, STAGES: wl.const):
    """Items dealt in turn to two replicas, as all blocks of a cluster do alike. Two producers: one
    copies its part of a tile for all blocks, one stores a tile of its own block."""
    slots = [wl.shared((32, 32), wl.f32), wl.shared((8, 32), wl.f32)]
    ring = wl.pipe(STAGES, slots=slots, deliver="one", cluster=True)
    PART = 32 // wl.cluster_size()
    part, block = wl.cluster_rank() * PART, wl.program_id(0)
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(steps):
                with ring.put() as (all, _):
                    piece = x[wl.ds(part, PART), wl.ds(k * 32, 32)]
                    wl.copy_async(piece, all[wl.ds(part, PART), :], multicast=wl.cluster_mask(0))
        with wl.role("store", warps=2):
            for k in wl.range(steps):
                with ring.put() as (_, own):
                    own.store(wl.full((8, 32), 1, wl.f32) * (k + 10 * block).cast(wl.f32))
        with wl.role("add", warps=2, replicas=2) as r:
            total, marks = wl.zeros((32, 32), wl.f32), wl.zeros((8, 32), wl.f32)
            for k in wl.range(steps):
                if k % 2 == r:
                    with ring.get() as (all, own):
                        total = total + all.load()
                        marks = marks + own.load()
                else:
                    ring.skip(1)
            wl.store(y[block, r, wl.ds(0, 32), wl.ds(0, 32)], total)
            wl.store(z[block, r, wl.ds(0, 8), wl.ds(0, 32)], marks)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_items_dealt_to_one_replica_of_each_block(device, stages, cluster):
    for steps in sorted({0, 1, stages, stages + 1, 2 * stages + 1}):
        x = (np.arange(32 * 32 * steps, dtype=np.float32) % 29).reshape(32, -1)
        y, z = device.empty((4, 2, 32, 32), np.float32), device.empty((4, 2, 8, 32), np.float32)
        dealt.launch(4, cluster=cluster)(device.put(x), y, z, steps, stages)
        pieces = x.reshape(32, steps, 32)
        for block, r in itertools.product(range(4), range(2)):
            assert np.array_equal(device.get(y)[block, r], pieces[:, r::2].sum(1))
            mark = sum(k + 10 * block for k in range(r, steps, 2))
            assert (device.get(z)[block, r] == mark).all()


@wl.kernel
def crossed(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, S: wl.const):
    """c = a · bᵀ: blocks of a row of the cluster share a, those of a column share b."""
    ring = wl.pipe(S, [wl.shared((64, 64), a.dtype), wl.shared((64, 64), b.dtype)], cluster=True)
    row, column = wl.program_id(1) * 64, wl.program_id(0) * 64
    WIDE, HIGH = 64 // wl.cluster_size(0), 64 // wl.cluster_size(1)
    x, y = wl.cluster_rank(0) * WIDE, wl.cluster_rank(1) * HIGH
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, a.shape[1], 64):
                with ring.put() as (sa, sb):
                    part = sa[wl.ds(x, WIDE), :]
                    window = a[wl.ds(row + x, WIDE), wl.ds(k, 64)]
                    wl.copy_async(window, part, multicast=wl.cluster_mask(0))
                    part = sb[wl.ds(y, HIGH), :]
                    window = b[wl.ds(column + y, HIGH), wl.ds(k, 64)]
                    wl.copy_async(window, part, multicast=wl.cluster_mask(1))
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for _ in wl.range(0, a.shape[1], 64):
                item = ring.take()
                acc = wl.dot_async(item[0], item[1].T, acc)
                item.release(after=acc, behind=1 if S > 1 else 0)
            wl.store(c[wl.ds(row, 64), wl.ds(column, 64)], acc.wait())


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (1, 2), (2, 2), (4, 2)])
@pytest.mark.parametrize("stages", [1, 3])
def test_two_operands_along_two_axes(device, cluster, stages):
    rng = np.random.default_rng(stages)
    wide, high = 64 * 4, 64 * 2
    for steps in (0, 1, 4, 7):
        a = rng.integers(-3, 4, (high, 64 * steps)).astype(bf16)
        b = rng.integers(-3, 4, (wide, 64 * steps)).astype(bf16)
        c = device.put(np.full((high, wide), np.nan, np.float32))
        crossed.launch((4, 2), cluster=cluster)(device.put(a), device.put(b), c, stages)
        assert np.array_equal(device.get(c), a.astype(np.float32) @ b.astype(np.float32).T)


@wl.kernel
def passed_on(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, ROUNDS: wl.const):
    """Each block writes to global memory, tells the next one, and reads what the last one wrote."""
    told = wl.barrier(1)
    n, rank = wl.cluster_size(), wl.cluster_rank()
    for k in wl.range(ROUNDS):
        mine = wl.load(x[rank, wl.ds(0, 128)])
        wl.store(y[k, rank, wl.ds(0, 128)], mine + k.cast(wl.f32))
        told.on((rank + 1) % n).arrive()
        told.wait(k % 2)
        wl.store(z[k, rank, wl.ds(0, 128)], wl.load(y[k, (rank + n - 1) % n, wl.ds(0, 128)]))
        wl.cluster_sync()


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_arrivals_at_the_next_block(device, size):
    x = np.random.default_rng(0).standard_normal((size, 128)).astype(np.float32)
    y, z = device.empty((5, size, 128), np.float32), device.empty((5, size, 128), np.float32)
    passed_on.launch(size, cluster=size)(device.put(x), y, z, 5)
    expected = np.stack([np.roll(x, 1, 0) + np.float32(k) for k in range(5)])
    assert np.array_equal(device.get(z), expected)


@wl.kernel
def hurried(x: wl.Tensor, y: wl.Tensor, spins: wl.i32):
    """Rank 0 is late, and tells everybody, who add one up and end."""
    told = wl.barrier()
    total = wl.zeros((128,), wl.f32)
    if wl.cluster_rank() == 0:
        for _ in wl.range(spins):
            total = total + wl.load(x[wl.ds(0, 128)])
        for rank in wl.unroll(1, wl.cluster_size()):
            told.on(rank).arrive()
    else:
        told.wait(0)
    block = wl.program_id(0)
    held = wl.load(y[block, wl.ds(0, 128)])
    wl.store(y[block, wl.ds(0, 128)], held + total + 1.0)


@pytest.mark.case("C07")
@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_launches_one_after_another_of_blocks_of_unequal_speed(device, size):
    """SMs are taken over by the next launch while a block of the last one may still be late."""
    launches, spins = (200, 1000) if device.name == "gpu" else (5, 20)
    x, y = device.put(np.zeros(128, np.float32)), device.put(np.zeros((size * 16, 128), np.float32))
    for _ in range(launches):
        hurried.launch(size * 16, cluster=size)(x, y, spins)
    assert (device.get(y) == launches).all()

"""Tiles of peers: exchanges between the blocks of a cluster by stores at once, stores done later
and copies, round after round."""

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def pushed_sums(x: wl.Tensor, y: wl.Tensor, rounds: wl.i32, N: wl.const, WARPS: wl.const = 2):
    """Round after round each block sends N numbers to all, and all add them up in order of rank.
    Two sets of slots: a round's go to those that all have read two rounds before."""
    SIZE = wl.cluster_size()
    came = wl.barrier(2)
    parts = wl.shared((2 * SIZE, N), wl.f32, swizzle=0)
    block = wl.program_id(0) + wl.num_programs(0) * wl.program_id(1)
    rank = wl.cluster_rank()
    with wl.roles():
        with wl.role("idle", warps=1):
            pass
        with wl.role("sum", warps=WARPS):
            mine = wl.load(x[wl.ds(block, 1), wl.ds(0, N)])
            for i in wl.range(rounds):
                slot = i % 2
                with wl.one_thread():
                    came[slot].expect(SIZE * N * 4)
                for peer in wl.range(SIZE):
                    row = parts.on(peer)[wl.ds(slot * SIZE + rank, 1), :]
                    wl.store_async(row, mine, came[slot])
                came[slot].wait(i // 2 % 2)
                total = wl.zeros((1, N), wl.f32)
                for r in wl.unroll(SIZE):
                    total = total + parts[wl.ds(slot * SIZE + r, 1), :].load()
                wl.store(y[i, wl.ds(block, 1), wl.ds(0, N)], total)
                mine = total * 0.5 + block.cast(wl.f32)


def expected_sums(x: np.ndarray, size: int, rounds: int) -> np.ndarray:
    found, mine = [], x
    for _ in range(rounds):
        total = np.zeros((len(x) // size, x.shape[1]), np.float32)
        for r in range(size):
            total = total + mine.reshape(-1, size, x.shape[1])[:, r]
        found.append(np.repeat(total, size, 0))
        mine = found[-1] * np.float32(0.5) + np.arange(len(x), dtype=np.float32)[:, None]
    return np.array(found).reshape(rounds, *x.shape)


@pytest.mark.parametrize("n", [1, 33, 128])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 11, 16])
def test_sums_by_pushes(device, size, n):
    for rounds in (0, 1, 2, 5):
        x = np.random.default_rng(size).standard_normal((2 * size, n)).astype(np.float32)
        y = device.put(np.full((rounds, *x.shape), np.nan, np.float32))
        pushed_sums.launch(2 * size, cluster=size)(device.put(x), y, rounds, n)
        assert np.array_equal(device.get(y), expected_sums(x, size, rounds))


@pytest.mark.parametrize("cluster", [(1, 2), (2, 2)])
def test_sums_in_clusters_of_other_shapes(device, cluster):
    """Blocks of a cluster along y have other numbers, but their ranks count alike."""
    size, grid = cluster[0] * cluster[1], (2, 2)
    x = np.random.default_rng(size).integers(-9, 10, (4, 8)).astype(np.float32)
    y = device.put(np.full((1, *x.shape), np.nan, np.float32))
    pushed_sums.launch(grid, cluster=cluster)(device.put(x), y, 1, 8)
    groups = [[0, 2], [1, 3]] if cluster == (1, 2) else [[0, 1, 2, 3]]
    for group in groups:
        assert (device.get(y)[0, group] == x[group].sum(0)).all(), size


@wl.kernel
def relayed(x: wl.Tensor, y: wl.Tensor, S: wl.const, N: wl.const):
    """Rank 0 copies rows of x to slots of rank 1, which writes them to y and hands each back."""
    slots = wl.shared((S, N), x.dtype, swizzle=0)
    stage = wl.shared((S, N), x.dtype, swizzle=0)
    here, full, empty = wl.barrier(S), wl.barrier(S), wl.barrier(S)
    with wl.roles():
        with wl.role("send", warps=1):
            if wl.cluster_rank() == 0:
                for i in wl.range(x.shape[0]):
                    s, lap = i % S, i // S % 2
                    row = stage[wl.ds(s, 1), :]
                    empty[s].wait(lap ^ 1)
                    with wl.one_thread():
                        here[s].expect(N * x.dtype.bytes)
                        wl.copy_async(x[wl.ds(i, 1), wl.ds(0, N)], row, barrier=here[s])
                    here[s].wait(lap)
                    with wl.one_thread():
                        wl.copy_bulk(row, slots.on(1)[wl.ds(s, 1), :], barrier=full[s])
        with wl.role("write", warps=2):
            if wl.cluster_rank() == 1:
                for i in wl.range(x.shape[0]):
                    s = i % S
                    with wl.one_thread():
                        full[s].expect(N * x.dtype.bytes)
                    full[s].wait(i // S % 2)
                    wl.store(y[wl.ds(i, 1), wl.ds(0, N)], slots[wl.ds(s, 1), :].load())
                    empty[s].on(0).arrive()


@pytest.mark.parametrize("stages", [2, 3])
def test_copies_between_blocks_through_slots(device, stages):
    for rows in (0, 1, stages - 1, stages, stages + 1, 3 * stages + 1):
        x = np.random.default_rng(rows).integers(-9, 10, (rows, 128)).astype(np.float16)
        y = device.put(np.zeros_like(x))
        relayed.launch(2, cluster=2)(device.put(x), y, stages, 128)
        assert np.array_equal(device.get(y), x)


@wl.kernel
def turned(x: wl.Tensor, y: wl.Tensor, at: wl.i32, SWIZZLE: wl.const):
    """y[block] is a window of x of rank `at`, turned; each block stores half of it to its peer."""
    tile = wl.shared((32, 64), x.dtype, swizzle=SWIZZLE)
    block, rank = wl.program_id(0), wl.cluster_rank()
    half = wl.load(x[block, wl.ds(0, 32), wl.ds(0, 64)])
    tile.on(1 - rank).store(half)
    wl.cluster_sync()
    part = tile.on(at)[wl.ds(8, 16), :].T
    wl.store(y[block, wl.ds(0, 64), wl.ds(0, 16)], part.load())


@pytest.mark.parametrize("swizzle", [0, 64, 128])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_windows_and_turned_views(device, swizzle, dtype):
    x = np.random.default_rng(0).standard_normal((2, 32, 64)).astype(dtype)
    for at in (0, 1):
        y = device.put(np.zeros((2, 64, 16), dtype))
        turned.launch(2, cluster=2)(device.put(x), y, at, swizzle)
        assert np.array_equal(device.get(y), np.stack([x[1 - at, 8:24].T] * 2))


@wl.kernel
def multiplied(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, HOW: wl.const):
    """Each block sends its half of A to both; c[block] = A · b[block]ᵀ. What came by ordinary
    stores takes a fence before the matrix unit reads it."""
    left, right = wl.shared((64, 64), wl.f16), wl.shared((64, 64), wl.f16)
    came = wl.barrier(1)
    block, rank = wl.program_id(0), wl.cluster_rank()
    with wl.one_thread():
        came.expect(64 * 64 * 2)
    part = wl.load(a[wl.ds(rank * 32, 32), wl.ds(0, 64)])
    right.store(wl.load(b[block, wl.ds(0, 64), wl.ds(0, 64)]))
    for peer in wl.range(2):
        wl.store_async(left.on(peer)[wl.ds(rank * 32, 32), :], part, came)
    came.wait(0)
    wl.fence_async()
    acc = wl.dot_async(left, right.T, wl.zeros((64, 64), wl.f32)).wait()
    wl.store(c[block, wl.ds(0, 64), wl.ds(0, 64)], acc)


def test_what_came_is_an_operand(device):
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (64, 64)).astype(np.float16)
    b = rng.integers(-3, 4, (2, 64, 64)).astype(np.float16)
    c = device.put(np.zeros((2, 64, 64), np.float32))
    multiplied.launch(2, cluster=2)(device.put(a), device.put(b), c, 0)
    wide = a.astype(np.float32), b.astype(np.float32)
    assert np.array_equal(device.get(c), np.stack([wide[0] @ wide[1][i].T for i in range(2)]))

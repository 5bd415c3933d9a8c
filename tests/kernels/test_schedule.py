"""The schedules of the library against their lists: order, shares of the blocks, edges."""

import numpy as np
import pytest

import warploom as wl
from warploom.kernels.schedule import Dynamic, Grid, Shares, reference


@wl.kernel
def numbered(out: wl.Tensor, rows: wl.i32, columns: wl.i32, batch: wl.i32 = None, G: wl.const = 8):
    """out[t]: the place of tile t, and the block that has it."""
    grid = Grid(rows, columns, batch, GROUP=G)
    for t in wl.tiles(grid):
        number, row, column = grid.place(t)
        wl.store(out[t, 0], number)
        wl.store(out[t, 1], row)
        wl.store(out[t, 2], column)
        wl.store(out[t, 3], wl.program_id(0) + 1)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("group", [1, 3, 8])
@pytest.mark.parametrize(
    ("rows", "columns", "batch"), [(1, 1, 1), (7, 4, None), (8, 3, 2), (16, 1, None), (0, 5, 2)]
)
def test_grid(device, rows, columns, batch, group, blocks):
    places = list(reference.grid(rows, columns, batch or 1, group))
    out = device.put(np.zeros((len(places) + 2, 4), np.int32))
    numbered[blocks](out, rows, columns, batch, G=group)
    expected = [(*place, at % blocks + 1) for at, place in enumerate(places)]
    assert device.get(out).tolist() == [*map(list, expected), [0] * 4, [0] * 4]


@wl.kernel
def marked(out: wl.Tensor, rows: wl.i32, columns: wl.i32, G: wl.const):
    """out[row, column] += 1 for every tile, in rows and columns around the grid too."""
    grid = Grid(rows, columns, None, GROUP=G)
    for t in wl.tiles(grid):
        _, row, column = grid.place(t)
        wl.store(out[row, column], wl.load(out[row, column]) + 1)


@pytest.mark.parametrize("cluster", [(2, 1), (1, 2), (2, 2), (4, 1)])
@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 4), (8, 3), (0, 5)])
def test_grid_of_clusters(device, rows, columns, group, cluster):
    """Every tile once, and those past the edge that fill the last clusters."""
    high, wide = cluster
    out = device.put(np.zeros((rows + high, columns + wide), np.int32))
    marked.launch((3 * high, wide), cluster=cluster)(out, rows, columns, G=group)
    expected = np.zeros((rows + high, columns + wide), np.int32)
    expected[: -(-rows // high) * high, : -(-columns // wide) * wide] = 1
    assert np.array_equal(device.get(out), expected)


@wl.kernel
def shared(out: wl.Tensor, tiles: wl.i32, steps: wl.i32, MOST: wl.const):
    """out[block, number]: tile, lo, hi of each part, and the first and last block of the tile."""
    shares = Shares(tiles, steps)
    for at in wl.tiles(shares):
        tile, lo, hi = shares.part(at)
        first, last = shares.owners(tile)
        number = tile - shares.first() // steps
        for column, value in enumerate((tile, lo, hi, first, last)):
            wl.store(out[wl.program_id(0), number, column], value)


@pytest.mark.parametrize(
    ("tiles", "steps", "blocks"),
    [(1, 1, 1), (1, 9, 4), (4, 9, 5), (3, 2, 6), (7, 3, 2), (12, 1, 5), (2, 5, 10)],
)
def test_shares(device, tiles, steps, blocks):
    parts = reference.shares(tiles, steps, blocks)
    owners = {
        tile: sorted(block for block, own in enumerate(parts) if tile in {t for t, _, _ in own})
        for tile in range(tiles)
    }
    # Every step once, in order, and shares that differ by one step at most.
    steps_of = [sum(hi - lo for _, lo, hi in own) for own in parts]
    assert sum(steps_of) == tiles * steps and max(steps_of) - min(steps_of) <= 1
    out = device.put(np.full((blocks, tiles + 1, 5), -1, np.int32))
    shared[blocks](out, tiles, steps, MOST=tiles)
    expected = np.full((blocks, tiles + 1, 5), -1, np.int32)
    for block, own in enumerate(parts):
        for number, (tile, lo, hi) in enumerate(own):
            expected[block, number] = tile, lo, hi, owners[tile][0], owners[tile][-1]
    assert np.array_equal(device.get(out), expected)


@wl.kernel
def drawn(x: wl.Tensor, y: wl.Tensor, counter: wl.Tensor, n: wl.i32, S: wl.const, R: wl.const):
    """Rows of x to y by a role that copies and R that store: all follow the same numbers. Tile t
    takes t % 7 turns, so that blocks are free at different times."""
    numbers = wl.pipe(S, slots=[wl.shared((1,), wl.i32)])
    tiles = Dynamic(counter, numbers, n)
    ring = wl.pipe(2, slots=[wl.shared((8, 32), wl.f32)])
    with wl.roles():
        with wl.role("schedule", warps=1):
            tiles.deal()
        with wl.role("load", warps=1):
            for t in wl.tiles(tiles):
                for _ in wl.range(t % 7 + 1):
                    with ring.put() as slot:
                        wl.copy_async(x[wl.ds(t * 8, 8), wl.ds(0, 32)], slot)
        with wl.role("store", warps=4, replicas=R) as r:
            for t in wl.tiles(tiles):
                for _ in wl.range(t % 7 + 1):
                    with ring.get() as slot:
                        part = slot.load() + wl.load(y[r, wl.ds(t * 8, 8), wl.ds(0, 32)])
                    wl.store(y[r, wl.ds(t * 8, 8), wl.ds(0, 32)], part)


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("blocks", [1, 3, 40])
def test_dynamic(device, stages, replicas, blocks):
    counter = device.put(np.zeros(1, np.int32))
    for count in (0, 1, 2, 13, 30):
        x = np.arange(max(8 * count, 8) * 32, dtype=np.float32).reshape(-1, 32)
        y = device.put(np.zeros((replicas, *x.shape), np.float32))
        drawn[blocks](device.put(x), y, counter, count, S=stages, R=replicas)
        turns = np.repeat(np.arange(max(count, 1)) % 7 + 1, 8)[:, None] * (count > 0)
        assert np.array_equal(device.get(y), np.stack([x * turns] * replicas)), count
        assert not device.get(counter).any()


def test_dynamic_is_ordered():
    """Only atomic operations touch the counter: blocks are not ordered among each other."""
    x, y = np.ones((80, 32), np.float32), np.zeros((2, 80, 32), np.float32)
    call = drawn.launch(3).call(x, y, np.zeros(1, np.int32), 10, S=2, R=2)
    found = call.check()
    assert found.clean, found.text()

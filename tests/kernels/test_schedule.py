"""The schedules of the library against their lists: order, shares of the blocks, edges."""

import numpy as np
import pytest

import warploom as wl
from warploom.kernels.schedule import Grid, reference


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

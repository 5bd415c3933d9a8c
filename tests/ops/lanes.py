"""Exchange among lanes: the steps of a butterfly, lanes by number, votes, numbers of threads."""

import numpy as np

import warploom as wl
from tests.ops import tile
from tests.ops.trial import ALL, NUMBERS, Case, Trial, spread

_TILES = {str(case): case for case in tile.CASES}

CASES = [
    Case("lanes.shuffle_xor", dtype, _TILES[f"tile.reduce-{dtype}-max-axis1-5x33"].make)
    for dtype in NUMBERS
]
CASES.append(Case("lanes.shuffle_xor", "bool", _TILES["tile.reduce-bool"].make))


@wl.kernel
def swaps(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor):
    """Pairs of lanes swap, and lane 5 tells all of its warp."""
    t = wl.load(x[wl.ds(0, 96)])
    wl.store(y[wl.ds(0, 96)], wl.shuffle(t, wl.lane_id() ^ 1))
    wl.store(z[wl.ds(0, 96)], wl.shuffle(t, 5 + 32))


def swapped(op: str, dtype: str) -> Case:
    def make(device):
        x = spread(dtype, (96,))
        y, z = device.empty(96, x.dtype), device.empty(96, x.dtype)
        at = np.arange(96)
        call = swaps.launch(1, warps=3).call(device.put(x), y, z)
        return Trial(call, [(y, x[at ^ 1]), (z, x[at // 32 * 32 + 5])])

    return Case(op, dtype, make, "swaps")


@wl.kernel
def numbers(x: wl.Tensor, y: wl.Tensor):
    wl.store(y[0, wl.ds(0, 64)], wl.thread_id())
    wl.store(y[1, wl.ds(0, 64)], wl.lane_id())
    wl.store(y[2, wl.ds(0, 64)], wl.warp_id())
    wl.store(y[3, wl.ds(0, 64)], wl.ballot(wl.load(x[wl.ds(0, 64)]) != 0))


def numbered(op: str) -> Case:
    def make(device):
        x = np.zeros(64, np.int32)
        x[[0, 3, 31, 33]] = 1
        y = device.empty((4, 64), np.int32)
        i = np.arange(64)
        masks = np.where(i < 32, 1 | 8 | -(2**31), 2)
        expected = np.stack([i, i % 32, i // 32, masks]).astype(np.int32)
        call = numbers.launch(1, warps=2).call(device.put(x), y)
        return Trial(call, [(y, expected)])

    return Case(op, "", make, "numbers")


CASES += [swapped(f"lanes.{name}", dtype) for name in ("read", "shuffle") for dtype in ALL]
CASES += [numbered(f"lanes.{name}") for name in ("number", "vote", "ballot")]

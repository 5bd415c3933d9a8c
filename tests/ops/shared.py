"""Tiles in shared memory: slots, windows, transposed views, moves to and from registers."""

import numpy as np

import warploom as wl
from tests.language.test_matrices import call_of
from tests.ops.trial import Case, Trial, spread
from warploom.base.dtypes import BY_NAME

DTYPES = ("f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i32", "bool")


@wl.kernel
def turns(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, SWIZZLE: wl.const):
    """y = xᵀ, and z is a window of x, through a slot of shared memory."""
    tiles = wl.shared((32, 128), x.dtype, slots=2, swizzle=SWIZZLE)
    tile = tiles[1]
    tile.store(wl.load(x[wl.ds(0, 32), wl.ds(0, 128)]))
    wl.store(y[wl.ds(0, 128), wl.ds(0, 32)], tile.T.load())
    part = tile[wl.ds(8, 16), wl.ds(64, 64)] if SWIZZLE else tile[wl.ds(8, 16), :]
    wl.store(z[wl.ds(0, part.shape[0]), wl.ds(0, part.shape[1])], part.load())


def turned(op: str, dtype: str, swizzle: int) -> Case:
    def make(device):
        x = spread(dtype or "f16", (32, 128))
        y = device.empty((128, 32), x.dtype)
        expected = np.ascontiguousarray(x[8:24, 64:] if swizzle else x[8:24])
        z = device.empty(expected.shape, x.dtype)
        call = turns.launch(1).call(device.put(x), y, z, SWIZZLE=swizzle)
        return Trial(call, [(y, np.ascontiguousarray(x.T)), (z, expected)])

    return Case(op, dtype, make, f"swizzle{swizzle}")


CASES = [turned(f"shared.{name}", dtype, 0) for name in ("load", "store") for dtype in DTYPES]
CASES += [turned("shared.load", "f16", swizzle) for swizzle in (32, 64, 128)]
CASES += [
    turned(op, "", swizzle)
    for op in ("shared.alloc", "shared.slot", "shared.permute", "shared.window")
    for swizzle in (0, 128)
]


def by_matrices(op: str, dtype: str, turned: bool) -> Case:
    def make(device):
        call, y, expected = call_of(device, 64, 64, BY_NAME[dtype], 32, turned, True)
        return Trial(call, [(y, expected.astype(y.dtype))])

    return Case(op, dtype, make, "turned" if turned else "")


CASES += [
    by_matrices(f"shared_memory.{name}", dtype, turned)
    for name in ("store_matrices", "load_matrices")
    for dtype in ("f16", "bf16")
    for turned in (False, True)
]

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


@wl.kernel
def picks(x: wl.Tensor, at: wl.Tensor, y: wl.Tensor, z: wl.Tensor, AXIS: wl.const, S: wl.const):
    """y = elements of x by index tiles along an axis, z has them in their places; some are
    outside."""
    tile = wl.shared((16, 64), x.dtype, swizzle=S)
    out = wl.shared((16, 64), x.dtype, swizzle=S)
    tile.store(wl.load(x[wl.ds(0, 16), wl.ds(0, 64)]))
    out.store(wl.full((16, 64), False if x.dtype == wl.boolean else 0, x.dtype))
    index = wl.load(at[wl.ds(0, at_rows(AXIS)), wl.ds(0, 40)])
    found = tile.gather(index, axis=AXIS)
    wl.store(y[wl.ds(0, at_rows(AXIS)), wl.ds(0, 40)], found)
    out.scatter(index, found, axis=AXIS - 2)
    wl.store(z[wl.ds(0, 16), wl.ds(0, 64)], out.load())


@wl.function
def at_rows(AXIS):
    return 20 if AXIS == 0 else 12


def picked(op: str, dtype: str, axis: int, swizzle: int) -> Case:
    def make(device):
        x, rng = spread(dtype, (16, 64)), np.random.default_rng(axis)
        rows, extent = (20, 16) if axis == 0 else (12, 64)
        if axis == 0:
            at = np.stack([rng.permutation(rows) for _ in range(40)], 1) - 2
        else:
            at = np.stack([rng.permutation(70)[:40] for _ in range(rows)]) - 2
        i, j = np.nonzero((at >= 0) & (at < extent))
        places = (at[i, j], j) if axis == 0 else (i, at[i, j])
        found, z = np.zeros((rows, 40), x.dtype), np.zeros_like(x)
        found[i, j] = x[places]
        z[places] = found[i, j]
        y, out = device.empty(found.shape, x.dtype), device.empty(x.shape, x.dtype)
        arrays = device.put(x), device.put(at.astype(np.int32)), y, out
        call = picks.launch(1, warps=2).call(*arrays, AXIS=axis, S=swizzle)
        return Trial(call, [(y, found), (out, z)])

    return Case(op, dtype, make, f"axis{axis}-swizzle{swizzle}")


@wl.kernel
def picks_rows(x: wl.Tensor, at: wl.Tensor, y: wl.Tensor, z: wl.Tensor, S: wl.const):
    """y = rows of x, each by one index for all its columns; z has them in their places."""
    tile = wl.shared((16, 64), x.dtype, swizzle=S)
    out = wl.shared((16, 64), x.dtype, swizzle=S)
    tile.store(wl.load(x[wl.ds(0, 16), wl.ds(0, 64)]))
    out.store(wl.full((16, 64), False if x.dtype == wl.boolean else 0, x.dtype))
    index = wl.load(at[wl.ds(0, 20)])[:, None] + wl.zeros((1, 40), wl.i32)
    found = tile.gather(index)
    wl.store(y[wl.ds(0, 20), wl.ds(0, 40)], found)
    out.scatter(index, found)
    wl.store(z[wl.ds(0, 16), wl.ds(0, 64)], out.load())


def picked_rows(op: str, dtype: str, swizzle: int) -> Case:
    """Neighbours that one index serves move in one access."""

    def make(device):
        x = spread(dtype, (16, 64))
        at = np.random.default_rng(3).permutation(20).astype(np.int32) - 2
        (i,) = np.nonzero((at >= 0) & (at < 16))
        found, z = np.zeros((20, 40), x.dtype), np.zeros_like(x)
        found[i] = x[at[i], :40]
        z[at[i], :40] = found[i]
        y, out = device.empty(found.shape, x.dtype), device.empty(x.shape, x.dtype)
        arrays = device.put(x), device.put(at), y, out
        call = picks_rows.launch(1, warps=2).call(*arrays, S=swizzle)
        return Trial(call, [(y, found), (out, z)])

    return Case(op, dtype, make, f"rows-swizzle{swizzle}")


@wl.kernel
def picks_of_rank(x: wl.Tensor, at: wl.Tensor, y: wl.Tensor, RANK: wl.const):
    """y = elements of x at the indices of the second axis from the end; then back in their
    places."""
    if RANK == 1:
        line = wl.shared((200,), x.dtype, swizzle=0)
        line.store(wl.load(x[wl.ds(0, 200)]))
        index = wl.load(at[wl.ds(0, 200)])
        found = line.gather(index, 0)
        line.scatter(index, found + 1.0, 0)
        wl.store(y[0, wl.ds(0, 200)], found)
        wl.store(y[1, wl.ds(0, 200)], line.load())
    else:
        cube = wl.shared((4, 10, 16), x.dtype, swizzle=0)
        cube.store(wl.load(x[wl.ds(0, 4), wl.ds(0, 10), wl.ds(0, 16)]))
        index = wl.load(at[wl.ds(0, 4), wl.ds(0, 10), wl.ds(0, 16)])
        found = cube.gather(index, 1)
        cube.scatter(index, found + 1.0, 1)
        wl.store(y[0, wl.ds(0, 4), wl.ds(0, 10), wl.ds(0, 16)], found)
        wl.store(y[1, wl.ds(0, 4), wl.ds(0, 10), wl.ds(0, 16)], cube.load())


@wl.kernel
def picks_by_lanes(x: wl.Tensor, y: wl.Tensor):
    """Every four lanes read one place; those at multiples of 4 write it, turned around."""
    line = wl.shared((16,), x.dtype, swizzle=0)
    line.store(wl.load(x[wl.ds(0, 16)]))
    lane = wl.lane_id()
    found = line.gather(lane // 4 + 4)
    wl.store(y[0, wl.ds(0, 32)], found)
    line.scatter(wl.where(lane % 4 == 0, 7 - lane // 4, -1), found)
    wl.store(y[1, wl.ds(0, 16)], line.load())


def picked_by_lanes(op: str, dtype: str) -> Case:
    def make(device):
        x = spread(dtype, (16,))
        expected = np.zeros((2, 32), x.dtype)
        expected[0] = np.repeat(x[4:12], 4)
        expected[1, :16] = np.concatenate([x[4:12][::-1], x[8:]])
        y = device.put(np.zeros((2, 32), x.dtype))
        call = picks_by_lanes.launch(1, warps=1).call(device.put(x), y)
        return Trial(call, [(y, expected)])

    return Case(op, dtype, make, "lanes")


def picked_of_rank(op: str, rank: int) -> Case:
    def make(device):
        rng = np.random.default_rng(rank)
        shape, axis = ((200,), 0) if rank == 1 else ((4, 10, 16), 1)
        x = rng.integers(-9, 9, shape).astype(np.float32)
        at = rng.permuted(np.indices(shape)[axis], axis=axis).astype(np.int32)
        found = np.take_along_axis(x, at, axis)
        y = device.empty((2, *shape), x.dtype)
        call = picks_of_rank.launch(1, warps=4).call(device.put(x), device.put(at), y, RANK=rank)
        return Trial(call, [(y, np.stack([found, x + 1]))])

    return Case(op, "f32", make, f"rank{rank}")


@wl.kernel
def elements(x: wl.Tensor, at: wl.Tensor, y: wl.Tensor, S: wl.const):
    """y[i] = the element of x at row i of `at`; the last ones are outside, and give zero."""
    tiles = wl.shared((16, 64), x.dtype, slots=2, swizzle=S)
    tile = tiles[1]
    tile.store(wl.load(x[wl.ds(0, 16), wl.ds(0, 64)]))
    for i in wl.range(at.shape[0]):
        found = tile[wl.load(at[i, 0]), wl.load(at[i, 1])]
        wl.store(y[wl.ds(i, 1)], wl.full((1,), found, x.dtype))
    turned = tile.T
    wl.store(y[wl.ds(at.shape[0], 1)], wl.full((1,), turned[63, 3], x.dtype))


def one_by_one(op: str, dtype: str, swizzle: int) -> Case:
    def make(device):
        x = spread(dtype, (16, 64))
        inside = [(0, 0), (15, 63), (7, 8), (8, 7), (1, 62), (3, 33), (12, 40)]
        outside = [(16, 0), (0, 64), (-1, 5), (3, -1)]
        at = np.array(inside + outside, np.int32)
        expected = np.zeros(len(at) + 1, x.dtype)
        expected[: len(inside)] = x[tuple(at[: len(inside)].T)]
        expected[-1] = x[3, 63]
        y = device.empty(expected.shape, x.dtype)
        call = elements.launch(1).call(device.put(x), device.put(at), y, S=swizzle)
        return Trial(call, [(y, expected)])

    return Case(op, dtype, make, f"swizzle{swizzle}")


@wl.kernel
def reshaped(x: wl.Tensor, y: wl.Tensor):
    """y is x in rows of another length; through slots of shared memory."""
    tiles = wl.shared((8, 32), wl.f32, slots=2, swizzle=0)
    tiles[1].store(wl.load(x[wl.ds(0, 8), wl.ds(0, 32)]))
    wl.store(y[wl.ds(0, 4), wl.ds(0, 64)], tiles.reshape((4, 64))[1].load())


def other_shape(op: str) -> Case:
    def make(device):
        x = spread("f32", (8, 32))
        y = device.empty((4, 64), x.dtype)
        return Trial(reshaped.launch(1).call(device.put(x), y), [(y, x.reshape(4, 64))])

    return Case(op, "", make)


CASES += [
    picked(f"shared.{name}", dtype, axis, 0)
    for name in ("gather", "scatter")
    for dtype in DTYPES
    for axis in (0, 1)
]
CASES += [
    picked_rows(f"shared.{name}", dtype, swizzle)
    for name in ("gather", "scatter")
    for dtype, swizzle in (*((d, 0) for d in DTYPES), ("f32", 128), ("bf16", 64))
]
CASES += [picked(f"shared.{name}", "f32", 1, 128) for name in ("gather", "scatter")]
CASES += [picked("shared.gather", "f32", 0, 32), other_shape("shared.reshape")]


@wl.kernel
def sides(x: wl.Tensor, z: wl.Tensor, SWIZZLE: wl.const):
    """Halves of x go through two rings that lie side by side, slot by slot, on a ring of f32."""
    large = wl.shared((32, 32), wl.f32, slots=2, swizzle=SWIZZLE)
    left = wl.shared((32, 32), wl.f16, slots=2, swizzle=0, alias=large)
    right = wl.shared((16, 32), wl.f16, slots=4, swizzle=0, alias=wl.behind(left))
    bits = large.reinterpret(wl.i32)
    for slot in wl.unroll(2):
        bits[slot].store(wl.full((32, 32), -1, wl.i32))
    for slot in wl.unroll(2):
        left[slot].store(wl.load(x[wl.ds(slot * 32, 32), wl.ds(0, 32)]))
        right[2 * slot].store(wl.load(x[wl.ds(slot * 32, 16), wl.ds(32, 32)]))
        right[2 * slot + 1].store(wl.load(x[wl.ds(slot * 32 + 16, 16), wl.ds(32, 32)]))
    for slot in wl.unroll(2):
        rows = wl.ds(slot * 32, 32)
        wl.store(z[rows, wl.ds(0, 32)], left[slot].load())
        wl.store(z[wl.ds(slot * 32, 16), wl.ds(32, 32)], right[2 * slot].load())
        wl.store(z[wl.ds(slot * 32 + 16, 16), wl.ds(32, 32)], right[2 * slot + 1].load())


def beside(op: str, swizzle: int) -> Case:
    def make(device):
        x = spread("f16", (64, 64))
        z = device.empty(x.shape, x.dtype)
        return Trial(sides.launch(1).call(device.put(x), z, SWIZZLE=swizzle), [(z, x)])

    return Case(op, "", make, f"swizzle{swizzle}")


@wl.kernel
def bits(x: wl.Tensor, y: wl.Tensor, SWIZZLE: wl.const, DTYPE: wl.const):
    """y is the bits of x as another dtype, out of a slot of shared memory."""
    tiles = wl.shared((16, 64), x.dtype, slots=2, swizzle=SWIZZLE)
    tiles[1].store(wl.load(x[wl.ds(0, 16), wl.ds(0, 64)]))
    seen = tiles.reinterpret(DTYPE)[1]
    wl.store(y[wl.ds(0, 16), wl.ds(0, seen.shape[1])], seen.load())


def reinterpreted(op: str, dtype: str, other: str, swizzle: int) -> Case:
    def make(device):
        x = np.random.default_rng(0).integers(1, 90, (16, 64)).astype(BY_NAME[dtype].numpy)
        expected = x.view(BY_NAME[other].numpy)
        y = device.empty(expected.shape, expected.dtype)
        call = bits.launch(1).call(device.put(x), y, SWIZZLE=swizzle, DTYPE=BY_NAME[other])
        return Trial(call, [(y, expected)])

    return Case(op, "", make, f"{dtype}-{other}-swizzle{swizzle}")


CASES += [beside("shared.alias", swizzle) for swizzle in (0, 128)]
CASES += [
    reinterpreted("shared.reinterpret", dtype, other, swizzle)
    for dtype, other in (("f32", "i32"), ("f32", "bf16"), ("f16", "f32"), ("i32", "i8"))
    for swizzle in (0, 64, 128)
]
CASES += [one_by_one("shared.element", dtype, 0) for dtype in DTYPES]
CASES += [one_by_one("shared.element", "f16", swizzle) for swizzle in (32, 64, 128)]
CASES += [
    picked_of_rank(f"shared.{name}", rank) for name in ("gather", "scatter") for rank in (1, 3)
]
CASES += [picked_by_lanes(f"shared.{name}", "f32") for name in ("gather", "scatter")]

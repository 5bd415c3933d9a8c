"""Copies of boxes to tensors, in groups; loads stand with the barriers that they complete on."""

import numpy as np

import warploom as wl
from tests.ops.bulk import FOLD, folded
from tests.ops.trial import Case, Trial, spread

DTYPES = ("f32", "f16", "bf16", "i32", "bool")


@wl.kernel
def through(x: wl.Tensor, y: wl.Tensor, BM: wl.const, BN: wl.const, SWIZZLE: wl.const):
    """y = x by the copy engine alone, one box a block; both may end inside a box."""
    tile = wl.shared((BM, BN), x.dtype, swizzle=SWIZZLE)
    done = wl.barrier(1, arrivals=1)
    row, column = wl.program_id(0) * BM, wl.program_id(1) * BN
    with wl.one_thread():
        done.expect(BM * BN * x.dtype.bytes)
        wl.copy_async(x[wl.ds(row, BM), wl.ds(column, BN)], tile, barrier=done)
    done.wait(0)
    with wl.one_thread():
        wl.copy_async(tile, y[wl.ds(row, BM), wl.ds(column, BN)])
        wl.copy_commit()
        wl.copy_wait()


def moved(op: str, dtype: str, swizzle: int = 0) -> Case:
    def make(device):
        x = spread(dtype, (50, 80))
        y = device.empty(x.shape, x.dtype)
        columns = swizzle // x.dtype.itemsize if swizzle else 64
        options = {"BM": 16, "BN": columns, "SWIZZLE": swizzle}
        call = through.launch((4, -(-80 // columns))).call(device.put(x), y, **options)
        return Trial(call, [(y, x)])

    return Case(op, dtype, make, f"swizzle{swizzle}")


@wl.kernel
def doubles(x: wl.Tensor, y: wl.Tensor):
    """y = 2·x; the tile is written by all threads and read by the copy engine, twice."""
    tile = wl.shared((32, 64), x.dtype)
    for i in wl.range(0, 3):
        with wl.one_thread():
            wl.copy_wait(pending=0, reads=True)
        part = wl.load(x[wl.ds(i * 32, 32), wl.ds(0, 64)])
        tile.store(part + part)
        with wl.one_thread():
            wl.copy_async(tile, y[wl.ds(i * 32, 32), wl.ds(0, 64)])
            wl.copy_commit()
    with wl.one_thread():
        wl.copy_wait()


def doubled(op: str) -> Case:
    def make(device):
        x = spread("f32", (96, 64))
        y = device.empty(x.shape, x.dtype)
        return Trial(doubles.launch(1).call(device.put(x), y), [(y, x + x)])

    return Case(op, "", make, "doubles")


CASES = [
    moved(op, dtype)
    for op in ("tma.load", "tma.load_box", "tma.store", "tma.store_box")
    for dtype in DTYPES
]
CASES += [moved("tma.load_box", "bf16", swizzle) for swizzle in (32, 64, 128)]
CASES += [doubled(op) for op in ("tma.commit", "tma.wait", "tma.prefetch_map", "sync.fence_async")]


@wl.kernel
def combines(x: wl.Tensor, z: wl.Tensor, REDUCE: wl.const):
    """z is combined with every plane of x; the last box reaches over the edge."""
    tile = wl.shared((16, 64), x.dtype, swizzle=0)
    done = wl.barrier()
    i, row = wl.program_id(0), wl.program_id(1) * 16
    with wl.one_thread():
        wl.copy_prefetch(x[i, wl.ds(row, 16), wl.ds(0, 64)], cache="evict_last")
        done.expect(16 * 64 * x.dtype.bytes)
        wl.copy_async(x[i, wl.ds(row, 16), wl.ds(0, 64)], tile, barrier=done)
    done.wait(0)
    with wl.one_thread():
        wl.copy_async(tile, z[wl.ds(row, 16), wl.ds(0, 64)], reduce=REDUCE, cache="evict_normal")
        wl.copy_commit()
        wl.copy_wait()


def combined(op: str, dtype: str, reduce: str) -> Case:
    def make(device):
        x, z = folded(reduce, dtype, 3, 24 * 64)
        x, z = x.reshape(3, 24, 64), z.reshape(24, 64)
        out = device.put(z.copy())
        call = combines.launch((3, 2)).call(device.put(x), out, REDUCE=reduce)
        return Trial(call, [(out, FOLD[reduce](x, z).astype(x.dtype))])

    return Case(op, dtype, make, reduce)


@wl.kernel
def framed(x: wl.Tensor, y: wl.Tensor):
    """A box that reaches over all edges of x: NaN stands around it."""
    tile = wl.shared((16, 32), x.dtype, swizzle=0)
    done = wl.barrier()
    with wl.one_thread():
        done.expect(16 * 32 * x.dtype.bytes)
        wl.copy_async(x[wl.ds(-2, 16), wl.ds(-4, 32)], tile, barrier=done, fill="nan")
    done.wait(0)
    wl.store(y[wl.ds(0, 16), wl.ds(0, 32)], tile.load())


def filled(dtype: str) -> Case:
    def make(device):
        x = spread(dtype, (8, 16))
        expected = np.full((16, 32), np.nan, x.dtype)
        expected[2:10, 4:20] = x
        y = device.empty(expected.shape, x.dtype)
        return Trial(framed.launch(1).call(device.put(x), y), [(y, expected)])

    return Case("tma.load", dtype, make, "nan")


CASES += [
    combined("tma.store_box", dtype, reduce)
    for dtype, kinds in {
        "i32": ("add", "min", "max", "and", "or", "xor"),
        "i64": ("min", "max"),
        **dict.fromkeys(("f16", "bf16"), ("add", "min", "max")),
        "f32": ("add",),
    }.items()
    for reduce in kinds
]
CASES += [combined(f"tma.{name}", "f32", "add") for name in ("prefetch", "prefetch_box")]
CASES.append(filled("f32"))

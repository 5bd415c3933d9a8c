"""Copies of boxes to tensors, in groups; loads stand with the barriers that they complete on."""

import warploom as wl
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

"""Bulk copies in one piece: both ways, combined in the tensor, ahead of time."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread


@wl.kernel
def there_and_back(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, N: wl.const, REDUCE: wl.const):
    """y = x row by row, and z is combined with every row."""
    tile = wl.shared((4, N // 4), x.dtype, swizzle=0)
    done = wl.barrier()
    i = wl.program_id(0)
    with wl.one_thread():
        wl.copy_prefetch(x[i, wl.ds(0, N)])
        done.expect(N * x.dtype.bytes)
        wl.copy_bulk(x[i, wl.ds(0, N)], tile, barrier=done, cache="evict_first")
    done.wait(0)
    with wl.one_thread():
        wl.copy_bulk(tile, y[i, wl.ds(0, N)])
        if REDUCE:
            wl.copy_bulk(tile, z[wl.ds(0, N)], reduce=REDUCE)
        wl.copy_commit()
        wl.copy_wait()


FOLD = {
    "": lambda x, z: z,
    "add": lambda x, z: x.sum(0) + z,
    "min": lambda x, z: np.minimum(x.min(0), z),
    "max": lambda x, z: np.maximum(x.max(0), z),
    "and": lambda x, z: np.bitwise_and.reduce(x, 0) & z,
    "or": lambda x, z: np.bitwise_or.reduce(x, 0) | z,
    "xor": lambda x, z: np.bitwise_xor.reduce(x, 0) ^ z,
}


def folded(name: str, dtype: str, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Small integers of a dtype: sums in any order are exact; no zero has a sign."""
    x = spread(dtype, (rows + 1, columns))
    if dtype not in ("bool", "i32", "i64"):
        x = (np.round(x.astype(np.float32) * 4) + 0.0).astype(x.dtype)
    return x[:rows], x[rows]


def moved(op: str, dtype: str, reduce: str = "") -> Case:
    def make(device):
        x, z = folded(reduce, dtype, 3, 512)
        y, out = device.empty(x.shape, x.dtype), device.put(z.copy())
        call = there_and_back.launch(3).call(device.put(x), y, out, N=512, REDUCE=reduce)
        expected = FOLD[reduce](x, z).astype(x.dtype)
        return Trial(call, [(y, x), (out, expected)])

    return Case(op, dtype, make, reduce or "move")


CASES = [
    moved(f"bulk.{name}", dtype)
    for name in ("load", "store", "load_bytes", "store_bytes")
    for dtype in ("f32", "f16", "bf16", "i32", "i64", "bool")
]
CASES += [
    moved("bulk.store_bytes", dtype, reduce)
    for dtype, kinds in {
        **dict.fromkeys(("i32", "i64"), ("add", "min", "max", "and", "or", "xor")),
        **dict.fromkeys(("f16", "bf16"), ("add", "min", "max")),
        "f32": ("add",),
    }.items()
    for reduce in kinds
]
CASES += [moved(f"bulk.{name}", "f32") for name in ("prefetch", "prefetch_bytes")]

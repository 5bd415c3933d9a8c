"""Descriptors that a kernel makes of parts of a tensor, and copies by them both ways."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread

DTYPES = ("f32", "f16", "bf16", "i32", "f8e4m3")


@wl.kernel
def parts(
    x: wl.Tensor, y: wl.Tensor, table: wl.Tensor, BM: wl.const, BN: wl.const, SWIZZLE: wl.const
):
    """Each block copies a part of x to a part of y; row b of the table has both starts, the rows
    and columns of the part, and the stride of either."""
    tile = wl.shared((BM, BN), x.dtype, swizzle=SWIZZLE)
    inside = wl.descriptors(x, tile)
    outside = wl.descriptors(y, tile)
    done = wl.barrier(1, arrivals=1)
    b = wl.program_id(0)
    rows, columns = wl.load(table[b, 2]), wl.load(table[b, 3])
    read, write = inside[0], outside[0]
    with wl.roles(), wl.role("move", warps=1):
        read.make(wl.load(table[b, 0]), (rows, columns), (wl.load(table[b, 4]), 1))
        write.make(wl.load(table[b, 1]), (rows, columns), (wl.load(table[b, 5]), 1))
        with wl.one_thread():
            read.prefetch()
        parity = 0
        for m in wl.range(0, rows, BM):
            with wl.one_thread():
                wl.copy_prefetch(read[wl.ds(m, BM), wl.ds(0, BN)])
                done.expect(BM * BN * x.dtype.bytes)
                wl.copy_async(read[wl.ds(m, BM), wl.ds(0, BN)], tile, barrier=done)
            done.wait(parity)
            with wl.one_thread():
                wl.copy_async(tile, write[wl.ds(m, BM), wl.ds(0, BN)])
                wl.copy_commit()
                wl.copy_wait()
            parity = parity ^ 1


# Start in x and in y, rows, columns, stride in x and in y: elements, all in units of 16 bytes of
# the narrowest dtype. The parts end inside a box, and one has a single row.
PARTS = np.array(
    [
        [0, 0, 32, 64, 80, 64],
        [32, 2048, 13, 48, 96, 64],
        [1600, 4096, 1, 64, 64, 64],
        [2000, 5008, 20, 16, 16, 32],
    ],
    np.int32,
)


def moved(op: str, dtype: str, swizzle: int = 0) -> Case:
    def make(device):
        x = spread(dtype or "f32", (4096,))
        expected = np.zeros(8192, x.dtype)
        for start, to, rows, columns, step, back in PARTS:
            for r in range(rows):
                row = x[start + r * step : start + r * step + columns]
                expected[to + r * back : to + r * back + columns] = row
        y = device.put(np.zeros_like(expected))
        columns = swizzle // x.dtype.itemsize if swizzle else 64
        columns = max(columns, 64)
        options = {"BM": 16, "BN": columns, "SWIZZLE": swizzle}
        call = parts.launch(len(PARTS)).call(device.put(x), y, device.put(PARTS), **options)
        return Trial(call, [(y, expected)])

    return Case(op, dtype, make, f"swizzle{swizzle}")


CASES = [moved(f"descriptor.{op}", dtype) for op in ("make", "write") for dtype in DTYPES]
CASES += [moved(f"descriptor.{op}", "") for op in ("acquire", "prefetch")]
CASES += [moved("descriptor.write", "bf16", swizzle) for swizzle in (32, 64, 128)]

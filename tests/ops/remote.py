"""Shared memory of peers: moves by threads, stores done later, copies; around clusters of several
shapes."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread

DTYPES = ("f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i32", "bool")


@wl.kernel
def passed(x: wl.Tensor, y: wl.Tensor, HOW: wl.const, R: wl.const, N: wl.const, SWIZZLE: wl.const):
    """y[block] is x of the block before it in its cluster, through slot 1 of two."""
    here = wl.shared((R, N), x.dtype, slots=2, swizzle=SWIZZLE)
    there = wl.shared((R, N), x.dtype, slots=2, swizzle=SWIZZLE)
    came = wl.barrier(2)
    block, size = wl.program_id(0), wl.cluster_size()
    peer = (wl.cluster_rank() + 1) % size
    value = wl.load(x[block, wl.ds(0, R), wl.ds(0, N)])
    if HOW == "load":
        there[1].store(value)
        wl.cluster_sync()
        found = there[1].on((wl.cluster_rank() + size - 1) % size).load()
    elif HOW == "store":
        here[1].on(peer).store(value)
        wl.cluster_sync()
        found = here[1].load()
    else:
        with wl.one_thread():
            came[1].expect(R * N * x.dtype.bytes)
        if HOW == "send":
            wl.store_async(here.on(peer)[1], value, came[1])
        else:
            there[1].store(value)
            with wl.one_thread():
                wl.copy_bulk(there[1], here[1].on(peer), barrier=came[1])
        came[1].wait(0)
        found = here[1].load()
    wl.store(y[block, wl.ds(0, R), wl.ds(0, N)], found)


def moved(
    op: str,
    dtype: str,
    how: str,
    cluster: tuple[int, ...] = (2,),
    shape: tuple[int, int] = (3, 64),
    swizzle: int = 0,
    warps: int = 4,
) -> Case:
    def make(device):
        size = int(np.prod(cluster))
        x = spread(dtype or "f32", (size, *shape))
        y = device.empty(x.shape, x.dtype)
        call = passed.launch(cluster, cluster=cluster, warps=warps).call(
            device.put(x), y, how, *shape, swizzle
        )
        return Trial(call, [(y, np.roll(x, 1, 0))])

    place = "x".join(map(str, cluster))
    return Case(op, dtype, make, f"{place}-{shape[0]}x{shape[1]}-swizzle{swizzle}-{warps}")


HOW = {"load": "load", "store": "store", "send": "send", "copy": "copy"}
MACHINE = {"load_groups": "load", "store_groups": "store", "send_groups": "send"}
CASES = [moved(f"remote.{op}", dtype, how) for op, how in HOW.items() for dtype in DTYPES]
CASES += [
    moved(f"remote.{op}", "", how, (size,))
    for op, how in {**MACHINE, "copy_bytes": "copy", "tile_on": "send"}.items()
    for size in (1, 2, 4, 8, 16)
]
# Widths of 4 to 16 bytes and padding; swizzled tiles, of which whole ones can be copied.
CASES += [
    moved("remote.send", dtype, "send", (2,), shape, 0, warps)
    for dtype in ("f32", "bf16", "f8e4m3")
    for shape, warps in (((1, 4), 1), ((5, 12), 2), ((8, 128), 4), ((1, 260), 8))
]
CASES += [
    moved("remote.send", "f32", "send", (3,), (1, 1)),
    moved("remote.load", "i32", "load", (5,), (7, 3)),
]
CASES += [
    moved(f"remote.{op}", "f16", op, (2,), (16, 128), 128) for op in ("load", "store", "send")
]

"""Copies by threads: in groups, completed on an mbarrier, over the edges of a tensor."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread


@wl.kernel
def two_groups(x: wl.Tensor, y: wl.Tensor, SWIZZLE: wl.const):
    """y = x through two slots, each in a group of its own; the last windows leave x."""
    tiles = wl.shared((16, 64), x.dtype, slots=2, swizzle=SWIZZLE)
    row = wl.program_id(0) * 16
    for s in wl.unroll(2):
        wl.copy_by_threads(x[wl.ds(row, 16), wl.ds(s * 64, 64)], tiles[s])
        wl.threads_commit()
    for s in wl.unroll(2):
        wl.threads_wait(1 - s)
        wl.store(y[wl.ds(row, 16), wl.ds(s * 64, 64)], tiles[s].load())


def grouped(op: str, dtype: str, swizzle: int = 0) -> Case:
    def make(device):
        x = spread(dtype or "f32", (40, 112))
        y = device.empty((48, 128), x.dtype)
        expected = np.zeros((48, 128), x.dtype)
        expected[:40, :112] = x
        call = two_groups.launch(3).call(device.put(x), y, SWIZZLE=swizzle)
        return Trial(call, [(y, expected)])

    return Case(op, dtype, make, f"groups{swizzle}")


@wl.kernel
def handed_on(x: wl.Tensor, y: wl.Tensor, N: wl.const):
    """A role copies by its threads, another waits on the mbarrier at which they arrive."""
    slots = wl.shared((8, 32), wl.f32, slots=2)
    full, empty = wl.barrier(2, arrivals=64), wl.barrier(2, arrivals=1)
    with wl.roles():
        with wl.role("copy", warps=2):
            for k in wl.range(N):
                empty[k % 2].wait(k // 2 % 2 ^ 1)
                wl.copy_by_threads(x[k, wl.ds(0, 8), wl.ds(0, 32)], slots[k % 2])
                wl.threads_arrive(full[k % 2])
        with wl.role("add", warps=1):
            for k in wl.range(N):
                full[k % 2].wait(k // 2 % 2)
                wl.store(y[k, wl.ds(0, 8), wl.ds(0, 32)], slots[k % 2].load() + 1.0)
                empty[k % 2].arrive()


def handed(op: str) -> Case:
    def make(device):
        x = spread("f32", (7, 8, 32))
        y = device.empty(x.shape, x.dtype)
        call = handed_on.launch(1).call(device.put(x), y, N=7)
        return Trial(call, [(y, x + np.float32(1))])

    return Case(op, "", make, "barrier")


CASES = [
    grouped(f"cp_async.{name}", dtype)
    for name in ("copy", "copy_groups")
    for dtype in ("f32", "f16", "bf16", "i32", "bool")
]
CASES += [grouped("cp_async.copy_groups", "f16", swizzle) for swizzle in (32, 64, 128)]
CASES += [grouped(f"cp_async.{name}", "", 128) for name in ("commit", "wait")]
CASES.append(handed("cp_async.arrive"))

"""Named barriers between roles, and fences."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread


@wl.kernel
def rounds(x: wl.Tensor, y: wl.Tensor, N: wl.const):
    """In each block one role fills a tile of shared memory, another reads it, N times."""
    tile = wl.shared((8, 32), wl.f32)
    full, empty = wl.named_barrier(64 + 32), wl.named_barrier(threads=96)
    with wl.roles():
        with wl.role("write", warps=2):
            for k in wl.range(N):
                empty.sync()
                tile.store(wl.load(x[k, wl.ds(0, 8), wl.ds(0, 32)]))
                full.arrive()
        with wl.role("read", warps=1):
            for k in wl.range(N):
                empty.arrive()
                full.sync()
                wl.store(y[wl.program_id(0), k, wl.ds(0, 8), wl.ds(0, 32)], tile.load() + 1.0)


def handed(op: str) -> Case:
    def make(device):
        x = spread("f32", (5, 8, 32))
        y = device.empty((2, *x.shape), x.dtype)
        call = rounds.launch(2).call(device.put(x), y, N=5)
        return Trial(call, [(y, np.stack([x + np.float32(1)] * 2))])

    return Case(op, "", make, "rounds")


@wl.kernel
def fenced(y: wl.Tensor):
    wl.fence("block")
    wl.fence("cluster")
    wl.fence()
    wl.fence("system")
    wl.fence_async("global")
    wl.fence_async("all")
    wl.warp_sync()
    wl.store(y[wl.ds(0, 128)], wl.thread_id())


def passed(op: str) -> Case:
    def make(device):
        y = device.empty(128, np.int32)
        return Trial(fenced.launch(1).call(y), [(y, np.arange(128, dtype=np.int32))])

    return Case(op, "", make, "fences")


CASES = [handed(op) for op in ("sync.meet", "sync.arrive", "sync.barrier")]
CASES += [passed(op) for op in ("sync.fence", "sync.fence_async", "sync.warp")]

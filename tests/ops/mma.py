"""Products that each warp makes for itself, on fragments in registers."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial
from warploom.base.dtypes import BY_NAME
from warploom.ir.ops.mma import left_place, right_place, sum_place


@wl.kernel
def products(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, ROWS: wl.const, THREADS: wl.const):
    """Sums that begin at 1, over all steps of K."""
    left, right = wl.load(a[wl.ds(0, ROWS), :8]), wl.load(b[wl.ds(0, ROWS), :4])
    wl.store(c[wl.ds(0, THREADS), :4], wl.mma(left, right, wl.full((THREADS, 4), 1.0, wl.f32)))


def fragments(matrices: np.ndarray, place, elements: int) -> np.ndarray:
    """What the threads of warps hold of [warps, steps, rows, columns], a row a thread and step."""
    warps, steps = matrices.shape[:2]
    held = np.empty((steps, warps, 32, elements), matrices.dtype)
    for lane in range(32):
        for element in range(elements):
            row, column = place(lane, element)
            held[:, :, lane, element] = matrices[:, :, row, column].T
    return held.reshape(-1, elements)


def product(op: str, dtype: str, warps: int, steps: int) -> Case:
    """Small integers, so that every order of the sum gives the same bits."""

    def make(device):
        rng = np.random.default_rng(steps)
        kind = BY_NAME[dtype].numpy
        a = rng.integers(-8, 9, (warps, steps, 16, 16)).astype(kind)
        b = rng.integers(-8, 9, (warps, steps, 16, 8)).astype(kind)
        sums = 1 + np.einsum("wsik,wskj->wij", a.astype(np.float32), b.astype(np.float32))
        threads = 32 * warps
        c = device.empty((threads, 4), np.float32)
        call = products.launch(1, warps=warps).call(
            device.put(fragments(a, left_place, 8)),
            device.put(fragments(b, right_place, 4)),
            c,
            ROWS=threads * steps,
            THREADS=threads,
        )
        return Trial(call, [(c, fragments(sums[:, None].astype(np.float32), sum_place, 4))])

    return Case(op, dtype, make, f"{warps}warps-{steps}steps")


@wl.kernel
def joined_products(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor):
    """Fragments put together from runs, in registers; the sums of the upper and lower rows."""
    lane = wl.arange(32)
    parts = [wl.gather(a, (lane // 4 + 8 * h, lane % 4 * 4), run=4) for h in wl.unroll(2)]
    left = wl.cat((parts[0][:, 0:2], parts[1][:, 0:2], parts[0][:, 2:4], parts[1][:, 2:4]), 1)
    right = wl.gather(b, (lane // 4, lane % 4 * 4), run=4)
    acc = wl.mma(left, right, wl.zeros((32, 4), wl.f32))
    wl.store(c[wl.ds(0, 32), wl.ds(0, 2)], acc[:, 0:2] + acc[:, 2:4])


def joined(dtype: str) -> Case:
    def make(device):
        rng = np.random.default_rng(5)
        kind = BY_NAME[dtype].numpy
        a, b = (rng.integers(-8, 9, (n, 16)).astype(kind) for n in (16, 8))
        sums = a.astype(np.float32) @ b.astype(np.float32).T
        held = fragments(sums[None, None], sum_place, 4)
        c = device.empty((32, 2), np.float32)
        call = joined_products.launch(1, warps=1).call(device.put(a), device.put(b), c)
        return Trial(call, [(c, held[:, :2] + held[:, 2:])])

    return Case("mma.dot", dtype, make, "joined")


CASES = [joined("bf16"), joined("f16")]
CASES += [
    product("mma.dot", dtype, warps, steps)
    for dtype in ("f16", "bf16")
    for warps, steps in ((1, 1), (1, 4), (2, 3))
]
CASES += [product("mma.multiply", dtype, 1, 2) for dtype in ("f16", "bf16")]

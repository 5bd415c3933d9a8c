"""Four blocks in a square: those of one row share a tile of A, those of one column one of B, and
each brings half of what it shares to both."""

import numpy as np

import warploom as wl


@wl.kernel
def meshed(a: wl.Tensor, b: wl.Tensor, c: wl.Tensor, STEPS: wl.const, S: wl.const):
    sa, sb = wl.shared((64, 64), a.dtype, slots=S), wl.shared((64, 64), b.dtype, slots=S)
    full, empty = wl.barrier(S), wl.barrier(S, arrivals=4)
    cx, cy = wl.cluster_rank(0), wl.cluster_rank(1)
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, STEPS):
                s = k % S
                empty[s].wait(k // S % 2 ^ 1)
                with wl.one_thread():
                    full[s].expect((64 + 64) * 64 * 2)
                    rows = a[wl.ds(cy * 64 + cx * 32, 32), wl.ds(k * 64, 64)]
                    left = sa[s][wl.ds(cx * 32, 32), :]
                    wl.copy_async(rows, left, barrier=full[s], multicast=wl.cluster_mask(0))
                    columns = b[wl.ds(cx * 64 + cy * 32, 32), wl.ds(k * 64, 64)]
                    right = sb[s][wl.ds(cy * 32, 32), :]
                    wl.copy_async(columns, right, barrier=full[s], multicast=wl.cluster_mask(1))
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 64), wl.f32)
            for k in wl.range(0, STEPS):
                s = k % S
                full[s].wait(k // S % 2)
                acc = wl.dot_async(sa[s], sb[s].T, acc).wait()
                with wl.one_thread():
                    for q in wl.unroll(2):
                        empty[s].on(cy * 2 + q).arrive()
                        empty[s].on(q * 2 + cx).arrive()
            wl.store(c[wl.ds(cy * 64, 64), wl.ds(cx * 64, 64)], acc)


@meshed.example
def small(make):
    a, b = make.randn((128, 320), wl.bf16), make.randn((128, 320), wl.bf16)
    return meshed.launch((2, 2), cluster=(2, 2, 1)).call(a, b, make.zeros((128, 128)), STEPS=5, S=2)


def expected(a, b, c, **_):
    return {"c": a.astype(np.float32) @ b.astype(np.float32).T}

"""A product whose slices leave by way of the copy engine, while the role goes on."""

import warploom as wl
from warploom.kernels.schedule import Grid


@wl.kernel
def gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    BM: wl.const = 128,
    BN: wl.const = 32,
    BK: wl.const = 16,
    EN: wl.const = 16,
    STAGES: wl.const = 3,
):
    """c[m, n] = Σ_k a[m, k]·b[n, k]."""
    M = BM // 2
    ring = wl.pipe(STAGES, slots=[wl.shared((BM, BK), a.dtype), wl.shared((BN, BK), b.dtype)])
    out = wl.pipe(2, slots=[wl.shared((M, EN), c.dtype)], to=wl.copy_engine)
    grid = Grid((c.shape[0] + BM - 1) // BM, (c.shape[1] + BN - 1) // BN)
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.tiles(grid):
                _, i, j = grid.place(t)
                for k in wl.range(0, a.shape[1], BK):
                    with ring.put() as (sa, sb):
                        wl.copy_async(a[wl.ds(i * BM, BM), wl.ds(k, BK)], sa)
                        wl.copy_async(b[wl.ds(j * BN, BN), wl.ds(k, BK)], sb)
        with wl.role("math", warps=4, replicas=2) as r:
            for t in wl.tiles(grid):
                _, i, j = grid.place(t)
                acc = wl.zeros((M, BN), wl.f32)
                for _ in wl.range(0, a.shape[1], BK):
                    item = ring.take()
                    sa, sb = item
                    acc = wl.dot_async(sa[wl.ds(r * M, M), :], sb.T, acc)
                    item.release(after=acc, behind=1)
                sums = acc.wait()
                for e in wl.unroll(BN // EN):
                    with out.put() as slot:
                        slot.store(sums[:, e * EN : (e + 1) * EN].cast(c.dtype))
                        rows, columns = wl.ds(i * BM + r * M, M), wl.ds(j * BN + e * EN, EN)
                        wl.copy_async(slot, c[rows, columns])


@gemm.example
def _small(make):
    a, b = make.randn((256, 80), wl.bf16), make.randn((64, 80), wl.bf16)
    return gemm.launch(2).call(a, b, make.empty((256, 64), wl.bf16))

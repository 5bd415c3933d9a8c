"""Two blocks bring one half each of what both of them need."""

import warploom as wl
from warploom.kernels.schedule import Grid


@wl.kernel
def gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    BM: wl.const = 128,
    BN: wl.const = 256,
    BK: wl.const = 64,
    STAGES: wl.const = 4,
):
    """c[m, n] = Σ_k a[m, k]·b[n, k]."""
    HALF, PART = BM // 2, BN // wl.cluster_size(0)
    first, everyone = wl.cluster_rank(0) * PART, wl.cluster_mask(0)
    grid = Grid((c.shape[0] + BM - 1) // BM, (c.shape[1] + BN - 1) // BN)
    slots = [wl.shared((BM, BK), a.dtype), wl.shared((BN, BK), b.dtype)]
    ring = wl.pipe(STAGES, slots=slots, cluster=True)
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.tiles(grid):
                _, i, j = grid.place(t)
                for k in wl.range(0, a.shape[1], BK):
                    with ring.put() as (sa, sb):
                        wl.copy_async(a[wl.ds(i * BM, BM), wl.ds(k, BK)], sa)
                        mine = b[wl.ds(j * BN + first, PART), wl.ds(k, BK)]
                        wl.copy_async(mine, sb[wl.ds(first, PART), :], multicast=everyone)
        with wl.role("math", warps=4, replicas=2) as r:
            for t in wl.tiles(grid):
                _, i, j = grid.place(t)
                acc = wl.zeros((HALF, BN), wl.f32)
                for _ in wl.range(0, a.shape[1], BK):
                    item = ring.take()
                    sa, sb = item
                    acc = wl.dot_async(sa[wl.ds(r * HALF, HALF), :], sb.T, acc)
                    item.release(after=acc, behind=1)
                window = c[wl.ds(i * BM + r * HALF, HALF), wl.ds(j * BN, BN)]
                wl.store(window, acc.wait().cast(c.dtype))


@gemm.example
def _small(make):
    a, b = make.randn((300, 48), wl.bf16), make.randn((32, 48), wl.bf16)
    tiles = {"BM": 128, "BN": 32, "BK": 16, "STAGES": 2}
    launcher = gemm.launch(2, cluster=(2, 1, 1))
    return launcher.call(a, b, make.empty((300, 32), wl.bf16), **tiles)

"""Two replicas read each item of a ring, one half of its rows each."""

import warploom as wl


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
    HALF = BM // 2
    m, n = wl.program_id(0) * BM, wl.program_id(1) * BN
    ring = wl.pipe(STAGES, slots=[wl.shared((BM, BK), a.dtype), wl.shared((BN, BK), b.dtype)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, a.shape[1], BK):
                with ring.put() as (sa, sb):
                    wl.copy_async(a[wl.ds(m, BM), wl.ds(k, BK)], sa)
                    wl.copy_async(b[wl.ds(n, BN), wl.ds(k, BK)], sb)
        with wl.role("math", warps=4, replicas=2) as r:
            acc = wl.zeros((HALF, BN), wl.f32)
            for _ in wl.range(0, a.shape[1], BK):
                item = ring.take()
                sa, sb = item
                acc = wl.dot_async(sa[wl.ds(r * HALF, HALF), :], sb.T, acc)
                item.release(after=acc, behind=1)
            wl.store(c[wl.ds(m + r * HALF, HALF), wl.ds(n, BN)], acc.wait().cast(c.dtype))


@gemm.example
def _small(make):
    a, b = make.randn((128, 80), wl.bf16), make.randn((16, 80), wl.bf16)
    tiles = {"BM": 128, "BN": 16, "BK": 16, "STAGES": 2}
    return gemm.launch(1).call(a, b, make.empty((128, 16), wl.bf16), **tiles)

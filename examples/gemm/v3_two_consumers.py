"""GEMM, step 3: two consumers. Two groups of four warps share what is loaded.

Each replica of the role owns half of the rows of a tile twice as wide: a byte in shared memory now
feeds twice as many products, and more registers hold sums. An item goes back to the engine when
both have released it; the pipe knows how many readers it has.
"""

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


def product(a, b, c):
    """c = a · bᵀ for any sizes: a [M, K], b [N, K], c [M, N]; f16 or bf16 operands."""
    gemm[-(-c.shape[0] // 128), -(-c.shape[1] // 256)](a, b, c)


@gemm.example
def small(make):
    """Two blocks, ragged on every side."""
    a, b = make.randn((200, 136), wl.bf16), make.randn((72, 136), wl.bf16)
    return gemm.launch((2, 1)).call(a, b, make.empty((200, 72), wl.bf16))

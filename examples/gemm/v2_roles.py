"""GEMM, step 2: roles. One warp keeps the copy engine busy, four others the matrix unit.

A pipe is the ring between them: it waits, counts bytes and turns phases itself, so that slots,
barriers and the meeting of step 1 are gone. Nobody who multiplies asks for copies any more.
"""

import warploom as wl


@wl.kernel
def gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    BM: wl.const = 128,
    BN: wl.const = 128,
    BK: wl.const = 64,
    STAGES: wl.const = 4,
):
    """c[m, n] = Σ_k a[m, k]·b[n, k]."""
    m, n = wl.program_id(0) * BM, wl.program_id(1) * BN
    ring = wl.pipe(STAGES, slots=[wl.shared((BM, BK), a.dtype), wl.shared((BN, BK), b.dtype)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(0, a.shape[1], BK):
                with ring.put() as (sa, sb):
                    wl.copy_async(a[wl.ds(m, BM), wl.ds(k, BK)], sa)
                    wl.copy_async(b[wl.ds(n, BN), wl.ds(k, BK)], sb)
        with wl.role("math", warps=4):
            acc = wl.zeros((BM, BN), wl.f32)
            for _ in wl.range(0, a.shape[1], BK):
                item = ring.take()
                sa, sb = item
                acc = wl.dot_async(sa, sb.T, acc)
                item.release(after=acc, behind=1)
            wl.store(c[wl.ds(m, BM), wl.ds(n, BN)], acc.wait().cast(c.dtype))


def product(a, b, c):
    """c = a · bᵀ for any sizes: a [M, K], b [N, K], c [M, N]; f16 or bf16 operands."""
    gemm[-(-c.shape[0] // 128), -(-c.shape[1] // 128)](a, b, c)


@gemm.example
def small(make):
    """Two blocks, ragged on every side."""
    a, b = make.randn((200, 136), wl.bf16), make.randn((72, 136), wl.bf16)
    return gemm.launch((2, 1)).call(a, b, make.empty((200, 72), wl.bf16))

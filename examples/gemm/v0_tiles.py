"""GEMM, step 0: tiles. Every block computes one tile of C = A · Bᵀ, and waits at each step.

The threads of a block copy a piece of A and of B into shared memory, the matrix unit adds their
product to sums in registers, and the next piece follows. The compiler puts the barriers.
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
):
    """c[m, n] = Σ_k a[m, k]·b[n, k]."""
    m, n = wl.program_id(0) * BM, wl.program_id(1) * BN
    sa, sb = wl.shared((BM, BK), a.dtype), wl.shared((BN, BK), b.dtype)
    acc = wl.zeros((BM, BN), wl.f32)
    for k in wl.range(0, a.shape[1], BK):
        sa.store(wl.load(a[wl.ds(m, BM), wl.ds(k, BK)]))
        sb.store(wl.load(b[wl.ds(n, BN), wl.ds(k, BK)]))
        acc = wl.dot_async(sa, sb.T, acc).wait()
    wl.store(c[wl.ds(m, BM), wl.ds(n, BN)], acc.cast(c.dtype))


def product(a, b, c):
    """c = a · bᵀ for any sizes: a [M, K], b [N, K], c [M, N]; f16 or bf16 operands."""
    gemm[-(-c.shape[0] // 128), -(-c.shape[1] // 128)](a, b, c)


@gemm.example
def small(make):
    """Two blocks, ragged on every side."""
    a, b = make.randn((200, 136), wl.bf16), make.randn((72, 136), wl.bf16)
    return gemm.launch((2, 1)).call(a, b, make.empty((200, 72), wl.bf16))

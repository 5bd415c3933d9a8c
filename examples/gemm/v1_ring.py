"""GEMM, step 1: a ring. The copy engine works some pieces ahead of the matrix unit.

One thread asks the engine for a piece; its bytes complete on a barrier, and all wait for that
barrier only. All of it by hand here: slots, phases, bytes.
"""

import warploom as wl


@wl.function
def ask(a, b, sa, sb, full, m, n, step, STAGES):
    """Have the engine bring piece number `step` into its slot."""
    slot = step % STAGES
    (BM, BK), BN = sa.shape, sb.shape[0]
    full[slot].expect((BM + BN) * BK * 2)
    wl.copy_async(a[wl.ds(m, BM), wl.ds(step * BK, BK)], sa[slot], full[slot])
    wl.copy_async(b[wl.ds(n, BN), wl.ds(step * BK, BK)], sb[slot], full[slot])


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
    sa = wl.shared((BM, BK), a.dtype, slots=STAGES)
    sb = wl.shared((BN, BK), b.dtype, slots=STAGES)
    full, meeting = wl.barrier(STAGES), wl.named_barrier(128)
    steps = (a.shape[1] + BK - 1) // BK
    with wl.one_thread():
        for first in wl.range(0, wl.minimum(steps, STAGES - 1)):
            ask(a, b, sa, sb, full, m, n, first, STAGES)
    acc = wl.zeros((BM, BN), wl.f32)
    for step in wl.range(0, steps):
        slot = step % STAGES
        full[slot].wait(step // STAGES % 2)
        acc = wl.dot_async(sa[slot], sb[slot].T, acc)
        # One product stays in flight: the one before it is done, and all are done reading its slot.
        acc.wait(in_flight=1)
        meeting.sync()
        ahead = step + STAGES - 1
        with wl.one_thread():
            if ahead < steps:
                ask(a, b, sa, sb, full, m, n, ahead, STAGES)
    wl.store(c[wl.ds(m, BM), wl.ds(n, BN)], acc.wait().cast(c.dtype))


def product(a, b, c):
    """c = a · bᵀ for any sizes: a [M, K], b [N, K], c [M, N]; f16 or bf16 operands."""
    gemm[-(-c.shape[0] // 128), -(-c.shape[1] // 128)](a, b, c)


@gemm.example
def small(make):
    """Two blocks, ragged on every side."""
    a, b = make.randn((200, 136), wl.bf16), make.randn((72, 136), wl.bf16)
    return gemm.launch((2, 1)).call(a, b, make.empty((200, 72), wl.bf16))

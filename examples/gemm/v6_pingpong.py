"""GEMM, step 6: ping-pong. One replica multiplies while the other writes its result.

Each replica owns a whole tile of C, every other one of the block's, and each item of the pipe goes
to one of them; the other skips it. They take turns at the matrix unit, which so has work also
while results are written.
"""

import warploom as wl
from warploom.kernels.schedule import Grid

SMS = 132


@wl.kernel
def gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    BM: wl.const = 128,
    BN: wl.const = 128,
    BK: wl.const = 64,
    STAGES: wl.const = 6,
):
    """c[m, n] = Σ_k a[m, k]·b[n, k]."""
    PART, steps = BN // wl.cluster_size(0), (a.shape[1] + BK - 1) // BK
    first, everyone = wl.cluster_rank(0) * PART, wl.cluster_mask(0)
    grid = Grid((c.shape[0] + BM - 1) // BM, (c.shape[1] + BN - 1) // BN)
    slots = [wl.shared((BM, BK), a.dtype), wl.shared((BN, BK), b.dtype)]
    ring = wl.pipe(STAGES, slots=slots, deliver="one", cluster=True)
    unit = wl.turns(2)
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
            whose = 0
            for t in wl.tiles(grid):
                if whose == r:
                    _, i, j = grid.place(t)
                    acc = wl.zeros((BM, BN), wl.f32)
                    with unit.turn(r):
                        for _ in wl.range(0, steps):
                            item = ring.take()
                            sa, sb = item
                            acc = wl.dot_async(sa, sb.T, acc)
                            item.release(after=acc, behind=1)
                        sums = acc.wait()
                    wl.store(c[wl.ds(i * BM, BM), wl.ds(j * BN, BN)], sums.cast(c.dtype))
                else:
                    ring.skip(steps)
                whose = 1 - whose


def product(a, b, c):
    """c = a · bᵀ for any sizes: a [M, K], b [N, K], c [M, N]; f16 or bf16 operands."""
    pairs = -(-c.shape[0] // 256) * -(-c.shape[1] // 128)
    gemm.launch(min(SMS, 2 * pairs), cluster=(2, 1, 1))(a, b, c)


@gemm.example
def small(make):
    """One pair of blocks over four pairs of tiles, ragged on every side."""
    a, b = make.randn((300, 136), wl.bf16), make.randn((200, 136), wl.bf16)
    return gemm.launch(2, cluster=(2, 1, 1)).call(a, b, make.empty((300, 200), wl.bf16))

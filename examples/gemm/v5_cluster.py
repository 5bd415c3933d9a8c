"""GEMM, step 5: cluster. Two blocks that run at the same time need the same part of B.

Each of them copies half of it into the shared memory of both, so that the L2 hands it out once. The
pipe knows: a place is filled anew when both blocks have handed it back. All that the blocks of a
cluster share they do equally often; the last pair may have a tile below the last row, which reads
zeros and writes nothing.
"""

import warploom as wl

SMS = 132


@wl.function
def place(t, rows, columns, GROUP):
    """Row and column of tile t: down GROUP rows, then one column on."""
    group = t // (GROUP * columns)
    height = wl.minimum(rows - group * GROUP, GROUP)
    inside = t - group * (GROUP * columns)
    return group * GROUP + inside % height, inside // height


@wl.kernel
def gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    BM: wl.const = 128,
    BN: wl.const = 256,
    BK: wl.const = 64,
    STAGES: wl.const = 4,
    GROUP: wl.const = 8,
):
    """c[m, n] = Σ_k a[m, k]·b[n, k]; blocks of a cluster lie along axis 0 and have other rows."""
    BLOCKS, rank = wl.cluster_size(), wl.cluster_rank()
    HALF, PART = BM // 2, BN // BLOCKS
    rows, columns = (c.shape[0] + BLOCKS * BM - 1) // (BLOCKS * BM), (c.shape[1] + BN - 1) // BN
    first, step, tiles = wl.program_id(0) // BLOCKS, wl.num_programs(0) // BLOCKS, rows * columns
    slots = [wl.shared((BM, BK), a.dtype), wl.shared((BN, BK), b.dtype)]
    ring = wl.pipe(STAGES, slots=slots, cluster=True)
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.range(first, tiles, step):
                pair, j = place(t, rows, columns, GROUP)
                row, column = (pair * BLOCKS + rank) * BM, j * BN + rank * PART
                for k in wl.range(0, a.shape[1], BK):
                    with ring.put() as (sa, sb):
                        wl.copy_async(a[wl.ds(row, BM), wl.ds(k, BK)], sa)
                        part = sb[wl.ds(rank * PART, PART), :]
                        window = b[wl.ds(column, PART), wl.ds(k, BK)]
                        wl.copy_async(window, part, multicast=wl.cluster_mask(0))
        with wl.role("math", warps=4, replicas=2) as r:
            for t in wl.range(first, tiles, step):
                pair, j = place(t, rows, columns, GROUP)
                acc = wl.zeros((HALF, BN), wl.f32)
                for _ in wl.range(0, a.shape[1], BK):
                    item = ring.take()
                    sa, sb = item
                    acc = wl.dot_async(sa[wl.ds(r * HALF, HALF), :], sb.T, acc)
                    item.release(after=acc, behind=1)
                row = (pair * BLOCKS + rank) * BM + r * HALF
                window = c[wl.ds(row, HALF), wl.ds(j * BN, BN)]
                wl.store(window, acc.wait().cast(c.dtype))


def product(a, b, c):
    """c = a · bᵀ for any sizes: a [M, K], b [N, K], c [M, N]; f16 or bf16 operands."""
    pairs = -(-c.shape[0] // 256) * -(-c.shape[1] // 256)
    gemm.launch(2 * min(SMS // 2, pairs), cluster=2)(a, b, c)


@gemm.example
def small(make):
    """Two clusters over three pairs of tiles, ragged on every side."""
    a, b = make.randn((600, 136), wl.bf16), make.randn((72, 136), wl.bf16)
    return gemm.launch(4, cluster=2).call(a, b, make.empty((600, 72), wl.bf16))

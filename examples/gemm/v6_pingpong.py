"""GEMM, step 6: ping-pong. The two consumers have a tile each, and take turns at the matrix unit.

While one multiplies, the other writes its sums, so that the unit never waits for a tile to be
written. The items of a tile belong to one of them (`deliver="one"`); the other skips past them. The
roles of step 5 are as they were: a cluster of two shares what it reads of B.
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


@wl.function
def summed(ring, K, BM, BN, BK):
    """The sums of one tile from the items of a ring, one product behind the last."""
    acc = wl.zeros((BM, BN), wl.f32)
    for _ in wl.range(0, K, BK):
        item = ring.take()
        sa, sb = item
        acc = wl.dot_async(sa, sb.T, acc)
        item.release(after=acc, behind=1)
    return acc.wait()


@wl.kernel
def gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    BM: wl.const = 64,
    BN: wl.const = 256,
    BK: wl.const = 64,
    STAGES: wl.const = 5,
    GROUP: wl.const = 16,
):
    """c[m, n] = Σ_k a[m, k]·b[n, k]; blocks of a cluster lie along axis 0 and have other rows."""
    BLOCKS, rank, K = wl.cluster_size(), wl.cluster_rank(), a.shape[1]
    PART = BN // BLOCKS
    rows, columns = (c.shape[0] + BLOCKS * BM - 1) // (BLOCKS * BM), (c.shape[1] + BN - 1) // BN
    first, step, tiles = wl.program_id(0) // BLOCKS, wl.num_programs(0) // BLOCKS, rows * columns
    slots = [wl.shared((BM, BK), a.dtype), wl.shared((BN, BK), b.dtype)]
    ring = wl.pipe(STAGES, slots=slots, deliver="one", cluster=True)
    unit = wl.turns(2)
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.range(first, tiles, step):
                pair, j = place(t, rows, columns, GROUP)
                row, column = (pair * BLOCKS + rank) * BM, j * BN + rank * PART
                for k in wl.range(0, K, BK):
                    with ring.put() as (sa, sb):
                        wl.copy_async(a[wl.ds(row, BM), wl.ds(k, BK)], sa)
                        part = sb[wl.ds(rank * PART, PART), :]
                        window = b[wl.ds(column, PART), wl.ds(k, BK)]
                        wl.copy_async(window, part, multicast=wl.cluster_mask(0))
        with wl.role("math", warps=4, replicas=2) as r:
            whose = 0
            for t in wl.range(first, tiles, step):
                if whose == r:
                    pair, j = place(t, rows, columns, GROUP)
                    with unit.turn(r):
                        sums = summed(ring, K, BM, BN, BK)
                    window = c[wl.ds((pair * BLOCKS + rank) * BM, BM), wl.ds(j * BN, BN)]
                    wl.store(window, sums.cast(c.dtype))
                else:
                    ring.skip((K + BK - 1) // BK)
                whose = 1 - whose


def product(a, b, c):
    """c = a · bᵀ for any sizes: a [M, K], b [N, K], c [M, N]; f16 or bf16 operands."""
    pairs = -(-c.shape[0] // 128) * -(-c.shape[1] // 256)
    gemm.launch(2 * min(SMS // 2, pairs), cluster=2)(a, b, c)


@gemm.example
def small(make):
    """Two clusters over three pairs of tiles, ragged on every side."""
    a, b = make.randn((300, 136), wl.bf16), make.randn((72, 136), wl.bf16)
    return gemm.launch(4, cluster=2).call(a, b, make.empty((300, 72), wl.bf16))

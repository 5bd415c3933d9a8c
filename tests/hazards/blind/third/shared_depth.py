"""A product whose K axis is dealt out too: the last of the blocks that share a tile adds up."""

import warploom as wl


@wl.kernel
def split_gemm(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    parts: wl.Tensor,
    counts: wl.Tensor,
    BM: wl.const = 64,
    BN: wl.const = 16,
    BK: wl.const = 16,
    SPLIT: wl.const = 3,
    STAGES: wl.const = 2,
):
    """Block (i, s): rows i·BM …, the share s of K. counts [tiles] are 0 before and after."""
    i, share = wl.program_id(0), wl.program_id(1)
    mine = a.shape[1] // SPLIT
    lo = share * mine
    ring = wl.pipe(STAGES, slots=[wl.shared((BM, BK), a.dtype), wl.shared((BN, BK), b.dtype)])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(lo, lo + mine, BK):
                with ring.put() as (sa, sb):
                    wl.copy_async(a[wl.ds(i * BM, BM), wl.ds(k, BK)], sa)
                    wl.copy_async(b[wl.ds(0, BN), wl.ds(k, BK)], sb)
        with wl.role("math", warps=4):
            acc = wl.zeros((BM, BN), wl.f32)
            for _ in wl.range(0, mine, BK):
                item = ring.take()
                sa, sb = item
                acc = wl.dot_async(sa, sb.T, acc)
                item.release(after=acc, behind=1)
            wl.store(parts[i, share, wl.ds(0, BM), wl.ds(0, BN)], acc.wait())
            if wl.atomic_add(counts[i], 1, order="acq_rel") == SPLIT - 1:
                total = wl.zeros((BM, BN), wl.f32)
                for s in wl.range(0, SPLIT):
                    total = total + wl.load(parts[i, s, wl.ds(0, BM), wl.ds(0, BN)])
                wl.store(c[wl.ds(i * BM, BM), wl.ds(0, BN)], total)
                wl.store(counts[i], 0)


@split_gemm.example
def _small(make):
    a, b = make.randn((128, 144), wl.bf16), make.randn((16, 144), wl.bf16)
    parts, counts = make.empty((2, 3, 64, 16), wl.f32), make.zeros((2,), wl.i32)
    return split_gemm.launch((2, 3)).call(a, b, make.empty((128, 16), wl.f32), parts, counts)

"""A product over pieces of the K axis: what the copies bring of other pieces is made zero."""

import warploom as wl


@wl.function
def cleared(tile, first, end):
    """Make zero of a shared tile what is not among its columns from `first` to `end`."""
    for e in wl.unroll(tile.shape[0] // 16):
        part = tile[wl.ds(e * 16, 16), :]
        at = wl.arange(tile.shape[1])
        kept = (at >= first) & (at < end)
        part.store(wl.where(kept[None, :], part.load(), 0.0))


@wl.kernel
def grouped(
    a: wl.Tensor,
    b: wl.Tensor,
    c: wl.Tensor,
    offsets: wl.Tensor,
    BK: wl.const = 32,
    STAGES: wl.const = 3,
):
    """Block g: c[g] = Σ_k a[m, k]·b[n, k] over k from offsets[g] to offsets[g + 1]."""
    g = wl.program_id(0)
    ring = wl.pipe(STAGES, slots=[wl.shared((64, BK), a.dtype), wl.shared((16, BK), b.dtype)])
    lo, hi = wl.load(offsets[g]), wl.load(offsets[g + 1])
    begin = lo // 8 * 8
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(begin, hi, BK):
                with ring.put() as (sa, sb):
                    wl.copy_async(a[wl.ds(0, 64), wl.ds(k, BK)], sa)
                    wl.copy_async(b[wl.ds(0, 16), wl.ds(k, BK)], sb)
        with wl.role("math", warps=4):
            acc = wl.zeros((64, 16), wl.f32)
            for k in wl.range(begin, hi, BK):
                item = ring.take()
                sa, sb = item
                if (k < lo) | (k + BK > hi):
                    cleared(sa, lo - k, hi - k)
                    cleared(sb, lo - k, hi - k)
                acc = wl.dot_async(sa, sb.T, acc)
                item.release(after=acc, behind=1)
            wl.store(c[g, wl.ds(0, 64), wl.ds(0, 16)], acc.wait())


@grouped.example
def _small(make):
    a, b = make.randn((64, 264), wl.bf16), make.randn((16, 264), wl.bf16)
    offsets = make.array([3, 135, 260], wl.i32)
    return grouped.launch(2).call(a, b, make.empty((2, 64, 16), wl.f32), offsets)

"""Attention of one query a token over its cached keys: split over blocks, then merged.

Every block walks its split tile by tile, and every *place* of the tile (a row of BN) keeps a
maximum, a sum and a weighted value of its own; places are merged once, at the end. So the loop
needs no exchange between warps. Knows nothing of grids and tile sizes (`config.py`).
"""

import math

import warploom as wl

NEGATIVE_INFINITY = -math.inf


@wl.function
def reference_point(top):
    """What exponents are taken relative to: the maximum, or 0 where no key was seen, so that
    −∞ − −∞ never arises and such places weigh exp(−∞) = 0."""
    return wl.where(top == NEGATIVE_INFINITY, 0.0, top)


@wl.function
def places_of(q, keys, values, t, first, head, lo, hi, n, scale, HEADS, D, BN, DEPTH):
    """(maxima, sums, weighted values) of BN places for each of the HEADS query heads from `first`
    on: keys lo ≤ i < hi, of the n that there are."""
    queries = [wl.zeros((D,), wl.f32)] * HEADS
    for g in wl.unroll(HEADS):
        queries[g] = wl.load(q[t, first + g, wl.ds(0, D)]).cast(wl.f32)
    tops = [wl.full((BN,), NEGATIVE_INFINITY, wl.f32)] * HEADS
    sums = [wl.zeros((BN,), wl.f32)] * HEADS
    outs = [wl.zeros((BN, D), wl.f32)] * HEADS
    for start in wl.range(lo, hi, BN * DEPTH):
        # All tiles of a trip are requested before the first one is used.
        tiles = []
        for d in wl.unroll(DEPTH):
            rows = wl.ds(start + d * BN, BN)
            k = wl.load(keys[rows, head, wl.ds(0, D)])
            v = wl.load(values[rows, head, wl.ds(0, D)])
            tiles = tiles + [(k, v)]
        for d in wl.unroll(DEPTH):
            k, v = tiles[d][0].cast(wl.f32), tiles[d][1].cast(wl.f32)
            is_key = wl.arange(BN) + (start + d * BN) < n
            for g in wl.unroll(HEADS):
                score = wl.sum(k * queries[g][None, :], 1) * scale
                score = wl.where(is_key, score, NEGATIVE_INFINITY)
                top = wl.maximum(tops[g], score)
                base = reference_point(top)
                shrink, weight = wl.exp(tops[g] - base), wl.exp(score - base)
                sums[g] = sums[g] * shrink + weight
                outs[g] = outs[g] * shrink[:, None] + weight[:, None] * v
                tops[g] = top
    return tops, sums, outs


@wl.function
def merged(tops, sums, outs):
    """Maximum, sum and weighted value [D] of all places of a head."""
    top = wl.max(tops, 0, keepdims=True)
    weight = wl.exp(tops - reference_point(top))
    return top, wl.sum(sums * weight, 0, keepdims=True), wl.sum(outs * weight[:, None], 0)


@wl.function
def both(a, b):
    """Two parts of the keys as one."""
    top = wl.maximum(a[0], b[0])
    base = reference_point(top)
    left, right = wl.exp(a[0] - base), wl.exp(b[0] - base)
    return top, a[1] * left + b[1] * right, a[2] * left + b[2] * right


@wl.kernel
def decode_split(
    q: wl.Tensor,
    k_cache: wl.Tensor,
    v_cache: wl.Tensor,
    positions: wl.Tensor,
    part_out: wl.Tensor,
    part_max: wl.Tensor,
    part_sum: wl.Tensor,
    scale: wl.f32,
    GROUPS: wl.const,
    HEADS: wl.const,
    D: wl.const,
    BN: wl.const,
    DEPTH: wl.const,
    SPLIT: wl.const,
):
    """Block (s, u, t): keys s·SPLIT … of token t for the HEADS query heads from u·HEADS on, which
    share the key head u // GROUPS. A split past the last key writes nothing."""
    wl.launch_dependents()
    wl.wait_for_previous()
    split, unit, t = wl.program_id(0), wl.program_id(1), wl.program_id(2)
    n = wl.minimum(wl.load(positions[t]) + 1, k_cache.shape[0])
    lo = split * SPLIT
    if lo < n:
        first, head = unit * HEADS, unit // GROUPS
        # Past the last key the cache holds anything, NaN too: those rows are outside, so zero.
        keys, values = k_cache.rows(0, n), v_cache.rows(0, n)
        hi = wl.minimum(n, lo + SPLIT)
        tops, sums, outs = places_of(
            q, keys, values, t, first, head, lo, hi, n, scale, HEADS, D, BN, DEPTH
        )
        for g in wl.unroll(HEADS):
            top, total, out = merged(tops[g], sums[g], outs[g])
            wl.store(part_out[t, first + g, split, wl.ds(0, D)], out)
            wl.store(part_max[t, first + g, wl.ds(split, 1)], top)
            wl.store(part_sum[t, first + g, wl.ds(split, 1)], total)


@wl.kernel
def decode_cluster(
    q: wl.Tensor,
    k_cache: wl.Tensor,
    v_cache: wl.Tensor,
    positions: wl.Tensor,
    out: wl.Tensor,
    scale: wl.f32,
    GROUPS: wl.const,
    HEADS: wl.const,
    D: wl.const,
    BN: wl.const,
    DEPTH: wl.const,
):
    """Cluster (u, t): as `decode_split`, the keys in equal parts over its blocks, whose results are
    merged in key order through distributed shared memory. No key gives 0."""
    wl.launch_dependents()
    wl.wait_for_previous()
    rank, unit, t = wl.cluster_rank(), wl.program_id(1), wl.program_id(2)
    n = wl.maximum(wl.minimum(wl.load(positions[t]) + 1, k_cache.shape[0]), 0)
    trips = (n + wl.cluster_size() * BN * DEPTH - 1) // (wl.cluster_size() * BN * DEPTH)
    lo = wl.minimum(n, rank * trips * BN * DEPTH)
    hi = wl.minimum(n, lo + trips * BN * DEPTH)
    first, head = unit * HEADS, unit // GROUPS
    keys, values = k_cache.rows(0, n), v_cache.rows(0, n)
    tops, sums, outs = places_of(
        q, keys, values, t, first, head, lo, hi, n, scale, HEADS, D, BN, DEPTH
    )
    for g in wl.unroll(HEADS):
        part = merged(tops[g], sums[g], outs[g])
        _, total, whole = wl.all_reduce(part, both, over=wl.cluster)
        if rank == g % wl.cluster_size():
            # Not `total > 0`: NaN must stay NaN.
            factor = wl.where(total == 0.0, 0.0, 1.0 / total)
            wl.store(out[t, first + g, wl.ds(0, D)], (whole * factor).cast(out.dtype))


@wl.kernel
def decode_merge(
    part_out: wl.Tensor,
    part_max: wl.Tensor,
    part_sum: wl.Tensor,
    positions: wl.Tensor,
    out: wl.Tensor,
    keys: wl.i32,
    D: wl.const,
    BS: wl.const,
    SPLIT: wl.const,
):
    """Block (h, t): merge the splits of a head in key order, BS at a time. No key gives 0."""
    wl.launch_dependents()
    wl.wait_for_previous()
    h, t = wl.program_id(0), wl.program_id(1)
    n = wl.minimum(wl.load(positions[t]) + 1, keys)
    splits = wl.maximum((n + SPLIT - 1) // SPLIT, 0)
    maxima, totals = part_max.rows(0, splits, axis=2), part_sum.rows(0, splits, axis=2)
    parts = part_out.rows(0, splits, axis=2)
    top, total = wl.full((), NEGATIVE_INFINITY, wl.f32), wl.zeros((), wl.f32)
    merged = wl.zeros((D,), wl.f32)
    for s in wl.range(0, splits, BS):
        part_top = wl.load(maxima[t, h, wl.ds(s, BS)], other=NEGATIVE_INFINITY)
        new_top = wl.maximum(top, wl.max(part_top, 0))
        base = reference_point(new_top)
        shrink, weight = wl.exp(top - base), wl.exp(part_top - base)
        total = total * shrink + wl.sum(weight * wl.load(totals[t, h, wl.ds(s, BS)]), 0)
        part = wl.load(parts[t, h, wl.ds(s, BS), wl.ds(0, D)])
        merged = merged * shrink + wl.sum(part * weight[:, None], 0)
        top = new_top
    # Not `total > 0`: NaN must stay NaN.
    factor = wl.where(total == 0.0, 0.0, 1.0 / total)
    wl.store(out[t, h, wl.ds(0, D)], (merged * factor).cast(out.dtype))


@decode_split.example
def _split(make):
    q, k, v = (
        make.randn((2, 6, 64), wl.f32),
        make.randn((40, 2, 64), wl.bf16),
        make.randn((40, 2, 64), wl.bf16),
    )
    parts = (
        make.empty((2, 6, 3, 64), wl.f32),
        make.empty((2, 6, 3), wl.f32),
        make.empty((2, 6, 3), wl.f32),
    )
    positions = make.array([20, 39], wl.i32)
    return decode_split.launch((3, 2, 2)).call(
        q, k, v, positions, *parts, 0.125, GROUPS=1, HEADS=3, D=64, BN=8, DEPTH=2, SPLIT=16
    )


@decode_split.example("two_heads")
def _two_heads(make):
    """As `config.choose` does it for an even ratio and heads of 128."""
    q, k, v = (
        make.randn((1, 4, 128), wl.f32),
        make.randn((70, 1, 128), wl.bf16),
        make.randn((70, 1, 128), wl.bf16),
    )
    parts = (
        make.empty((1, 4, 1, 128), wl.f32),
        make.empty((1, 4, 1), wl.f32),
        make.empty((1, 4, 1), wl.f32),
    )
    positions = make.array([66], wl.i32)
    return decode_split.launch((1, 2, 1)).call(
        q, k, v, positions, *parts, 0.1, GROUPS=2, HEADS=2, D=128, BN=16, DEPTH=2, SPLIT=256
    )


@decode_cluster.example
def _cluster(make):
    q, k, v = (
        make.randn((2, 6, 64), wl.f32),
        make.randn((70, 2, 64), wl.bf16),
        make.randn((70, 2, 64), wl.bf16),
    )
    positions, out = make.array([20, 69], wl.i32), make.empty((2, 6, 64), wl.bf16)
    return decode_cluster.launch((4, 2, 2), cluster=(4, 1, 1)).call(
        q, k, v, positions, out, 0.125, GROUPS=1, HEADS=3, D=64, BN=8, DEPTH=2
    )


@decode_merge.example
def _merge(make):
    parts = (
        make.randn((2, 6, 3, 64), wl.f32),
        make.randn((2, 6, 3), wl.f32),
        make.uniform((2, 6, 3), 0.0, 1.0, wl.f32),
    )
    positions, out = make.array([20, 39], wl.i32), make.empty((2, 6, 64), wl.bf16)
    return decode_merge.launch((6, 2)).call(*parts, positions, out, 40, D=64, BS=16, SPLIT=16)

"""Attention where a key head has one query head: each number of a key serves one product, so the
warps multiply and add themselves, and the matrix unit is left out. Chunks are dealt in turn.

In the shared memory of `Heads`, `queries` has rows of zeros, new keys, zeros, and the same of
values; `staged` the query, `gathered` a row for each warp.
"""

import math

import warploom as wl
from warploom.kernels.attention.kernel import reference_point
from warploom.kernels.token.plan import CHUNK, LINE

NEGATIVE_INFINITY = -math.inf
WINDOW = 4  # rows of the cache that are read together; a page holds whole ones


@wl.function
def alone_attended(heads):
    """Chunk by chunk, in turn over the blocks: all sequences, chunks and key heads."""
    team, places, EACH = heads.team, heads.places, heads.KV
    dealt = 0
    for t in wl.range(0, team.TOKENS):
        end = places.noted_end(t)
        if end > 0:
            last = places.position(end - 1)
            items = (last // CHUNK + 1) * EACH
            first = (team.b + team.BLOCKS - dealt % team.BLOCKS) % team.BLOCKS
            for i in wl.range(first, items, team.BLOCKS):
                chunk_attended(heads, t, end, i // EACH, i % EACH)
            dealt = dealt + items


@wl.function
def chunk_attended(heads, t, end, chunk, kv):
    """One chunk of one key head for the columns from t to end."""
    team, D, G = heads.team, heads.D, heads.group()
    rows_renewed(heads, t, end, chunk, kv)
    for u in wl.range(t, end):
        if heads.places.position(u) >= chunk * CHUNK:
            # The queries of the column before have been read: the warps have met since.
            for g in wl.range(team.r, G, team.WARPS):
                head = kv * G + g
                query = heads.turned(u, head * D, heads.q_norm)
                heads.staged[wl.ds(g, 1), :].store(query[None, :])
            team.meet()
            column_attended(heads, t, u, chunk, kv)


@wl.function
def rows_renewed(heads, t, end, chunk, kv):
    """Keys and values of the new tokens that stand in this chunk, into `queries` among rows of
    zeros, and into the cache, where nobody reads them in this layer."""
    team, caches, D, FRESH = heads.team, heads.caches, heads.D, heads.queries.shape[0] // 2
    # By warps that turn no query.
    for i in wl.range(team.WARPS - 1 - team.r, 2 * FRESH, team.WARPS):
        u = t + i // 2 - WINDOW
        position = heads.places.position(wl.minimum(wl.maximum(u, 0), team.TOKENS - 1))
        value = wl.zeros((D,), caches.keys.dtype)
        if (u >= t) & (u < end) & (position // CHUNK == chunk):
            page, row = caches.place(u, position)
            window = (heads.layer, page, row, kv, wl.ds(0, D))
            if i % 2 == 0:
                key = heads.turned(u, (heads.HEADS + kv) * D, heads.k_norm)
                value = key.cast(caches.keys.dtype)
                wl.store(caches.keys[window], value)
            else:
                row = (heads.HEADS + heads.KV + kv) * D
                value = heads.results(u, row + wl.arange(D)).cast(caches.values.dtype)
                wl.store(caches.values[window], value)
        heads.queries[wl.ds(i % 2 * FRESH + i // 2, 1), :].store(value[None, :])


@wl.function
def column_attended(heads, t, u, chunk, kv):
    """One token over the keys of a chunk up to its own position: the warps take WINDOWS windows of
    keys at a time in turn, and what they have is added up in the order of the warps."""
    team, D, G = heads.team, heads.D, heads.group()
    WINDOWS = 4 if D <= 64 else 2
    KEYS = WINDOWS * WINDOW
    keys = wl.minimum(heads.places.position(u) + 1 - chunk * CHUNK, CHUNK)
    tops = [wl.full((1,), NEGATIVE_INFINITY, wl.f32)] * G
    totals = [wl.zeros((1,), wl.f32)] * G
    outs = [wl.zeros((1, D), wl.f32)] * G
    for i in wl.range(team.r * KEYS, keys, team.WARPS * KEYS):
        ks, vs, are_keys = windows_loaded(heads, t, chunk, kv, i, keys, WINDOWS)
        weights = []
        for g in wl.unroll(G):
            query = heads.staged[wl.ds(g, 1), :].load()
            scores = []
            for w in wl.unroll(WINDOWS):
                score = wl.sum(ks[w] * query, 1) * heads.scale
                scores = scores + [wl.where(are_keys[w], score, NEGATIVE_INFINITY)]
            best = scores[0]
            for w in wl.unroll(1, WINDOWS):
                best = wl.maximum(best, scores[w])
            top = wl.maximum(tops[g], wl.max(best, 0, keepdims=True))
            base = reference_point(top)
            shrink = wl.exp(tops[g] - base)
            weight = [wl.exp(scores[0] - base)]
            total = weight[0]
            for w in wl.unroll(1, WINDOWS):
                weight = weight + [wl.exp(scores[w] - base)]
                total = total + weight[w]
            totals[g] = totals[g] * shrink + wl.sum(total, 0, keepdims=True)
            tops[g] = top
            outs[g] = outs[g] * shrink[:, None]
            weights = weights + [weight]
        for g in wl.unroll(G):
            out = weights[g][0][:, None] * vs[0].cast(wl.f32)
            for w in wl.unroll(1, WINDOWS):
                spread = weights[g][w][:, None] + wl.zeros((WINDOW, D), wl.f32)
                out = wl.fma(spread, vs[w].cast(wl.f32), out)
            outs[g] = outs[g] + wl.sum(out, 0, keepdims=True)
    warps_merged(heads, u, chunk, kv * G, tops, totals, outs)


@wl.function
def windows_loaded(heads, t, chunk, kv, first, keys, WINDOWS):
    """WINDOWS windows of keys and values from key `first` of a chunk on, and which of them are
    keys. The cache gives what stood before the new tokens, whose first is column t, and zeros
    behind, where it holds anything; new ones come from `queries`, which has zeros before."""
    caches, D, FRESH = heads.caches, heads.D, heads.queries.shape[0] // 2
    ks, vs, are_keys = [], [], []
    new = heads.places.position(t) - chunk * CHUNK
    for w in wl.unroll(WINDOWS):
        at = first + w * WINDOW
        page, row = caches.place(t, chunk * CHUNK + wl.minimum(at, keys - 1) // WINDOW * WINDOW)
        stood = row + wl.maximum(new - at, 0)
        window = (heads.layer, page, wl.ds(row, WINDOW), kv, wl.ds(0, D))
        ks = ks + [wl.load(caches.keys.rows(0, stood, axis=2)[window])]
        vs = vs + [wl.load(caches.values.rows(0, stood, axis=2)[window])]
        are_keys = are_keys + [wl.arange(WINDOW) + at < keys]
    for w in wl.unroll(WINDOWS):
        at = first + w * WINDOW
        row = wl.minimum(wl.maximum(at - new + WINDOW, 0), FRESH - WINDOW)
        k = heads.queries[wl.ds(row, WINDOW), :].load()
        v = heads.queries[wl.ds(row + FRESH, WINDOW), :].load()
        is_new = (wl.arange(WINDOW) + at >= new)[:, None]
        ks[w] = wl.where(is_new, k, ks[w]).cast(wl.f32)
        vs[w] = wl.where(is_new, v, vs[w])
    return ks, vs, are_keys


@wl.function
def warps_merged(heads, u, chunk, head, tops, totals, outs):
    """Merge what the warps have of the heads from `head` on, in their order: lines of heads are
    dealt to the warps."""
    team, D, G, WARPS = heads.team, heads.D, heads.group(), heads.team.WARPS
    for g in wl.unroll(G):
        heads.gathered[wl.ds(g * WARPS + team.r, 1), :].store(outs[g])
        team.note(2 * g * WARPS + team.r, tops[g])
        team.note((2 * g + 1) * WARPS + team.r, totals[g])
    team.meet()
    LINES = D // LINE
    for i in wl.range(team.r, G * LINES, WARPS):
        g, line = i // LINES, i % LINES
        tops_of = team.noted(2 * g * WARPS)
        best = wl.max(tops_of, 0, keepdims=True)
        weight = wl.exp(tops_of - reference_point(best))
        part = heads.gathered[wl.ds(g * WARPS, WARPS), wl.ds(line * LINE, LINE)].load()
        part = wl.sum(part * weight[:, None], 0)
        wl.store(heads.out[u, chunk, head * LINES + i, wl.ds(0, LINE)], part)
        if line == 0:
            total = wl.sum(weight * team.noted((2 * g + 1) * WARPS), 0, keepdims=True)
            wl.store(heads.tops[u, chunk, wl.ds(head + g, 1)], best)
            wl.store(heads.totals[u, chunk, wl.ds(head + g, 1)], total)

"""Attention of all tokens over their caches, in two phases. A block takes CHUNK keys of one head
for the columns of one sequence; then the chunks of a head are merged, in the order of the keys.

Before it attends, the block that has the chunk in which a new token lies appends its key and value.
Columns of one sequence lie beside each other, in the order of their positions.
"""

import math

import warploom as wl
from warploom.kernels.attention.kernel import reference_point
from warploom.kernels.norm.kernel import inverse_root
from warploom.kernels.token.device.inputs import Results
from warploom.kernels.token.plan import CHUNK

NEGATIVE_INFINITY = -math.inf
_KEYS = 4  # that a warp takes at a time; a page holds whole ones


@wl.struct
class Heads:
    """Sizes and tensors of attention in one layer. HALF pairs of a head turn; `q_norm` and `k_norm`
    [layers, D] may be None."""

    team: object
    parts: wl.Tensor
    matrix: object
    layer: int
    queries: object
    angles: object
    k_cache: wl.Tensor
    v_cache: wl.Tensor
    pages: wl.Tensor
    sequences: wl.Tensor
    positions: wl.Tensor
    advanced: int
    frequencies: wl.Tensor
    q_norm: object
    k_norm: object
    bias: object
    out: wl.Tensor
    tops: wl.Tensor
    totals: wl.Tensor
    scale: float
    eps: float
    HEADS: wl.const
    KV: wl.const
    D: wl.const
    HALF: wl.const
    INTERLEAVED: wl.const
    PAGE: wl.const

    def group(self):
        """Query heads that share a key head."""
        return self.HEADS // self.KV

    def sequence(self, t):
        return wl.load(self.sequences[t])

    def position(self, t):
        """Where token t stands in its sequence; −1 for a column that is not used."""
        held = wl.load(self.positions[t])
        return wl.where(held < 0, -1, held + self.advanced)

    def begins(self, t):
        """Whether column t is the first one of its sequence."""
        before = wl.maximum(t - 1, 0)
        return (self.position(t) >= 0) & (
            (t == 0) | (self.sequence(before) != self.sequence(t)) | (self.position(before) < 0)
        )

    def end(self, t):
        """The column after those of the sequence that begins at t."""
        end = t + 1
        for u in wl.unroll(1, self.team.TOKENS):
            here = wl.minimum(t + u, self.team.TOKENS - 1)
            more = (t + u < self.team.TOKENS) & (end == t + u)
            more = more & (self.sequence(here) == self.sequence(t)) & (self.position(here) >= 0)
            end = wl.where(more, t + u + 1, end)
        return end

    def projected(self, t, row):
        """The D results of the projection from a row on, biased, and each one's partner: with which
        it turns."""
        d = wl.arange(self.D)
        if self.INTERLEAVED:
            partner = wl.where(d < 2 * self.HALF, d ^ 1, d)
        else:
            partner = wl.where(d < self.HALF, d + self.HALF, d - self.HALF)
            partner = wl.where(d < 2 * self.HALF, partner, d)
        return self.results(t, row + d), self.results(t, row + partner), partner

    def results(self, t, rows):
        return Results(self.parts, self.matrix, self.bias, self.layer).at(t, rows)

    def turned(self, t, row, weight):
        """A query or a key of token t: normalised where there is a weight, then turned."""
        value, other, partner = self.projected(t, row)
        d = wl.arange(self.D)
        if weight is not None:
            root = inverse_root(wl.sum(value * value, 0) / float(self.D), self.eps)
            value = value * root * wl.gather(weight, (self.layer, d))
            other = other * root * wl.gather(weight, (self.layer, partner))
        cos = self.angles[wl.ds(2 * t, 1), :].load()[0]
        sin = self.angles[wl.ds(2 * t + 1, 1), :].load()[0]
        return value * cos + other * sin

    def angles_noted(self):
        """Before the first layer: what each token turns by, cosines and sines of all its D columns
        (the sine negative in the first of a pair, and no turn behind the pairs)."""
        d = wl.arange(self.D)
        pair, first = d % self.HALF, d < self.HALF
        if self.INTERLEAVED:
            pair, first = d // 2, d % 2 == 0
        inverse = wl.gather(self.frequencies, (pair,), d < 2 * self.HALF)
        for t in wl.range(self.team.r, self.team.TOKENS, self.team.WARPS):
            angle = self.position(t).cast(wl.f32) * inverse
            sin = wl.sin(angle)
            self.angles[wl.ds(2 * t, 1), :].store(wl.cos(angle)[None, :])
            self.angles[wl.ds(2 * t + 1, 1), :].store(wl.where(first, -sin, sin)[None, :])
        self.team.meet()

    def place(self, t, position):
        """Page and row in it of a position of the sequence of token t."""
        page = wl.load(self.pages[self.sequence(t), position // self.PAGE])
        return page, position % self.PAGE


@wl.function
def attended(heads):
    """Chunk by chunk, in turn over the blocks: all sequences, chunks and key heads."""
    team = heads.team
    dealt = 0
    turn = 0
    for t in wl.range(0, team.TOKENS):
        if heads.begins(t):
            end = heads.end(t)
            last = heads.position(end - 1)
            items = (last // CHUNK + 1) * heads.KV
            first = (team.b + team.BLOCKS - dealt % team.BLOCKS) % team.BLOCKS
            for i in wl.range(first, items, team.BLOCKS):
                turn = chunk_attended(heads, t, end, i // heads.KV, i % heads.KV, turn)
            dealt = dealt + items


@wl.function
def chunk_attended(heads, t, end, chunk, kv, turn):
    """One chunk of one key head for the columns from t to end."""
    team, D, GROUP = heads.team, heads.D, heads.group()
    # Keys and values of the new tokens that stand in this chunk.
    for i in wl.range(team.r, 2 * (end - t), team.WARPS):
        u, position = t + i // 2, heads.position(t + i // 2)
        if position // CHUNK == chunk:
            page, row = heads.place(u, position)
            if i % 2 == 0:
                key = heads.turned(u, (heads.HEADS + kv) * D, heads.k_norm)
                key = key.cast(heads.k_cache.dtype)
                wl.store(heads.k_cache[heads.layer, page, row, kv, wl.ds(0, D)], key)
            else:
                value = heads.results(u, (heads.HEADS + heads.KV + kv) * D + wl.arange(D))
                value = value.cast(heads.v_cache.dtype)
                wl.store(heads.v_cache[heads.layer, page, row, kv, wl.ds(0, D)], value)
    for u in wl.range(t, end):
        if heads.position(u) >= chunk * CHUNK:
            # The queries of the column before have been read: the warps have met since.
            for g in wl.range(team.r, GROUP, team.WARPS):
                query = heads.turned(u, (kv * GROUP + g) * D, heads.q_norm)
                heads.queries[wl.ds(g, 1), :].store(query[None, :])
            team.meet()
            turn = column_attended(heads, u, chunk, kv, turn)
    return turn


@wl.function
def column_attended(heads, u, chunk, kv, turn):
    """One token over the keys of a chunk up to its own position: the warps take them in turn, and
    what they have is added up in the order of the warps."""
    team, D, GROUP = heads.team, heads.D, heads.group()
    keys = wl.minimum(heads.position(u) + 1 - chunk * CHUNK, CHUNK)
    tops = [wl.full((1,), NEGATIVE_INFINITY, wl.f32)] * GROUP
    totals = [wl.zeros((1,), wl.f32)] * GROUP
    outs = [wl.zeros((1, D), wl.f32)] * GROUP
    for i in wl.range(team.r * _KEYS, keys, team.WARPS * _KEYS):
        page, row = heads.place(u, chunk * CHUNK + i)
        is_key = wl.arange(_KEYS) + i < keys
        k = wl.load(heads.k_cache[heads.layer, page, wl.ds(row, _KEYS), kv, wl.ds(0, D)])
        v = wl.load(heads.v_cache[heads.layer, page, wl.ds(row, _KEYS), kv, wl.ds(0, D)])
        # Behind the last key the cache holds anything, NaN too.
        k = wl.where(is_key[:, None], k.cast(wl.f32), 0.0)
        weights = []
        for g in wl.unroll(GROUP):
            query = heads.queries[wl.ds(g, 1), :].load()
            score = wl.where(is_key, wl.sum(k * query, 1) * heads.scale, NEGATIVE_INFINITY)
            top = wl.maximum(tops[g], wl.max(score, 0, keepdims=True))
            base = reference_point(top)
            shrink, weight = wl.exp(tops[g] - base), wl.exp(score - base)
            totals[g] = totals[g] * shrink + wl.sum(weight, 0, keepdims=True)
            outs[g] = outs[g] * shrink[:, None]
            tops[g] = top
            weights = weights + [weight]
        v = wl.where(is_key[:, None], v.cast(wl.f32), 0.0)
        for g in wl.unroll(GROUP):
            outs[g] = outs[g] + wl.sum(weights[g][:, None] * v, 0, keepdims=True)
    for g in wl.unroll(GROUP):
        turn = warps_merged(heads, u, chunk, kv * GROUP + g, tops[g], totals[g], outs[g], turn)
    return turn


@wl.function
def warps_merged(heads, u, chunk, head, top, total, out, turn):
    """Merge what the warps have of one head, in their order; one of them does it."""
    team, D, WARPS = heads.team, heads.D, heads.team.WARPS
    wide = team.sums.reshape((2 * WARPS, 128))
    noted = turn * 2 * WARPS
    wide[wl.ds(turn * WARPS + team.r, 1), wl.ds(0, D)].store(out)
    team.note(noted + team.r, top)
    team.note(noted + WARPS + team.r, total)
    team.meet()
    if team.r == head % WARPS:
        tops = team.noted(noted)
        best = wl.max(tops, 0, keepdims=True)
        weight = wl.exp(tops - reference_point(best))
        total = wl.sum(weight * team.noted(noted + WARPS), 0, keepdims=True)
        wl.store(heads.tops[u, head, wl.ds(chunk, 1)], best)
        wl.store(heads.totals[u, head, wl.ds(chunk, 1)], total)
        PIECE = 32 if D % 32 == 0 else 16
        for c in wl.unroll(0, D, PIECE):
            part = wide[wl.ds(turn * WARPS, WARPS), wl.ds(c, PIECE)].load()
            part = wl.sum(part * weight[:, None], 0)
            wl.store(heads.out[u, head, chunk, wl.ds(c, PIECE)], part)
    return 1 - turn


@wl.function
def chunks_merged(heads, mixed):
    """mixed[t, head · D …]: the chunks of each head in the order of the keys; 0 without a key."""
    team, D = heads.team, heads.D
    for i in wl.range(
        team.b * team.WARPS + team.r, team.TOKENS * heads.HEADS, team.BLOCKS * team.WARPS
    ):
        t, head = i // heads.HEADS, i % heads.HEADS
        top, total = wl.full((), NEGATIVE_INFINITY, wl.f32), wl.zeros((), wl.f32)
        out = wl.zeros((D,), wl.f32)
        for chunk in wl.range(0, (heads.position(t) + CHUNK) // CHUNK):
            part_top = wl.load(heads.tops[t, head, chunk])
            new_top = wl.maximum(top, part_top)
            base = reference_point(new_top)
            shrink, weight = wl.exp(top - base), wl.exp(part_top - base)
            total = total * shrink + wl.load(heads.totals[t, head, chunk]) * weight
            out = out * shrink + wl.load(heads.out[t, head, chunk, wl.ds(0, D)]) * weight
            top = new_top
        # Not `total > 0`: NaN must stay NaN.
        out = out * wl.where(total == 0.0, 0.0, 1.0 / total)
        wl.store(mixed[t, wl.ds(head * D, D)], out)

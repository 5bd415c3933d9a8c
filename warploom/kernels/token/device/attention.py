"""Attention of all tokens over their caches, in two phases. A block takes CHUNK keys of one head
for the columns of one sequence; then the chunks of a head are merged, in the order of the keys.

Before it attends, the block that has the chunk in which a new token lies appends its key and value.
Columns of one sequence lie beside each other, one position after the other.
"""

import math

import warploom as wl
from warploom.kernels.attention.kernel import reference_point
from warploom.kernels.norm.kernel import inverse_root
from warploom.kernels.token.device.inputs import Results
from warploom.kernels.token.plan import CHUNK, LINE

NEGATIVE_INFINITY = -math.inf
_KEYS = 4  # rows of a window of the cache; a page holds whole ones


@wl.struct
class Places:
    """Which columns a launch has; those of a sequence stand one position after the other. `noted`
    in shared memory holds positions, sequences and ends of a round."""

    noted: object
    positions: wl.Tensor
    sequences: wl.Tensor
    advanced: int
    TOKENS: wl.const

    def note(self):
        """One warp, as a round begins."""
        at = wl.arange(self.TOKENS)
        self.noted.scatter(at, self.now(wl.gather(self.positions, (at,))))
        self.noted.scatter(at + self.TOKENS, wl.gather(self.sequences, (at,)))

    def now(self, held):
        return wl.where(held < 0, -1, held + self.advanced)

    def sequence(self, t):
        return wl.scalar(self.noted.gather(wl.arange(1) + (t + self.TOKENS))[0])

    def position(self, t):
        """Where token t stands in its sequence; −1 for a column that is not used."""
        return wl.scalar(self.noted.gather(wl.arange(1) + t)[0])

    def note_ends(self, team):
        """All warps, once positions and sequences are noted."""
        for t in wl.range(team.r, self.TOKENS, team.WARPS):
            end = wl.where(self.begins(t), self.end(t), 0)
            self.noted.scatter(wl.arange(1) + (2 * self.TOKENS + t), wl.full((1,), end, wl.i32))

    def noted_end(self, t):
        """The column after those of the sequence that begins at t; 0 where none begins."""
        return wl.scalar(self.noted.gather(wl.arange(1) + (2 * self.TOKENS + t))[0])

    def begins(self, t):
        """Whether column t is the first one of its sequence."""
        before = wl.maximum(t - 1, 0)
        return (self.position(t) >= 0) & (
            (t == 0) | (self.sequence(before) != self.sequence(t)) | (self.position(before) < 0)
        )

    def end(self, t):
        """The column after those of the sequence that begins at t."""
        end = t + 1
        for u in wl.unroll(1, self.TOKENS):
            here = wl.minimum(t + u, self.TOKENS - 1)
            more = (t + u < self.TOKENS) & (end == t + u)
            more = more & (self.sequence(here) == self.sequence(t)) & (self.position(here) >= 0)
            end = wl.where(more, t + u + 1, end)
        return end


@wl.struct
class Caches:
    """Keys and values of all layers, and where the rows of a sequence lie."""

    keys: wl.Tensor
    values: wl.Tensor
    pages: wl.Tensor
    places: object
    D: wl.const
    PAGE: wl.const

    def place(self, t, position):
        """Page and row in it of a position of the sequence of token t."""
        page = wl.load(self.pages[self.places.sequence(t), position // self.PAGE])
        return page, position % self.PAGE


@wl.struct
class Heads:
    """Sizes and tensors of attention in one layer. HALF pairs of a head turn; `q_norm` and `k_norm`
    [layers, D] may be None. SHARES blocks share the query heads of a chunk of a key head.

    In shared memory, `fresh` has rows of zeros, new keys, zeros, and the same of values;
    `gathered` has a row for each head and warp. DIRECT: who needs the mixed values merges the
    chunks of a head itself, BATCH at a time.
    """

    team: object
    parts: wl.Tensor
    matrix: object
    layer: int
    queries: object
    fresh: object
    gathered: object
    angles: object
    caches: object
    places: object
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
    SHARES: wl.const
    BATCH: wl.const
    DIRECT: wl.const

    def group(self):
        """Query heads that a block attends with: a share of those of a key head."""
        return self.HEADS // (self.KV * self.SHARES)

    def chunks(self, t):
        """Chunks of token t."""
        return (self.places.position(t) + CHUNK) // CHUNK

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
        return Results(self.parts, self.matrix, self.bias, self.layer).rows(t, rows)

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

    def begin_round(self):
        """Before the first layer: where each token stands, and what it turns by, cosines and sines
        of all its D columns (the sine negative in the first of a pair, and no turn behind the
        pairs)."""
        if self.team.r == 0:
            self.places.note()
        self.team.meet()
        self.places.note_ends(self.team)
        d = wl.arange(self.D)
        pair, first = d % self.HALF, d < self.HALF
        if self.INTERLEAVED:
            pair, first = d // 2, d % 2 == 0
        inverse = wl.gather(self.frequencies, (pair,), d < 2 * self.HALF)
        for t in wl.range(self.team.r, self.team.TOKENS, self.team.WARPS):
            angle = self.places.position(t).cast(wl.f32) * inverse
            sin = wl.sin(angle)
            self.angles[wl.ds(2 * t, 1), :].store(wl.cos(angle)[None, :])
            self.angles[wl.ds(2 * t + 1, 1), :].store(wl.where(first, -sin, sin)[None, :])
        self.team.meet()


@wl.function
def room_of(sums, dtype, G, D, WARPS, TOKENS):
    """Shared memory of `Heads`: queries, fresh, gathered, angles. While heads are attended to, no
    sums are put, so two of them lie where those lie."""
    fresh = wl.shared((2 * (TOKENS + 2 * _KEYS), D), dtype, swizzle=0, alias=sums)
    gathered = wl.shared((WARPS * G, D), wl.f32, swizzle=0, alias=wl.behind(fresh))
    queries = wl.shared((G, D), wl.f32, swizzle=0)
    angles = wl.shared((2 * TOKENS, D), wl.f32, swizzle=0)
    return queries, fresh, gathered, angles


@wl.function
def attended(heads):
    """Chunk by chunk, in turn over the blocks: all sequences, chunks, key heads and shares of their
    query heads."""
    team, places, EACH = heads.team, heads.places, heads.KV * heads.SHARES
    dealt = 0
    for t in wl.range(0, team.TOKENS):
        end = places.noted_end(t)
        if end > 0:
            last = places.position(end - 1)
            items = (last // CHUNK + 1) * EACH
            first = (team.b + team.BLOCKS - dealt % team.BLOCKS) % team.BLOCKS
            for i in wl.range(first, items, team.BLOCKS):
                kv, share = i // heads.SHARES % heads.KV, i % heads.SHARES
                chunk_attended(heads, t, end, i // EACH, kv, share)
            dealt = dealt + items


@wl.function
def chunk_attended(heads, t, end, chunk, kv, share):
    """One chunk of one key head for the columns from t to end and a share of its query heads."""
    team, D, G = heads.team, heads.D, heads.group()
    rows_renewed(heads, t, end, chunk, kv, share)
    for u in wl.range(t, end):
        if heads.places.position(u) >= chunk * CHUNK:
            # The queries of the column before have been read: the warps have met since.
            for g in wl.range(team.r, G, team.WARPS):
                head = (kv * heads.SHARES + share) * G + g
                query = heads.turned(u, head * D, heads.q_norm)
                heads.queries[wl.ds(g, 1), :].store(query[None, :])
            team.meet()
            column_attended(heads, t, u, chunk, kv, share)


@wl.function
def rows_renewed(heads, t, end, chunk, kv, share):
    """Keys and values of the new tokens that stand in this chunk, into `fresh` among rows of zeros,
    and by one of those that share the heads into the cache, where nobody reads them in this
    layer."""
    team, caches, D, FRESH = heads.team, heads.caches, heads.D, heads.fresh.shape[0] // 2
    # By warps that turn no query.
    for i in wl.range(team.WARPS - 1 - team.r, 2 * FRESH, team.WARPS):
        u = t + i // 2 - _KEYS
        position = heads.places.position(wl.minimum(wl.maximum(u, 0), team.TOKENS - 1))
        value = wl.zeros((D,), caches.keys.dtype)
        if (u >= t) & (u < end) & (position // CHUNK == chunk):
            page, row = caches.place(u, position)
            window = (heads.layer, page, row, kv, wl.ds(0, D))
            if i % 2 == 0:
                key = heads.turned(u, (heads.HEADS + kv) * D, heads.k_norm)
                value = key.cast(caches.keys.dtype)
                if share == 0:
                    wl.store(caches.keys[window], value)
            else:
                row = (heads.HEADS + heads.KV + kv) * D
                value = heads.results(u, row + wl.arange(D)).cast(caches.values.dtype)
                if share == 0:
                    wl.store(caches.values[window], value)
        heads.fresh[wl.ds(i % 2 * FRESH + i // 2, 1), :].store(value[None, :])


@wl.function
def column_attended(heads, t, u, chunk, kv, share):
    """One token over the keys of a chunk up to its own position: the warps take WINDOWS windows of
    keys at a time in turn, and what they have is added up in the order of the warps."""
    team, D, G = heads.team, heads.D, heads.group()
    WINDOWS = 4 if D <= 64 else 2
    KEYS = WINDOWS * _KEYS
    keys = wl.minimum(heads.places.position(u) + 1 - chunk * CHUNK, CHUNK)
    tops = [wl.full((1,), NEGATIVE_INFINITY, wl.f32)] * G
    totals = [wl.zeros((1,), wl.f32)] * G
    outs = [wl.zeros((1, D), wl.f32)] * G
    for i in wl.range(team.r * KEYS, keys, team.WARPS * KEYS):
        ks, vs, are_keys = windows_loaded(heads, t, chunk, kv, i, keys, WINDOWS)
        weights = []
        for g in wl.unroll(G):
            query = heads.queries[wl.ds(g, 1), :].load()
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
                spread = weights[g][w][:, None] + wl.zeros((_KEYS, D), wl.f32)
                out = wl.fma(spread, vs[w].cast(wl.f32), out)
            outs[g] = outs[g] + wl.sum(out, 0, keepdims=True)
    warps_merged(heads, u, chunk, (kv * heads.SHARES + share) * G, tops, totals, outs)


@wl.function
def windows_loaded(heads, t, chunk, kv, first, keys, WINDOWS):
    """WINDOWS windows of keys and values from key `first` of a chunk on, and which of them are
    keys. The cache gives what stood before the new tokens, whose first is column t, and zeros
    behind, where it holds anything; new ones come from `fresh`, which has zeros before."""
    caches, D, FRESH = heads.caches, heads.D, heads.fresh.shape[0] // 2
    ks, vs, are_keys = [], [], []
    new = heads.places.position(t) - chunk * CHUNK
    for w in wl.unroll(WINDOWS):
        at = first + w * _KEYS
        page, row = caches.place(t, chunk * CHUNK + wl.minimum(at, keys - 1) // _KEYS * _KEYS)
        stood = row + wl.maximum(new - at, 0)
        window = (heads.layer, page, wl.ds(row, _KEYS), kv, wl.ds(0, D))
        ks = ks + [wl.load(caches.keys.rows(0, stood, axis=2)[window])]
        vs = vs + [wl.load(caches.values.rows(0, stood, axis=2)[window])]
        are_keys = are_keys + [wl.arange(_KEYS) + at < keys]
    for w in wl.unroll(WINDOWS):
        at = first + w * _KEYS
        row = wl.minimum(wl.maximum(at - new + _KEYS, 0), FRESH - _KEYS)
        k = heads.fresh[wl.ds(row, _KEYS), :].load()
        v = heads.fresh[wl.ds(row + FRESH, _KEYS), :].load()
        is_new = (wl.arange(_KEYS) + at >= new)[:, None]
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


@wl.struct
class Merged:
    """Mixed values: the chunks of each head, merged in the order of the keys; 0 without a key."""

    heads: object

    def at(self, t, line, LINES):
        heads, BATCH = self.heads, self.heads.BATCH
        head = ((wl.arange(LINES) + line) // (heads.D // LINE))[:, None]
        top, total = wl.full((LINES, 1), NEGATIVE_INFINITY, wl.f32), wl.zeros((LINES, 1), wl.f32)
        out = wl.zeros((LINES, LINE), wl.f32)
        count = heads.chunks(t)
        for begin in wl.range(0, count, BATCH):
            tops, totals, outs = [], [], []
            new_top = top
            for c in wl.unroll(BATCH):
                is_chunk, chunk = begin + c < count, wl.minimum(begin + c, count - 1)
                tops = tops + [wl.gather(heads.tops, (t, chunk, head), is_chunk, NEGATIVE_INFINITY)]
                totals = totals + [wl.gather(heads.totals, (t, chunk, head), is_chunk)]
                window = (t, chunk, wl.ds(line, LINES), wl.ds(0, LINE))
                outs = outs + [wl.load(heads.out[window])]
            for part in tops:
                new_top = wl.maximum(new_top, part)
            base = reference_point(new_top)
            shrink = wl.exp(top - base)
            total, out, top = total * shrink, out * shrink, new_top
            for c in wl.unroll(len(tops)):
                weight = wl.exp(tops[c] - base)
                total = total + totals[c] * weight
                out = out + outs[c] * weight
        # Not `total > 0`: NaN must stay NaN.
        return out * wl.where(total == 0.0, 0.0, 1.0 / total)


@wl.function
def chunks_merged(heads, mixed):
    """`Merged`, once for all blocks: mixed[t, line, 16]."""
    team, LINES = heads.team, heads.D // LINE
    for i in wl.range(
        team.r * team.BLOCKS + team.b, team.TOKENS * heads.HEADS, team.BLOCKS * team.WARPS
    ):
        t, line = i // heads.HEADS, i % heads.HEADS * LINES
        window = mixed[t, wl.ds(line, LINES), wl.ds(0, LINE)]
        wl.store(window, Merged(heads).at(t, line, LINES))

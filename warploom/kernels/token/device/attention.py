"""Attention of all tokens over their caches, in two phases. A block takes CHUNK keys of one head
for the columns of one sequence; then the chunks of a head are merged, in the order of the keys.

Before it attends, the block that has the chunk in which a new token lies appends its key and value.
Columns of one sequence lie beside each other, one position after the other.
"""

import warploom as wl
from warploom.kernels.attention.kernel import reference_point
from warploom.kernels.norm.kernel import inverse_root
from warploom.kernels.token.device.alone import NEGATIVE_INFINITY, WINDOW, alone_attended
from warploom.kernels.token.device.inputs import Results
from warploom.kernels.token.plan import CHUNK, KEYS, LINE, PAIRS

TILES = CHUNK // KEYS


@wl.struct
class Heads:
    """Sizes and tensors of attention in one layer. HALF pairs of a head turn; `q_norm` and `k_norm`
    [layers, D] may be None.

    In shared memory, `queries` are fragments of A; `notes` has the maximum and the sum that each
    tile of a chunk gives a query, then those of the chunk; `gathered`, which has room for ROWS
    queries, the weighted values of each tile as fragments, `staged` those of the chunk (and where a
    key head has one query head, what `alone` says). DIRECT: who
    needs the mixed values merges the chunks of a head itself, BATCH at a time. MANY: how many at a
    time where there are more, else 0.
    """

    team: object
    parts: wl.Tensor
    matrix: object
    layer: int
    notes: object
    queries: object
    staged: object
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
    ROWS: wl.const
    BATCH: wl.const
    MANY: wl.const
    DIRECT: wl.const

    def group(self):
        """Query heads of a key head."""
        return self.HEADS // self.KV

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
        if self.team.r == 0:
            self.places.note_chunks()
        self.team.meet()


@wl.function
def room_of(sums, vectors, dtype, WARPS, ROWS, G, D, TOKENS):
    """Shared memory of `Heads`: notes, queries, staged, gathered, angles. While heads are attended
    to, neither sums are put nor vectors needed, so all but the last lie where those lie."""
    angles = wl.shared((2 * TOKENS, D), wl.f32, swizzle=0)
    notes = wl.shared(((2 * TILES + 2) * PAIRS,), wl.f32, alias=sums)
    if G == 1:
        queries = wl.shared((2 * (TOKENS + 2 * WINDOW), D), dtype, swizzle=0, alias=vectors)
        staged = wl.shared((1, D), wl.f32, swizzle=0, alias=wl.behind(notes))
        gathered = wl.shared((WARPS, D), wl.f32, swizzle=0, alias=wl.behind(staged))
    else:
        queries = wl.shared((D // 16 * 32, 8), dtype, swizzle=0, alias=wl.behind(notes))
        staged = wl.shared((PAIRS, D), wl.f32, swizzle=0, alias=wl.behind(queries))
        gathered = wl.shared((TILES * (D // 8) * ROWS * 4, 2), wl.f32, swizzle=0, alias=vectors)
    return notes, queries, staged, gathered, angles


@wl.function
def attended(heads):
    """Chunk by chunk: those of all sequences and key heads lie in one row, of which each block has
    an equal share."""
    if heads.group() == 1:
        alone_attended(heads)
    else:
        shares_attended(heads)


@wl.function
def shares_attended(heads):
    """`attended` by the matrix unit."""
    team, places, KV = heads.team, heads.places, heads.KV
    total = places.chunks_before(team.TOKENS) * KV
    first, last = team.b * total // team.BLOCKS, (team.b + 1) * total // team.BLOCKS
    for t in wl.range(0, team.TOKENS):
        end = places.noted_end(t)
        if end > 0:
            chunks = places.position(end - 1) // CHUNK + 1
            base = places.chunks_before(t) * KV
            begin, stop = wl.maximum(first - base, 0), wl.minimum(last - base, chunks * KV)
            if begin < stop:
                for kv in wl.range(begin // chunks, (stop - 1) // chunks + 1):
                    lo = wl.maximum(begin - kv * chunks, 0)
                    hi = wl.minimum(stop - kv * chunks, chunks)
                    chunks_attended(heads, t, end, kv, lo, hi)


@wl.function
def chunks_attended(heads, t, end, kv, lo, hi):
    """Chunks from lo to hi of one key head for the columns from t to end, PAIRS queries at a
    time."""
    team = heads.team
    pairs = (end - t) * heads.group()
    rows_renewed(heads, t, end, kv, lo, hi)
    for begin in wl.range(0, pairs, PAIRS):
        # The queries before have been read: the warps have met since.
        queries_turned(heads, t, kv, begin, pairs)
        team.meet()
        for chunk in wl.range(lo, hi):
            for tile in wl.range(team.r, TILES, team.WARPS):
                tile_attended(heads, t, end, chunk, kv, tile, begin, pairs)
            team.meet()
            tiles_merged(heads)
            team.meet()
            pairs_written(heads, t, chunk, kv, begin, pairs)


@wl.function
def rows_renewed(heads, t, end, kv, lo, hi):
    """Keys and values of the new tokens that stand in these chunks, into the cache: of a chunk and
    key head nobody else takes any in this layer. By warps that turn no query."""
    team, caches, D = heads.team, heads.caches, heads.D
    for i in wl.range(team.WARPS - 1 - team.r, 2 * (end - t), team.WARPS):
        u = t + i // 2
        position = heads.places.position(u)
        if (position >= lo * CHUNK) & (position < hi * CHUNK):
            page, row = caches.place(u, position)
            window = (heads.layer, page, row, kv, wl.ds(0, D))
            if i % 2 == 0:
                key = heads.turned(u, (heads.HEADS + kv) * D, heads.k_norm)
                wl.store(caches.keys[window], key.cast(caches.keys.dtype))
            else:
                row = (heads.HEADS + heads.KV + kv) * D
                value = heads.results(u, row + wl.arange(D))
                wl.store(caches.values[window], value.cast(caches.values.dtype))


@wl.function
def queries_turned(heads, t, kv, begin, pairs):
    """The queries of pairs (column, head of the group) from `begin` on into shared memory, as
    fragments of A: in its upper rows, a query is what its dtype holds of it, in the lower ones the
    rest. Numbers of K: as `keys_loaded` reads them."""
    team, D, G = heads.team, heads.D, heads.group()
    flat, dtype = heads.queries.reshape((D // 16 * 256,)), heads.queries.dtype
    d, WHOLE = wl.arange(D), D // 32 * 32
    thread, step, e = d % 32 // 8, d // 32 * 2 + d % 8 // 4, d % 4
    if D % 32 > 0:
        thread = wl.where(d < WHOLE, thread, (d - WHOLE) // 4)
        step = wl.where(d < WHOLE, step, WHOLE // 16)
    for n in wl.range(team.r, PAIRS, team.WARPS):
        query = wl.zeros((D,), wl.f32)
        if begin + n < pairs:
            head = kv * G + (begin + n) % G
            query = heads.turned(t + (begin + n) // G, head * D, heads.q_norm)
        high = query.cast(dtype)
        at = (step * 32 + 4 * n + thread) * 8 + e // 2 * 4 + e % 2
        flat.scatter(at, high)
        flat.scatter(at + 2, (query - high.cast(wl.f32)).cast(dtype))


@wl.function
def keys_loaded(heads, row_of, kv, first, count):
    """Fragments of B, of keys in the order of its columns: 8 keys from `first` on, each thread a
    run of 8 numbers of a key for two steps."""
    D, lane = heads.D, wl.lane_id()
    page, row, is_key = row_of.at(first + lane // 4, count)
    found = []
    for c in wl.unroll(D // 32):
        at = (heads.layer, page, row, kv, (lane % 4 + 4 * c) * 8)
        run = wl.gather(heads.caches.keys, at, is_key, run=8)
        found = found + [run[:, 0:4], run[:, 4:8]]
    if D % 32 > 0:
        at = (heads.layer, page, row, kv, (lane % 4 + D // 32 * 8) * 4)
        found = found + [wl.gather(heads.caches.keys, at, is_key, run=4)]
    return found


@wl.function
def values_loaded(heads, row_of, kv, first, count):
    """Fragments of B, one for every 8 columns, of 16 keys along K: thread 4i + j reads runs of keys
    2j, 2j + 1, 2j + 8 and 2j + 9; `column_of` says which columns these are."""
    D, lane = heads.D, wl.lane_id()
    rows = []
    for k in wl.unroll(4):
        rows = rows + [row_of.at(first + lane % 4 * 2 + (k % 2 + k // 2 * 8), count)]
    found, done = [], 0
    for _ in wl.unroll(D // 64 + D % 64 // 32 + D % 32 // 16):
        RUN = min(8, 2 if D - done < 32 else (4 if D - done < 64 else 8))
        runs = []
        for k in wl.unroll(4):
            page, row, is_key = rows[k]
            at = (heads.layer, page, row, kv, (lane // 4 + done // RUN) * RUN)
            runs = runs + [wl.gather(heads.caches.values, at, is_key, run=RUN)]
        for m in wl.unroll(RUN):
            parts = [run[:, m : m + 1] for run in runs]
            found = found + [wl.cat(parts, 1)]
        done = done + 8 * RUN
    return found


@wl.function
def column_of(number, column, D):
    """Which column of a head column `column` of fragment `number` of `values_loaded` is."""
    WHOLE = D // 64 * 64
    found = number // 8 * 64 + column * 8 + number % 8
    if D % 64 > 0:
        RUN = 4 if D % 64 >= 32 else 2
        rest = number - WHOLE // 8
        behind = WHOLE + column * RUN + rest
        if D % 64 == 48:
            behind = wl.where(rest < 4, behind, WHOLE + 32 + column * 2 + rest - 4)
        found = wl.where(rest < 0, found, behind)
    return found


@wl.struct
class Rows:
    """Where the keys of a chunk lie in the cache of the sequence of column t."""

    caches: object
    t: int
    begin: int

    def at(self, key, count):
        """Page and row of keys of the chunk, and which of them are there."""
        caches = self.caches
        position = self.begin + wl.minimum(key, count - 1)
        page = wl.gather(caches.pages, (caches.places.sequence(self.t), position // caches.PAGE))
        return page, position % caches.PAGE, key < count


@wl.function
def tile_attended(heads, t, end, chunk, kv, tile, begin, pairs):
    """One warp, 16 keys: scores of PAIRS queries, and the values weighted by them. Queries and
    weights stand twice among the rows of A: what their dtype holds of them, and the rest."""
    places, D, G, lane = heads.places, heads.D, heads.group(), wl.lane_id()
    count = wl.minimum(places.position(end - 1) + 1 - chunk * CHUNK, CHUNK)
    row_of = Rows(heads.caches, t, chunk * CHUNK)
    keys = [keys_loaded(heads, row_of, kv, tile * KEYS + 8 * h, count) for h in wl.unroll(2)]
    values = values_loaded(heads, row_of, kv, tile * KEYS, count)
    pair = begin + lane // 4
    limit = places.noted.gather(wl.minimum(t + pair // G, end - 1)) + 1 - chunk * CHUNK
    limit = wl.where(pair < pairs, limit, 0)[:, None]
    scores = []
    for h in wl.unroll(2):
        acc = wl.zeros((32, 4), wl.f32)
        for step in wl.unroll(D // 16):
            query = heads.queries[wl.ds(step * 32, 32), :].load()
            acc = wl.mma(query, keys[h][step], acc)
        key = (tile * KEYS + 8 * h + lane % 4 * 2)[:, None] + wl.arange(2)[None, :]
        score = (acc[:, 0:2] + acc[:, 2:4]) * heads.scale
        scores = scores + [wl.where(key < limit, score, NEGATIVE_INFINITY)]
    top = over_keys(wl.max(scores[0], 1), wl.max(scores[1], 1), True)
    base = reference_point(top)[:, None]
    weights = [wl.exp(scores[0] - base), wl.exp(scores[1] - base)]
    total = over_keys(wl.sum(weights[0], 1), wl.sum(weights[1], 1), False)
    at = wl.where(lane % 4 == 0, tile * PAIRS + lane // 4, -1)
    heads.notes.scatter(at, top)
    heads.notes.scatter(wl.where(at < 0, at, at + TILES * PAIRS), total)
    parts = []
    for h in wl.unroll(2):
        high = weights[h].cast(heads.queries.dtype)
        rest = (weights[h] - high.cast(wl.f32)).cast(heads.queries.dtype)
        parts = parts + [high, rest]
    weight = wl.cat(parts, 1)
    for n in wl.unroll(D // 8):
        out = wl.mma(weight, values[n], wl.zeros((32, 4), wl.f32))
        out = out[:, 0:2] + out[:, 2:4]
        first = (tile * (D // 8) + n) * heads.ROWS * 4
        if heads.ROWS == PAIRS:
            heads.gathered[wl.ds(first, 32), :].store(out)
        else:
            row = wl.where(lane < heads.ROWS * 4, first + lane, -1)
            heads.gathered.scatter(row[:, None] + wl.zeros((1, 2), wl.i32), out)


@wl.function
def over_keys(first, second, IS_TOP):
    """The largest or the sum of two numbers a thread, over the 4 threads that have keys of a
    query."""
    for distance in (0, 1, 2):
        if distance > 0:
            second = wl.shuffle(first, wl.lane_id() ^ distance)
        first = wl.maximum(first, second) if IS_TOP else first + second
    return first


@wl.function
def tiles_merged(heads):
    """Add up what the warps have of PAIRS queries in the order of the keys: fragments of columns
    are dealt to the warps. Each of the 4 threads of a query weighs a quarter of the tiles."""
    team, D, lane = heads.team, heads.D, wl.lane_id()
    FRAGMENTS, ROWS, pair, EACH = D // 8, heads.ROWS, lane // 4, TILES // 4
    at = pair + lane % 4 * (EACH * PAIRS)
    tops, mine, total = [], [], wl.zeros((32,), wl.f32)
    best = wl.full((32,), NEGATIVE_INFINITY, wl.f32)
    for w in wl.unroll(EACH):
        tops = tops + [heads.notes.gather(at + w * PAIRS)]
        best = wl.maximum(best, tops[w])
    best = over_keys(best, best, True)
    base = reference_point(best)
    for w in wl.unroll(EACH):
        mine = mine + [wl.exp(tops[w] - base)]
        total = total + mine[w] * heads.notes.gather(at + (TILES + w) * PAIRS)
    total = over_keys(total, wl.zeros((32,), wl.f32), False)
    weights = []
    for w in wl.unroll(TILES):
        weights = weights + [wl.shuffle(mine[w % EACH], lane // 4 * 4 + w // EACH)]
    if team.r == 0:
        to = wl.where(lane % 4 == 0, pair + 2 * TILES * PAIRS, -1)
        heads.notes.scatter(to, best)
        heads.notes.scatter(wl.where(to < 0, to, to + PAIRS), total)
    flat = heads.staged.reshape((PAIRS * D,))
    for n in wl.range(team.r, FRAGMENTS, team.WARPS):
        out = wl.zeros((32, 2), wl.f32)
        for w in wl.unroll(TILES):
            row = (w * FRAGMENTS + n) * ROWS * 4 + lane % (ROWS * 4)
            row = wl.pin(row[:, None] + wl.zeros((1, 2), wl.i32), "l32:0*1 r2:1*1")
            part = heads.gathered.gather(row)
            out = out + part * weights[w][:, None]
        for e in wl.unroll(2):
            flat.scatter(pair * D + column_of(n, lane % 4 * 2 + e, D), out[:, e])


@wl.function
def pairs_written(heads, t, chunk, kv, begin, pairs):
    """What a chunk gives its queries, a pair a warp."""
    team, D, G = heads.team, heads.D, heads.group()
    LINES = D // LINE
    lines = heads.staged.reshape((PAIRS * LINES, LINE))
    for n in wl.range(team.r, wl.minimum(pairs - begin, PAIRS), team.WARPS):
        u, head = t + (begin + n) // G, kv * G + (begin + n) % G
        part = lines[wl.ds(n * LINES, LINES), :].load()
        wl.store(heads.out[u, chunk, wl.ds(head * LINES, LINES), wl.ds(0, LINE)], part)
        at = wl.arange(1) + (n + 2 * TILES * PAIRS)
        wl.store(heads.tops[u, chunk, wl.ds(head, 1)], heads.notes.gather(at))
        wl.store(heads.totals[u, chunk, wl.ds(head, 1)], heads.notes.gather(at + PAIRS))

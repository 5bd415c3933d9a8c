"""What each matrix is multiplied with: structs whose `at(t, line, LINES)` gives neighbouring lines
of token t, 16 columns each, made from what earlier matrices left. Every block makes what it needs
by itself.
"""

import warploom as wl
from warploom.kernels.activation.kernel import gelu_by_erf, silu
from warploom.kernels.norm.kernel import inverse_root
from warploom.kernels.token.device.stream import keep, summed, summed_lines
from warploom.kernels.token.plan import LINE, MOST_TOKENS, UNIT_LINES


@wl.struct
class Results:
    """What a matrix of a layer gave: its parts, and its bias [layers, lines, 16] or None."""

    parts: wl.Tensor
    matrix: object
    bias: object
    layer: int

    def at(self, t, line, LINES):
        value = summed_lines(self.parts, self.matrix, t, line, LINES)
        if self.bias is not None:
            value = value + wl.load(self.bias[self.layer, wl.ds(line, LINES), wl.ds(0, LINE)])
        return value

    def rows(self, t, rows):
        """Results by their numbers."""
        value = summed(self.parts, self.matrix, t, rows)
        if self.bias is not None:
            value = value + wl.gather(self.bias, (self.layer, rows // LINE, rows % LINE))
        return value


@wl.struct
class Embedded:
    """The stream at its beginning: rows of the embedding. `tokens` holds their numbers."""

    table: wl.Tensor
    tokens: object

    def at(self, t, line, LINES):
        token = wl.scalar(self.tokens.gather(wl.arange(1) + t)[0])
        return wl.load(self.table[token, wl.ds(line, LINES), wl.ds(0, LINE)]).cast(wl.f32)


@wl.struct
class Added:
    """One half of the stream, with what up to two matrices add to it: `Results` or None."""

    stream: wl.Tensor
    half: int
    first: object
    second: object

    def at(self, t, line, LINES):
        value = wl.load(self.stream[self.half, t, wl.ds(line, LINES), wl.ds(0, LINE)])
        if self.first is not None:
            value = value + self.first.at(t, line, LINES)
        if self.second is not None:
            value = value + self.second.at(t, line, LINES)
        return value


@wl.struct
class Gated:
    """silu(gate) · up; both are results of one matrix, first all of the one, then of the other."""

    results: object

    def at(self, t, line, LINES):
        gate = self.results.at(t, line, LINES)
        return silu(gate) * self.results.at(t, line + self.results.matrix.N // 2 // LINE, LINES)


@wl.struct
class Curved:
    """gelu(up)."""

    results: object

    def at(self, t, line, LINES):
        return gelu_by_erf(self.results.at(t, line, LINES))


@wl.struct
class Plain:
    """Lines of a tensor."""

    lines: wl.Tensor

    def at(self, t, line, LINES):
        return wl.load(self.lines[t, wl.ds(line, LINES), wl.ds(0, LINE)])


@wl.struct
class Norm:
    """Weights [norms, lines, 16] of all norms of a model, and, of those that take the mean away,
    biases; else None. H columns."""

    weight: wl.Tensor
    bias: object
    eps: float
    H: wl.const

    def weights(self, row, line, LINES):
        return wl.load(self.weight[row, wl.ds(line, LINES), wl.ds(0, LINE)])

    def root(self, team, t, SPANS):
        """1 / root of the mean square of token t, from the sums of its spans."""
        squares = team.stats.gather(wl.arange(SPANS) + t * SPANS)
        return inverse_root(wl.sum(squares, 0) / float(self.H), self.eps)


@wl.struct
class Normed:
    """A source normalised by row `row` of the norms. `statistics` come first."""

    source: object
    norm: object
    row: int
    team: object
    SPANS: wl.const

    def at(self, t, line, LINES):
        norm = self.norm
        value = self.source.at(t, line, LINES)
        if norm.bias is not None:
            value = value - mean_of(self.team, t, norm.H, self.SPANS)
        value = value * norm.root(self.team, t, self.SPANS) * norm.weights(self.row, line, LINES)
        if norm.bias is not None:
            value = value + wl.load(norm.bias[self.row, wl.ds(line, LINES), wl.ds(0, LINE)])
        return value


@wl.function
def total_of(tile):
    """The sum of all of a tile with two axes, shape ()."""
    return wl.sum(wl.sum(tile, 1), 0)


@wl.function
def mean_of(team, t, H, SPANS):
    """The mean of a token's source, from the second half of `team.stats`."""
    sums = team.stats.gather(wl.arange(SPANS) + (MOST_TOKENS + t) * SPANS)
    return wl.sum(sums, 0) / float(H)


@wl.function
def statistics(team, source, norm, LINES, kept, half):
    """What `Normed` needs, one sum a span of LINES lines, into `team.stats`: Σ x² of each token, or
    Σ x and Σ (x − mean)². Where `kept` is a tensor, each block writes its share of the source
    there. The sums do not depend on which warp has made them."""
    SPANS = norm.H // (LINES * LINE)
    if norm.bias is not None:
        for i in wl.range(team.r, SPANS * team.TOKENS, team.WARPS):
            t, span = i % team.TOKENS, i // team.TOKENS
            value = total_of(source.at(t, span * LINES, LINES))
            team.note((MOST_TOKENS + t) * SPANS + span, value)
        team.meet()
    for i in wl.range(team.r, SPANS * team.TOKENS, team.WARPS):
        t, span = i % team.TOKENS, i // team.TOKENS
        v = source.at(t, span * LINES, LINES)
        keep_share(team, kept, half, t, span, v)
        if norm.bias is not None:
            v = v - mean_of(team, t, norm.H, SPANS)
        team.note(t * SPANS + span, total_of(v * v))
    team.meet()


@wl.function
def keep_share(team, kept, half, t, span, value):
    """Each block writes its share of what all of them have, where `kept` is a tensor."""
    if kept is not None:
        if (span + t) % team.BLOCKS == team.b:
            LINES = value.shape[0]
            wl.store(kept[half, t, wl.ds(span * LINES, LINES), wl.ds(0, LINE)], value)


@wl.function
def summed_up(team, source, LINES, ALL, out, half):
    """Each block makes a share of a source of ALL lines, once for all: out[half, t, line, 16]."""
    for i in wl.range(
        team.r * team.BLOCKS + team.b, ALL // LINES * team.TOKENS, team.BLOCKS * team.WARPS
    ):
        t, line = i % team.TOKENS, i // team.TOKENS * LINES
        wl.store(out[half, t, wl.ds(line, LINES), wl.ds(0, LINE)], source.at(t, line, LINES))


@wl.function
def filled_once(team, vectors, matrix, source, norm, row, kept, half, MOST):
    """`statistics` and `filled` in one pass: the vectors are only multiplied with the weights of
    the norm, and `team.roots` get what the sums of a matrix have to be multiplied with."""
    LINES, LINES_HELD = matrix.lines(), matrix.WIDE * UNIT_LINES
    ALL, TOKENS, WARPS = matrix.K // LINE, team.TOKENS, team.WARPS
    SPANS = ALL // LINES
    FLIGHT = flight(SPANS * TOKENS, WARPS, MOST)
    first, end = matrix.start(team.b), matrix.start(team.b + 1)
    start = first * LINES_HELD % ALL
    held = wl.minimum(end - first, matrix.in_band()) * LINES_HELD
    for i in wl.range(team.r, SPANS * TOKENS, WARPS * FLIGHT):
        values, weights = [], []
        for k in wl.unroll(FLIGHT):
            j = wl.minimum(i + k * WARPS, SPANS * TOKENS - 1)
            line = j // TOKENS * LINES
            values = values + [source.at(j % TOKENS, line, LINES)]
            weights = weights + [norm.weights(row, line, LINES)]
        for k in wl.unroll(FLIGHT):
            j = i + k * WARPS
            if j < SPANS * TOKENS:
                t, span = j % TOKENS, j // TOKENS
                keep_share(team, kept, half, t, span, values[k])
                team.note(t * SPANS + span, total_of(values[k] * values[k]))
                line = span * LINES - start
                line = wl.where(line < 0, line + ALL, line)
                if line < held:
                    keep(vectors, line, t, values[k] * weights[k])
    team.meet()
    for t in wl.range(team.r, TOKENS, WARPS):
        team.roots.scatter(wl.arange(1) + t, wl.zeros((1,), wl.f32) + norm.root(team, t, SPANS))


@wl.function
def filled(team, vectors, matrix, source, MOST):
    """Fill `vectors` with the columns that this block's share of a matrix is multiplied with, in
    the order of its steps. `source.at` gives them, up to MOST spans at a time."""
    LINES, LINES_HELD = matrix.lines(), matrix.WIDE * UNIT_LINES
    ALL, TOKENS, WARPS = matrix.K // LINE, team.TOKENS, team.WARPS
    FLIGHT = flight(matrix.longest() * LINES_HELD // LINES * TOKENS, WARPS, MOST)
    first, end = matrix.start(team.b), matrix.start(team.b + 1)
    items = wl.minimum(end - first, matrix.in_band()) * (LINES_HELD // LINES) * TOKENS
    for i in wl.range(team.r, items, WARPS * FLIGHT):
        values = []
        for k in wl.unroll(FLIGHT):
            j = wl.minimum(i + k * WARPS, items - 1)
            line = (first * LINES_HELD + j // TOKENS * LINES) % ALL
            values = values + [source.at(j % TOKENS, line, LINES)]
        for k in wl.unroll(FLIGHT):
            j = i + k * WARPS
            if j < items:
                keep(vectors, j // TOKENS * LINES, j % TOKENS, values[k])
    team.meet()


@wl.function
def flight(items, warps, MOST):
    """Of so many items dealt to warps in turn, those that a warp begins with at a time: their loads
    are under way together."""
    return min(MOST, -(-items // warps))

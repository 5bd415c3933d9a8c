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

    def mean(self, team, t, SPANS):
        """The mean of token t, from the sums of its spans; None where it is not taken away."""
        if self.bias is None:
            return None
        sums = team.stats.gather(wl.arange(SPANS) + (MOST_TOKENS + t) * SPANS)
        return wl.sum(sums, 0) / float(self.H)

    def root(self, team, t, SPANS):
        """1 / root of the mean square of token t, of its distance from the mean where that is taken
        away, from what `note` has left of its spans."""
        squares = team.stats.gather(wl.arange(SPANS) + t * SPANS)
        if self.bias is not None:
            # Those of a span are about its own mean.
            EACH = self.H // SPANS
            sums = team.stats.gather(wl.arange(SPANS) + (MOST_TOKENS + t) * SPANS)
            off = sums / float(EACH) - self.mean(team, t, SPANS)
            squares = squares + off * off * float(EACH)
        return inverse_root(wl.sum(squares, 0) / float(self.H), self.eps)

    def note(self, team, t, span, SPANS, value):
        """One span of token t, into `team.stats`: Σ x², or Σ x and Σ (x − mean of the span)²."""
        if self.bias is not None:
            total = total_of(value)
            team.note((MOST_TOKENS + t) * SPANS + span, total)
            value = value - total / float(self.H // SPANS)
        team.note(t * SPANS + span, total_of(value * value))

    def applied(self, value, mean, root, weight, bias):
        """What the norm makes of lines of a source; `mean` and `bias` may be None."""
        if self.bias is not None:
            return (value - mean) * root * weight + bias
        return value * root * weight

    def biases(self, row, line, LINES):
        if self.bias is None:
            return None
        return wl.load(self.bias[row, wl.ds(line, LINES), wl.ds(0, LINE)])


@wl.struct
class Normed:
    """A source normalised by row `row` of the norms. `statistics` come first."""

    source: object
    norm: object
    row: int
    team: object

    def at(self, t, line, LINES):
        norm = self.norm
        value = self.source.at(t, line, LINES)
        root = wl.scalar(self.team.roots.gather(wl.arange(1) + t)[0])
        mean = wl.scalar(self.team.roots.gather(wl.arange(1) + (MOST_TOKENS + t))[0])
        weight, bias = norm.weights(self.row, line, LINES), norm.biases(self.row, line, LINES)
        return norm.applied(value, mean, root, weight, bias)


@wl.function
def total_of(tile):
    """The sum of all of a tile with two axes, shape ()."""
    return wl.sum(wl.sum(tile, 1), 0)


@wl.function
def statistics(team, source, norm, LINES, kept, half):
    """What `Normed` needs, out of `Norm.note` of each span of LINES lines: `team.roots`. Where
    `kept` is a tensor, each block writes its share of the source there. The sums do not depend on
    which warp has made them."""
    SPANS = norm.H // (LINES * LINE)
    for i in wl.range(team.r, SPANS * team.TOKENS, team.WARPS):
        t, span = i % team.TOKENS, i // team.TOKENS
        value = source.at(t, span * LINES, LINES)
        keep_share(team, kept, half, t, span, value)
        norm.note(team, t, span, SPANS, value)
    team.meet()
    for t in wl.range(team.r, team.TOKENS, team.WARPS):
        one = wl.zeros((1,), wl.f32)
        team.roots.scatter(wl.arange(1) + t, one + norm.root(team, t, SPANS))
        mean = norm.mean(team, t, SPANS) if norm.bias is not None else 0.0
        team.roots.scatter(wl.arange(1) + (MOST_TOKENS + t), one + mean)
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
    LINES, TOKENS, WARPS = matrix.lines(), team.TOKENS, team.WARPS
    SPANS = matrix.K // LINE // LINES
    FLIGHT = flight(SPANS * TOKENS, WARPS, MOST)
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
                norm.note(team, t, span, SPANS, values[k])
                keep_if_needed(team, vectors, matrix, span * LINES, t, values[k] * weights[k])
    team.meet()
    for t in wl.range(team.r, TOKENS, WARPS):
        team.roots.scatter(wl.arange(1) + t, wl.zeros((1,), wl.f32) + norm.root(team, t, SPANS))


@wl.function
def keep_if_needed(team, vectors, matrix, line, t, values):
    """`keep` lines of the input from `line` on where a block's share needs them."""
    LINES_HELD, ALL = matrix.WIDE * UNIT_LINES, matrix.K // LINE
    first, end = matrix.start(team.b), matrix.start(team.b + 1)
    line = line - first * LINES_HELD % ALL
    line = wl.where(line < 0, line + ALL, line)
    if line < wl.minimum(end - first, matrix.in_band()) * LINES_HELD:
        keep(vectors, team.TOKENS, line, t, values)


@wl.struct
class Held:
    """A source of which each warp holds its spans, from number `first` on, until the sums of all
    are known: it is read once, and normalised as exactly as if it were read twice. Where
    `plan.Plan.is_held` says so, registers suffice."""

    team: object
    matrix: object
    norm: object
    first: int

    def lines(self):
        return self.matrix.lines()

    def spans(self):
        return self.norm.H // (LINE * self.lines())

    def count(self):
        """Spans of a warp."""
        return -(-self.spans() * self.team.TOKENS // self.team.WARPS)

    def number(self, k):
        """Of the warp's span k, among those of all tokens; it may be one too many."""
        return self.first + k * self.team.WARPS

    def place(self, k):
        """Token and first line of span k."""
        j = wl.minimum(self.number(k), self.spans() * self.team.TOKENS - 1)
        return j % self.team.TOKENS, j // self.team.TOKENS * self.lines()

    def values(self, source):
        values = []
        for k in wl.unroll(self.count()):
            t, line = self.place(k)
            values = values + [source.at(t, line, self.lines())]
        return values

    def norms(self, row):
        """Weights and biases of a norm for these spans."""
        weights, biases = [], []
        for k in wl.unroll(self.count()):
            _, line = self.place(k)
            weights = weights + [self.norm.weights(row, line, self.lines())]
            biases = biases + [self.norm.biases(row, line, self.lines())]
        return weights, biases

    def note(self, values, kept, half):
        """`statistics` of what all warps hold."""
        for k in wl.unroll(self.count()):
            if self.number(k) < self.spans() * self.team.TOKENS:
                t, line = self.place(k)
                keep_share(self.team, kept, half, t, line // self.lines(), values[k])
                self.norm.note(self.team, t, line // self.lines(), self.spans(), values[k])
        self.team.meet()

    def fill(self, vectors, matrix, values, weights, biases):
        """`filled` with what a norm makes of it, after `note`."""
        team, norm = self.team, self.norm
        mean, root = norm.mean(team, 0, self.spans()), norm.root(team, 0, self.spans())
        for k in wl.unroll(self.count()):
            if self.number(k) < self.spans() * team.TOKENS:
                t, line = self.place(k)
                if team.TOKENS > 1:
                    mean, root = norm.mean(team, t, self.spans()), norm.root(team, t, self.spans())
                value = norm.applied(values[k], mean, root, weights[k], biases[k])
                keep_if_needed(team, vectors, matrix, line, t, value)
        team.meet()


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
                keep(vectors, TOKENS, j // TOKENS * LINES, j % TOKENS, values[k])
    team.meet()


@wl.function
def flight(items, warps, MOST):
    """Of so many items dealt to warps in turn, those that a warp begins with at a time: their loads
    are under way together."""
    return min(MOST, -(-items // warps))

"""What each matrix is multiplied with: structs whose `at(t, column, N)` gives N neighbouring
numbers of token t, made from what earlier matrices left. Every block makes what it needs by itself.
"""

import warploom as wl
from warploom.kernels.activation.kernel import gelu_by_erf, silu
from warploom.kernels.norm.kernel import inverse_root
from warploom.kernels.token.device.stream import summed
from warploom.kernels.token.plan import MOST_TOKENS


@wl.struct
class Results:
    """What a matrix of a layer gave: its parts, and its bias [layers, N] or None."""

    parts: wl.Tensor
    matrix: object
    bias: object
    layer: int

    def at(self, t, rows):
        value = summed(self.parts, self.matrix, t, rows)
        if self.bias is not None:
            value = value + wl.gather(self.bias, (self.layer, rows))
        return value


@wl.struct
class Embedded:
    """The stream at its beginning: rows of the embedding. `tokens` holds their numbers."""

    table: wl.Tensor
    tokens: object

    def at(self, t, column, N):
        token = wl.scalar(self.tokens.gather(wl.arange(1) + t)[0])
        return wl.load(self.table[token, wl.ds(column, N)]).cast(wl.f32)


@wl.struct
class Added:
    """One half of the stream, with what up to two matrices add to it: `Results` or None."""

    stream: wl.Tensor
    half: int
    first: object
    second: object

    def at(self, t, column, N):
        value = wl.load(self.stream[self.half, t, wl.ds(column, N)])
        rows = wl.arange(N) + column
        if self.first is not None:
            value = value + self.first.at(t, rows)
        if self.second is not None:
            value = value + self.second.at(t, rows)
        return value


@wl.struct
class Begun:
    """The stream as a layer begins: embedded in the first, else what the last layer left."""

    embedded: object
    added: object
    layer: int

    def at(self, t, column, N):
        value = wl.zeros((N,), wl.f32)
        if self.layer == 0:
            value = self.embedded.at(t, column, N)
        else:
            value = self.added.at(t, column, N)
        return value


@wl.struct
class Gated:
    """silu(gate) · up; both are results of one matrix, first all of the one, then of the other."""

    results: object

    def at(self, t, column, N):
        rows = wl.arange(N) + column
        gate = self.results.at(t, rows)
        return silu(gate) * self.results.at(t, rows + self.results.matrix.N // 2)


@wl.struct
class Curved:
    """gelu(up)."""

    results: object

    def at(self, t, column, N):
        return gelu_by_erf(self.results.at(t, wl.arange(N) + column))


@wl.struct
class Plain:
    """Rows of a tensor."""

    rows: wl.Tensor

    def at(self, t, column, N):
        return wl.load(self.rows[t, wl.ds(column, N)])


@wl.struct
class Norm:
    """Weights [norms, H] of all norms of a model, and, of those that take the mean away, biases;
    else None."""

    weight: wl.Tensor
    bias: object
    eps: float
    H: wl.const


@wl.struct
class Normed:
    """A source normalised by row `row` of the norms. `statistics` come first."""

    source: object
    norm: object
    row: int
    team: object

    def at(self, t, column, N):
        norm = self.norm
        value = self.source.at(t, column, N)
        if norm.bias is not None:
            value = value - mean_of(self.team, t, norm.H)
        square = wl.sum(self.team.noted(t * self.team.WARPS), 0) / float(norm.H)
        weight = wl.load(norm.weight[self.row, wl.ds(column, N)])
        value = value * inverse_root(square, norm.eps) * weight
        if norm.bias is not None:
            value = value + wl.load(norm.bias[self.row, wl.ds(column, N)])
        return value


@wl.function
def mean_of(team, t, H):
    """The mean of a token's source, from the second half of `team.stats`."""
    return wl.sum(team.noted((MOST_TOKENS + t) * team.WARPS), 0) / float(H)


@wl.function
def statistics(team, source, norm, SPAN, kept, half):
    """What `Normed` needs, a part a warp, into `team.stats`: Σ x² of each token, or Σ x and
    Σ (x − mean)². Where `kept` is a tensor, each block writes its share of the source there."""
    if norm.bias is not None:
        for t in wl.range(0, team.TOKENS):
            total = wl.zeros((SPAN,), wl.f32)
            for i in wl.range(team.r, norm.H // SPAN, team.WARPS):
                total = total + source.at(t, i * SPAN, SPAN)
            place = (MOST_TOKENS + t) * team.WARPS + team.r
            team.note(place, wl.sum(total, 0, keepdims=True))
        team.meet()
    for t in wl.range(0, team.TOKENS):
        squares = wl.zeros((SPAN,), wl.f32)
        for i in wl.range(team.r, norm.H // SPAN, team.WARPS):
            v = source.at(t, i * SPAN, SPAN)
            if kept is not None:
                if (i + t) % team.BLOCKS == team.b:
                    wl.store(kept[half, t, wl.ds(i * SPAN, SPAN)], v)
            if norm.bias is not None:
                v = v - mean_of(team, t, norm.H)
            squares = squares + v * v
        team.note(t * team.WARPS + team.r, wl.sum(squares, 0, keepdims=True))
    team.meet()

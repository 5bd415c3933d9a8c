"""The phases of a layer and of the output head, as functions of one multiplying warp: each fills
the vectors, multiplies, and ends in an exchange. `kernel.py` tells what they need and leave.
"""

import warploom as wl
from warploom.kernels.token.device.attention import attended
from warploom.kernels.token.device.head import chosen, logits_written
from warploom.kernels.token.device.inputs import (
    Added,
    Curved,
    Embedded,
    Gated,
    Held,
    Normed,
    Plain,
    Results,
    filled,
    filled_once,
    statistics,
    summed_up,
)
from warploom.kernels.token.device.merging import Merged, chunks_merged
from warploom.kernels.token.device.stream import multiplied, streamed
from warploom.kernels.token.plan import IN_FLIGHT, LINE, SUMMED_IN_FLIGHT


@wl.struct
class Matrices:
    """The matrices of a layer (`stream.Steps`), and where their steps and those of the head lie."""

    packed: wl.Tensor
    qkv: object
    out: object
    gate_up: object
    down: object
    head: object
    LAYER_STEPS: wl.const
    PARALLEL: wl.const

    def bring(self, ring, layer, block):
        """This block's steps of one layer, in the order of its phases."""
        base = layer * self.LAYER_STEPS
        matrices = [self.qkv, self.out, self.gate_up, self.down]
        if self.PARALLEL:
            matrices = [self.qkv, self.gate_up, self.down, self.out]
        for k in wl.unroll(len(matrices)):
            # Nothing is waited for between the first two matrices of a parallel layer.
            IS_PACED = not (self.PARALLEL and k == 1)
            base_of = base + matrices[k].BASE
            streamed(ring, self.packed, base_of, matrices[k], block, IS_PACED)

    def bring_head(self, ring, block):
        streamed(ring, self.packed, self.head.BASE, self.head, block, True)


@wl.struct
class Work:
    """What a phase leaves for later ones, in global memory; `ring` and `vectors` in shared.

    With `matrices.PARALLEL` attention and MLP of a layer begin with the same stream, and both are
    added at its end. The stream then stands in its two halves in turn, a layer each; else in the
    first before attention and in the second after it. HELD: see `inputs.Held`.
    """

    team: object
    matrices: object
    ring: object
    vectors: object
    embedding: wl.Tensor
    tokens: object
    norm: object
    stream: wl.Tensor
    qkv: wl.Tensor
    out: wl.Tensor
    gate_up: wl.Tensor
    down: wl.Tensor
    up: wl.Tensor
    mixed: wl.Tensor
    out_bias: object
    up_bias: object
    down_bias: object
    REDUCED: wl.const
    HELD: wl.const
    GATED: wl.const

    def multiply(self, matrix, source, out, count, turn):
        """One phase: `source` times a matrix, in parts of `out`."""
        filled(self.team, self.vectors, matrix, source, self.spans())
        turn = multiplied(self.team, self.ring, self.vectors, matrix, out, turn, False)
        return self.team.exchange(count), turn

    def spans(self):
        """Most spans of a source that a warp begins with at a time."""
        return SUMMED_IN_FLIGHT if self.REDUCED else IN_FLIGHT

    def reduced(self, source, LINES, ALL, out, half, count):
        """One more phase: each block makes a share of a source. With many tokens that costs less
        than all of them reading all of its parts."""
        summed_up(self.team, source, LINES, ALL // LINE, out, half)
        return Added(out, half, None, None), self.team.exchange(count)

    def once(self):
        """Whether a normalised source is read once. With numbers of bf16, whose range is that of
        f32, the root of the mean square is multiplied into the sums."""
        return self.norm.bias is None and self.vectors.dtype == wl.bf16

    def begin_normed(self, matrix, source, row, kept, half, count):
        """Fill the vectors with a source normalised by row `row` of the norms; where `kept` is a
        tensor, the source itself is left in a half of it."""
        if self.REDUCED and kept is not None:
            source, count = self.reduced(source, matrix.lines(), matrix.K, kept, half, count)
            kept = None
        self.fill_normed(matrix, source, row, kept, half)
        return count

    def fill_normed(self, matrix, source, row, kept, half):
        """`begin_normed` with what every block reads for itself."""
        team, norm = self.team, self.norm
        if self.once():
            SPANS = self.spans()
            filled_once(team, self.vectors, matrix, source, norm, row, kept, half, SPANS)
        elif self.HELD:
            # Another warp's spans at each norm: ptxas would keep addresses that stay the same for
            # all layers, more than there are registers.
            held = Held(team, matrix, norm, (team.r + row) % team.WARPS)
            values = held.values(source)
            weights, biases = held.norms(row)
            held.note(values, kept, half)
            held.fill(self.vectors, matrix, values, weights, biases)
        else:
            LINES = matrix.lines()
            statistics(team, source, norm, LINES, kept, half)
            made = Normed(source, norm, row, team)
            filled(team, self.vectors, matrix, made, IN_FLIGHT)

    def multiply_normed(self, matrix, out, count, turn):
        """`multiply` after `fill_normed`."""
        once = self.once()
        turn = multiplied(self.team, self.ring, self.vectors, matrix, out, turn, once)
        return self.team.exchange(count), turn

    def attention_results(self, layer):
        return Results(self.out, self.matrices.out, self.out_bias, layer)

    def feed_forward_results(self, layer):
        return Results(self.down, self.matrices.down, self.down_bias, layer)

    def half(self, layer):
        """Where the stream stands as a layer begins."""
        return layer % 2 if self.matrices.PARALLEL else 0

    def before(self, layer):
        """The stream as the layers before `layer` leave it."""
        mlp = self.feed_forward_results(layer - 1)
        if self.matrices.PARALLEL:
            attention = self.attention_results(layer - 1)
            return Added(self.stream, self.half(layer + 1), attention, mlp)
        return Added(self.stream, 1, mlp, None)

    def activated(self, layer):
        """What `down` is multiplied with."""
        results = Results(self.gate_up, self.matrices.gate_up, self.up_bias, layer)
        return Gated(results) if self.GATED else Curved(results)

    def mixed_values(self, heads):
        """What `out` is multiplied with."""
        return Merged(heads) if heads.DIRECT else Plain(self.mixed)


@wl.function
def attention_phases(work, heads, layer, count, turn):
    """Projection, attention, projection."""
    team, matrices, half = work.team, work.matrices, work.half(layer)
    if layer == 0:
        source = Embedded(work.embedding, work.tokens)
        work.fill_normed(matrices.qkv, source, 0, work.stream, half)
    else:
        source = work.before(layer)
        count = work.begin_normed(matrices.qkv, source, 2 * layer, work.stream, half, count)
    count, turn = work.multiply_normed(matrices.qkv, work.qkv, count, turn)
    attended(heads)
    count = team.exchange(count)
    if not heads.DIRECT:
        chunks_merged(heads, work.mixed)
        count = team.exchange(count)
    return work.multiply(matrices.out, work.mixed_values(heads), work.out, count, turn)


@wl.function
def feed_forward_phases(work, layer, count, turn):
    """Gate and up, or up alone; down."""
    matrices = work.matrices
    source, row = Added(work.stream, 0, work.attention_results(layer), None), 2 * layer + 1
    count = work.begin_normed(matrices.gate_up, source, row, work.stream, 1, count)
    count, turn = work.multiply_normed(matrices.gate_up, work.gate_up, count, turn)
    source = work.activated(layer)
    if work.REDUCED:
        LINES = matrices.down.lines()
        source, count = work.reduced(source, LINES, matrices.down.K, work.up, 0, count)
    return work.multiply(matrices.down, source, work.down, count, turn)


@wl.function
def head_phases(work, head, LAYERS, count, turn):
    """Logits, and the next tokens, which every block then knows."""
    team = work.team
    kept = work.stream if work.REDUCED else None
    source, half = work.before(LAYERS), work.half(LAYERS)
    count = work.begin_normed(head.matrix, source, 2 * LAYERS, kept, half, count)
    count, turn = work.multiply_normed(head.matrix, head.parts, count, turn)
    logits_written(team, head)
    count = team.exchange(count)
    for t in wl.range(team.r, team.TOKENS, team.WARPS):
        work.tokens.scatter(wl.arange(1) + t, chosen(team, head, t))
    team.meet()
    return count, turn

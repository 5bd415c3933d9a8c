"""The phases of a layer and of the output head, as functions of one multiplying warp: each fills
the vectors, multiplies, and ends in an exchange. `kernel.py` tells what they need and leave.
"""

import warploom as wl
from warploom.kernels.token.device.attention import attended, chunks_merged
from warploom.kernels.token.device.head import chosen, logits_written
from warploom.kernels.token.device.inputs import (
    Added,
    Begun,
    Curved,
    Embedded,
    Gated,
    Normed,
    Plain,
    Results,
    statistics,
)
from warploom.kernels.token.device.stream import filled, multiplied, streamed


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

    def bring(self, ring, layer, block):
        """This block's steps of one layer."""
        base = layer * self.LAYER_STEPS
        streamed(ring, self.packed, base + self.qkv.BASE, self.qkv, block)
        streamed(ring, self.packed, base + self.out.BASE, self.out, block)
        streamed(ring, self.packed, base + self.gate_up.BASE, self.gate_up, block)
        streamed(ring, self.packed, base + self.down.BASE, self.down, block)

    def bring_head(self, ring, block):
        streamed(ring, self.packed, self.head.BASE, self.head, block)


@wl.struct
class Work:
    """What a phase leaves for later ones, in global memory; `ring` and `vectors` in shared.

    PARALLEL: attention and MLP of a layer begin with the same stream, and both are added at its
    end. The stream then stands in its two halves in turn, a layer each; else in the first before
    attention and in the second after it.
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
    mixed: wl.Tensor
    out_bias: object
    up_bias: object
    down_bias: object
    PARALLEL: wl.const
    GATED: wl.const

    def multiply(self, matrix, source, out, count, turn):
        """One phase: `source` times a matrix, in parts of `out`."""
        filled(self.team, self.vectors, matrix, source)
        turn = multiplied(self.team, self.ring, self.vectors, matrix, out, turn)
        return self.team.exchange(count), turn

    def normed(self, source, row, matrix, kept, half):
        """A source normalised by row `row` of the norms; where `kept` is a tensor, the source
        itself is left in a half of it."""
        statistics(self.team, source, self.norm, matrix.span(), kept, half)
        return Normed(source, self.norm, row, self.team)

    def attention_results(self, layer):
        return Results(self.out, self.matrices.out, self.out_bias, layer)

    def feed_forward_results(self, layer):
        return Results(self.down, self.matrices.down, self.down_bias, layer)

    def half(self, layer):
        """Where the stream stands as a layer begins."""
        return layer % 2 if self.PARALLEL else 0

    def before(self, layer):
        """The stream as the layers before `layer` leave it."""
        mlp = self.feed_forward_results(layer - 1)
        if self.PARALLEL:
            attention = self.attention_results(layer - 1)
            return Added(self.stream, self.half(layer + 1), attention, mlp)
        return Added(self.stream, 1, mlp, None)

    def inner(self, layer):
        """What the MLP of a layer is made of, and where it is kept if that is new."""
        if self.PARALLEL:
            return Added(self.stream, self.half(layer), None, None), None
        return Added(self.stream, 0, self.attention_results(layer), None), self.stream


@wl.function
def attention_phases(work, heads, layer, count, turn):
    """Projection, attention, projection."""
    team, matrices = work.team, work.matrices
    source = Begun(Embedded(work.embedding, work.tokens), work.before(layer), layer)
    source = work.normed(source, 2 * layer, matrices.qkv, work.stream, work.half(layer))
    count, turn = work.multiply(matrices.qkv, source, work.qkv, count, turn)
    attended(heads)
    count = team.exchange(count)
    chunks_merged(heads, work.mixed)
    count = team.exchange(count)
    return work.multiply(matrices.out, Plain(work.mixed), work.out, count, turn)


@wl.function
def feed_forward_phases(work, layer, count, turn):
    """Gate and up, or up alone; down."""
    matrices = work.matrices
    source, kept = work.inner(layer)
    source = work.normed(source, 2 * layer + 1, matrices.gate_up, kept, 1)
    count, turn = work.multiply(matrices.gate_up, source, work.gate_up, count, turn)
    results = Results(work.gate_up, matrices.gate_up, work.up_bias, layer)
    source = Gated(results) if work.GATED else Curved(results)
    return work.multiply(matrices.down, source, work.down, count, turn)


@wl.function
def head_phases(work, head, LAYERS, count, turn):
    """Logits, and the next tokens, which every block then knows."""
    team = work.team
    source = work.normed(work.before(LAYERS), 2 * LAYERS, head.matrix, None, 0)
    count, turn = work.multiply(head.matrix, source, head.parts, count, turn)
    logits_written(team, head)
    count = team.exchange(count)
    for t in wl.range(team.r, team.TOKENS, team.WARPS):
        work.tokens.scatter(wl.arange(1) + t, chosen(team, head, t))
    team.meet()
    return count, turn

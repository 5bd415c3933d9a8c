"""A layer whose attention and MLP begin with the same stream, as GPT-NeoX has them.

What a block needs next is mostly done by the others while it does something else, so it tells what
it has done and goes on, instead of waiting for all:

| a block makes | first it waits until all have done | it tells |
|---|---|---|
| q, k, v | the layer before (an exchange) | QKV |
| up, from what it holds of the same stream | | UP |
| its chunks of attention | QKV | ATTENDED |
| `down` | UP | |
| the merge of chunks, where there are many | ATTENDED | MIXED |
| `out` | ATTENDED, or MIXED | an exchange |

Each has a counter of its own. What a counter allows to read is written anew only after the exchange
that ends the layer. Where parts are added up once for all blocks, that takes an exchange before the
first matrix and one before `down`.
"""

import warploom as wl
from warploom.kernels.token.device.attention import attended
from warploom.kernels.token.device.inputs import (
    Added,
    Embedded,
    Held,
    Normed,
    filled,
    statistics,
    summed_up,
)
from warploom.kernels.token.device.merging import chunks_merged
from warploom.kernels.token.device.stream import multiplied
from warploom.kernels.token.plan import APART, IN_FLIGHT, LINE

QKV, UP, ATTENDED, MIXED = 0, 1, 2, 3


@wl.function
def layers_before(team):
    """Layers that all launches before this one have done."""
    return wl.load(team.state[2])


@wl.function
def layers_left(team, layers):
    """After the last exchange: the next launch goes on from so many layers."""
    if (team.b == 0) & (team.r == 0):
        wl.store(team.state[wl.ds(2, 1)], wl.full((1,), layers, wl.i32))


@wl.function
def told(team, what):
    """All warps of the block have done `what` of a layer."""
    team.meet()
    if team.r == 0:
        wl.signal(team.state[APART * (1 + what)], add=1)


@wl.function
def reached(team, what, layers):
    """Go on when all blocks have done `what` of so many layers; what they wrote is seen after."""
    if team.r == 0:
        wl.wait(team.state[APART * (1 + what)], at_least=layers * team.BLOCKS)
    team.meet()


@wl.function
def parallel_phases(work, heads, layer, layers, count, turn):
    """One layer; with it, `layers` are done since counters were zeros."""
    team, matrices = work.team, work.matrices
    down = matrices.down
    if work.REDUCED:
        count, turn = projected(work, layer, count, turn)
    else:
        turn = projected_from_held(work, layer, turn)
    reached(team, QKV, layers)
    attended(heads)
    told(team, ATTENDED)
    reached(team, UP, layers)
    source = work.activated(layer)
    if work.REDUCED:
        source, count = work.reduced(source, down.lines(), down.K, work.up, 0, count)
        turn = times(work, down, source, work.down, turn)
    else:
        turn = times(work, down, source, work.down, turn)
    reached(team, ATTENDED, layers)
    if not heads.DIRECT:
        chunks_merged(heads, work.mixed)
        told(team, MIXED)
        reached(team, MIXED, layers)
    turn = times(work, matrices.out, work.mixed_values(heads), work.out, turn)
    return team.exchange(count), turn


@wl.function
def times(work, matrix, source, out, turn):
    """`source` times a matrix, in parts of `out`."""
    filled(work.team, work.vectors, matrix, source, work.spans())
    return multiplied(work.team, work.ring, work.vectors, matrix, out, turn, False)


@wl.function
def projected_from_held(work, layer, turn):
    """q, k, v and up, from a stream that is read once: each warp holds its spans."""
    team, matrices = work.team, work.matrices
    held = Held(team, matrices.qkv, work.norm, (team.r + layer) % team.WARPS)
    if layer == 0:
        values = held.values(Embedded(work.embedding, work.tokens))
    else:
        values = held.values(work.before(layer))
    weights, biases = held.norms(2 * layer)
    held.note(values, work.stream, work.half(layer))
    held.fill(work.vectors, matrices.qkv, values, weights, biases)
    turn = multiplied(team, work.ring, work.vectors, matrices.qkv, work.qkv, turn, False)
    told(team, QKV)
    weights, biases = held.norms(2 * layer + 1)
    held.fill(work.vectors, matrices.gate_up, values, weights, biases)
    turn = multiplied(team, work.ring, work.vectors, matrices.gate_up, work.gate_up, turn, False)
    told(team, UP)
    return turn


@wl.function
def projected(work, layer, count, turn):
    """q, k, v and up, from a stream that is added up once for all blocks."""
    team, matrices, norm, half = work.team, work.matrices, work.norm, work.half(layer)
    LINES = matrices.qkv.lines()
    if layer == 0:
        source = Embedded(work.embedding, work.tokens)
        summed_up(team, source, LINES, norm.H // LINE, work.stream, half)
    else:
        summed_up(team, work.before(layer), LINES, norm.H // LINE, work.stream, half)
    count = team.exchange(count)
    source = Added(work.stream, half, None, None)
    statistics(team, source, norm, LINES, None, half)
    made = Normed(source, norm, 2 * layer, team)
    filled(team, work.vectors, matrices.qkv, made, IN_FLIGHT)
    turn = multiplied(team, work.ring, work.vectors, matrices.qkv, work.qkv, turn, False)
    told(team, QKV)
    made = Normed(source, norm, 2 * layer + 1, team)
    filled(team, work.vectors, matrices.gate_up, made, IN_FLIGHT)
    turn = multiplied(team, work.ring, work.vectors, matrices.gate_up, work.gate_up, turn, False)
    told(team, UP)
    return count, turn

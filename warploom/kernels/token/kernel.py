"""One launch that computes whole tokens: the embedding, every layer, the output head, the choice.

One role streams all weights in the order of their use, and never waits for data; the warps of the
other multiply, and meet in an *exchange* of all blocks where a phase needs what an earlier one
made:

| phase | needs | leaves |
|---|---|---|
| `qkv` | the stream (the last layer's `down` added), normalised | q, k, v in parts |
| `attention` | q, k, v | chunks of heads; keys and values in the cache |
| `merge`, with many chunks | chunks | mixed values |
| `out` | mixed values, or chunks | its parts |
| `gate_up` | the stream with `out` added, normalised | gate and up in parts |
| `down` | silu(gate) · up | its parts |

Where attention and MLP of a layer begin with the same stream, the order is another one, and blocks
go on before the others have done a phase (`device/parallel.py`).

A phase reads only what an earlier exchange made, and writes only what nobody reads before the next
one: each result has a tensor of its own, and the stream two, used in turn.
"""

import warploom as wl
from warploom.kernels.token.device.attention import Heads, room_of
from warploom.kernels.token.device.head import Head
from warploom.kernels.token.device.inputs import Norm
from warploom.kernels.token.device.parallel import layers_before, layers_left, parallel_phases
from warploom.kernels.token.device.phases import (
    Matrices,
    Work,
    attention_phases,
    feed_forward_phases,
    head_phases,
)
from warploom.kernels.token.device.places import Caches, Places
from warploom.kernels.token.device.stream import Steps
from warploom.kernels.token.device.team import Team
from warploom.kernels.token.plan import MOST_TOKENS, UNIT


@wl.function
def steps_of(NUMBERS):
    """A matrix out of `plan.Matrix.constants`."""
    if NUMBERS is None:
        return None
    N, K, HIGH, WIDE, BLOCKS, BASE, PARTS = NUMBERS
    return Steps(N, K, HIGH, WIDE, BLOCKS, BASE, PARTS)


@wl.function
def brought(matrices, ring, b, ROUNDS, LAYERS):
    """The weights of all rounds, in the order of their use."""
    for _ in wl.range(0, ROUNDS):
        for layer in wl.range(0, LAYERS):
            matrices.bring(ring, layer, b)
        if matrices.head is not None:
            matrices.bring_head(ring, b)


@wl.function
def begun(team, tokens, ids):
    """The block knows its tokens."""
    if team.r == 0:
        at = wl.arange(MOST_TOKENS)
        tokens.scatter(at, wl.gather(ids, (at,)))
    team.meet()


@wl.function
def left(team, tokens, ids, positions, ROUNDS):
    """Leave the chosen tokens and where they stand for the next launch."""
    if (team.b == 0) & (team.r == 0):
        for t in wl.unroll(team.TOKENS):
            position = wl.load(positions[t])
            next = wl.where(position < 0, position, position + ROUNDS)
            wl.store(positions[wl.ds(t, 1)], wl.full((1,), next, wl.i32))
            wl.store(ids[wl.ds(t, 1)], tokens.gather(wl.arange(1) + t))


@wl.function
def layer_phases(work, heads, layer, before, count, turn):
    """One layer of a token; tokens before it had `before` layers."""
    if work.matrices.PARALLEL:
        return parallel_phases(work, heads, layer, before + layer + 1, count, turn)
    count, turn = attention_phases(work, heads, layer, count, turn)
    return feed_forward_phases(work, layer, count, turn)


@wl.function
def noted(team, tokens, chosen, round):
    """Keep the tokens of a round for the host."""
    if (team.b == 0) & (team.r == 0):
        for t in wl.unroll(team.TOKENS):
            wl.store(chosen[round, wl.ds(t, 1)], tokens.gather(wl.arange(1) + t))


@wl.kernel
def token(
    packed: wl.Tensor,
    embedding: wl.Tensor,
    norms: wl.Tensor,
    frequencies: wl.Tensor,
    k_cache: wl.Tensor,
    v_cache: wl.Tensor,
    pages: wl.Tensor,
    sequences: wl.Tensor,
    positions: wl.Tensor,
    ids: wl.Tensor,
    stream: wl.Tensor,
    qkv_parts: wl.Tensor,
    out_parts: wl.Tensor,
    gate_up_parts: wl.Tensor,
    down_parts: wl.Tensor,
    head_parts: wl.Tensor,
    chunk_out: wl.Tensor,
    chunk_tops: wl.Tensor,
    chunk_totals: wl.Tensor,
    up: wl.Tensor,
    mixed: wl.Tensor,
    logits: wl.Tensor,
    best: wl.Tensor,
    best_at: wl.Tensor,
    chosen: wl.Tensor,
    state: wl.Tensor,
    eps: wl.f32,
    scale: wl.f32,
    q_norm: wl.Tensor = None,
    k_norm: wl.Tensor = None,
    qkv_bias: wl.Tensor = None,
    out_bias: wl.Tensor = None,
    up_bias: wl.Tensor = None,
    down_bias: wl.Tensor = None,
    norm_biases: wl.Tensor = None,
    stop: wl.Tensor = None,
    LAYERS: wl.const = 1,
    TOKENS: wl.const = 1,
    ROUNDS: wl.const = 1,
    HEADS: wl.const = 1,
    KV: wl.const = 1,
    D: wl.const = 64,
    HALF: wl.const = 32,
    INTERLEAVED: wl.const = False,
    PARALLEL: wl.const = False,
    GATED: wl.const = True,
    PAGE: wl.const = 16,
    QKV: wl.const = None,
    OUT: wl.const = None,
    GATE_UP: wl.const = None,
    DOWN: wl.const = None,
    HEAD: wl.const = None,
    LAYER_STEPS: wl.const = 0,
    BLOCKS: wl.const = 1,
    WARPS: wl.const = 16,
    STREAMERS: wl.const = 1,
    REGISTERS: wl.const = (0, 0),
    STAGES: wl.const = 4,
    UNITS: wl.const = 1,
    STATS: wl.const = 1,
    ROWS: wl.const = 8,
    BATCH: wl.const = 1,
    MANY: wl.const = 0,
    DIRECT: wl.const = False,
    REDUCED: wl.const = False,
    HELD: wl.const = False,
):
    """ROUNDS tokens of each of TOKENS columns: column t goes on from `ids[t]` at `positions[t]` of
    the sequence `sequences[t]`. Each round chooses the token with the largest logit and notes it
    in `chosen`; the last one and its position are left in `ids` and `positions`. −1 as a position:
    a column that is not used. Without HEAD the layers run once, for what they leave in the cache.
    `stop`: the word of a `wl.Stop`, which ends waits for other blocks.
    """
    if stop is not None:
        wl.stop_at(stop)
    matrices = Matrices(
        *(packed, steps_of(QKV), steps_of(OUT), steps_of(GATE_UP), steps_of(DOWN), steps_of(HEAD)),
        LAYER_STEPS=LAYER_STEPS,
        PARALLEL=PARALLEL,
    )
    b = wl.program_id(0)
    unit = (WARPS * UNIT // 16 * 32, 8)
    ring = wl.pipe(stages=STAGES, slots=[wl.shared(unit, packed.dtype, swizzle=0)])
    vectors = wl.shared((UNITS * UNIT // 4 * TOKENS, 4), packed.dtype, swizzle=0)
    sums = wl.shared((2 * WARPS * 32, 4), wl.f32, swizzle=0)
    ats = sums.reinterpret(wl.i32)
    stats = wl.shared((STATS,), wl.f32)
    roots = wl.shared((2 * MOST_TOKENS,), wl.f32)
    places = wl.shared((5 * MOST_TOKENS,), wl.i32)
    room = room_of(sums, vectors, k_cache.dtype, WARPS, ROWS, HEADS // KV, D, TOKENS)
    tokens = wl.shared((MOST_TOKENS,), wl.i32)
    meeting = wl.named_barrier(32 * WARPS)
    with wl.roles():
        with wl.role("stream", warps=STREAMERS, registers=REGISTERS[0]):
            brought(matrices, ring, b, ROUNDS, LAYERS)
        with wl.role("multiply", warps=1, replicas=WARPS, registers=REGISTERS[1]) as r:
            team = Team(r, b, meeting, state, sums, stats, roots, WARPS, BLOCKS, TOKENS)
            work = Work(
                *(team, matrices, ring, vectors, embedding, tokens),
                *(Norm(norms, norm_biases, eps, matrices.qkv.K), stream),
                *(qkv_parts, out_parts, gate_up_parts, down_parts, up, mixed),
                *(out_bias, up_bias, down_bias, REDUCED, HELD, GATED),
            )
            count, turn = team.first_count(), 0
            layers = layers_before(team) if PARALLEL else 0
            begun(team, tokens, ids)
            for round in wl.range(0, ROUNDS):
                where = Places(places, positions, sequences, round, TOKENS)
                caches = Caches(k_cache, v_cache, pages, where, D, PAGE)
                heads = Heads(
                    *(team, qkv_parts, matrices.qkv, 0, *room, caches, where),
                    *(frequencies, q_norm, k_norm, qkv_bias),
                    *(chunk_out, chunk_tops, chunk_totals, scale, eps),
                    *(HEADS, KV, D, HALF, INTERLEAVED, ROWS, BATCH, MANY, DIRECT),
                )
                heads.begin_round()
                for layer in wl.range(0, LAYERS):
                    before = layers + round * LAYERS
                    heads = heads.replace(layer=layer)
                    count, turn = layer_phases(work, heads, layer, before, count, turn)
                if HEAD is not None:
                    first = round * TOKENS
                    head = Head(head_parts, matrices.head, logits, best, best_at, first, ats)
                    count, turn = head_phases(work, head, LAYERS, count, turn)
                    noted(team, tokens, chosen, round)
            if HEAD is not None:
                left(team, tokens, ids, positions, ROUNDS)
            team.finish(count)
            if PARALLEL:
                layers_left(team, layers + ROUNDS * LAYERS)

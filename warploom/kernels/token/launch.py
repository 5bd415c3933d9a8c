"""The public calls, and a small example: how a plan and its arrays become arguments."""

from typing import Any

import numpy as np

from warploom.base.dtypes import bf16
from warploom.kernels.token import arrays, kernel
from warploom.kernels.token.arrays import Cache, Columns, Weights, Workspace
from warploom.kernels.token.plan import LINE, MANY, MERGED, Plan, Shape, make


def decode(
    plan: Plan,
    weights: Weights,
    cache: Cache,
    columns: Columns,
    work: Workspace,
    *,
    eps: float,
    scale: float,
    rounds: int = 1,
    head: bool = True,
    stop: Any = None,
) -> None:
    """`rounds` tokens of each column in one launch: keys and values go to the cache, logits and the
    tokens with the largest of them to `work.logits` and `work.chosen`, the last of these tokens and
    its position to `columns`.

    Without `head` only the cache is filled, `columns` stay, and `rounds` is 1. `stop`, a `wl.Stop`,
    ends a launch whose blocks would wait for ever; what it leaves means nothing, and the `state` of
    the workspace has to become zeros. A result depends on
    neither the other columns nor the run: the order of every sum is fixed by the plan. Positions
    live on the device: who launches has to know that they stay inside the cache.
    Raises ShapeError T201, T202.
    """
    made = call(
        plan, weights, cache, columns, work,
        eps=eps, scale=scale, rounds=rounds, head=head, stop=stop,
    )  # fmt: skip
    made.launcher(*made.args, **made.kwargs)


def call(
    plan: Plan,
    weights: Weights,
    cache: Cache,
    columns: Columns,
    work: Workspace,
    *,
    eps: float,
    scale: float,
    rounds: int = 1,
    head: bool = True,
    stop: Any = None,
) -> Any:
    """The launch of `decode`, not yet made."""
    arrays.check(plan, weights, cache, columns, work, rounds)
    launch = kernel.token.launch(plan.blocks, cooperative=True)
    chunks = int(work.chunks[1].shape[1])
    return launch.call(
        weights.packed,
        _lines(weights.embedding),
        _lines(weights.norms),
        weights.frequencies,
        cache.keys,
        cache.values,
        cache.pages,
        columns.sequences,
        columns.positions,
        columns.ids,
        work.stream,
        *work.parts,
        *work.chunks,
        work.up,
        work.mixed,
        work.logits,
        work.best,
        work.best_at,
        work.chosen,
        work.state,
        eps,
        scale,
        weights.q_norm,
        weights.k_norm,
        _lines(weights.qkv_bias),
        _lines(weights.out_bias),
        _lines(weights.up_bias),
        _lines(weights.down_bias),
        _lines(weights.norm_biases),
        stop,
        TOKENS=columns.count,
        STAGES=plan.stages(columns.count),
        ROUNDS=rounds,
        PAGE=cache.page,
        ROWS=plan.rows(columns.count),
        BATCH=min(chunks, MERGED),
        MANY=MANY if chunks > MERGED else 0,
        REDUCED=plan.is_reduced(columns.count),
        HELD=plan.is_held(columns.count),
        DIRECT=plan.is_direct(columns.count, chunks),
        **constants(plan, head),
    )


def _lines(array: Any) -> Any:
    """The same array with its last axis in lines of 16."""
    if array is None:
        return None
    rows, columns = array.shape
    return array.reshape((rows, columns // LINE, LINE))


def constants(plan: Plan, head: bool) -> dict[str, Any]:
    """What the kernel is told of a plan."""
    shape = plan.shape
    return {
        "LAYERS": shape.layers,
        "HEADS": shape.heads,
        "KV": shape.kv_heads,
        "D": shape.head_dim,
        "HALF": shape.rotary_dim // 2,
        "INTERLEAVED": shape.rope_style == "interleaved",
        "PARALLEL": shape.parallel,
        "GATED": shape.gated,
        "QKV": plan.qkv.constants,
        "OUT": plan.out.constants,
        "GATE_UP": plan.gate_up.constants,
        "DOWN": plan.down.constants,
        "HEAD": plan.head.constants if head else None,
        "LAYER_STEPS": plan.layer_steps,
        "BLOCKS": plan.blocks,
        "WARPS": plan.warps,
        "STREAMERS": plan.streamers,
        "REGISTERS": plan.registers,
        "UNITS": plan.held_units,
        "STATS": plan.stats,
    }


@kernel.token.example("whole")
def _small(given: Any) -> Any:
    """Two rounds of three columns, one of which is not used."""
    shape = Shape(2, 128, 4, 2, 32, 128, 200, 32)
    plan = make(shape, 3, 4)
    cache_shape = (shape.layers, 4, 16, shape.kv_heads, shape.head_dim)
    weights = Weights(
        packed=given.randn((plan.total_steps, plan.step_elements), bf16),
        embedding=given.randn((shape.vocabulary, shape.hidden), bf16),
        norms=given.uniform((2 * shape.layers + 1, shape.hidden), 0.0, 0.1),
        frequencies=given.uniform((shape.rotary_dim // 2,), 0.0, 1.0),
    )
    cache = Cache(
        given.randn(cache_shape, bf16),
        given.randn(cache_shape, bf16),
        given.array([[1, 0], [3, 2]], np.int32),
    )
    columns = Columns(
        given.array([5, 6, 7], np.int32),
        given.array([15, -1, 3], np.int32),
        given.array([0, 0, 1], np.int32),
    )
    work = Workspace.make(plan, columns.count, cache.context, given.zeros, rounds=2)
    return call(plan, weights, cache, columns, work, eps=1e-5, scale=0.2, rounds=2)

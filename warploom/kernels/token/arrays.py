"""The arrays that a token launch works on: weights, cache, columns, and what lies between phases.

Knows shapes, not models: who loads them fills them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warploom.kernels import arguments
from warploom.kernels.token.plan import CHUNK, LINE, MOST_TOKENS, Matrix, Plan, state_size

Zeros = Callable[[tuple[int, ...], Any], Any]


@dataclass(frozen=True, slots=True)
class Weights:
    """`packed` [steps, elements of a step] holds all matrices (`packing`); `embedding`
    [vocabulary, hidden] has its dtype. f32: `norms` [2 · layers + 1, hidden] (before attention and
    before the MLP of each layer, then the last one), `frequencies` [rotary_dim / 2], and where the
    model has them `q_norm`, `k_norm` [layers, head_dim], biases [layers, outputs] of each matrix,
    and `norm_biases` like `norms`: such norms take the mean away too."""

    packed: Any
    embedding: Any
    norms: Any
    frequencies: Any
    q_norm: Any = None
    k_norm: Any = None
    qkv_bias: Any = None
    out_bias: Any = None
    up_bias: Any = None
    down_bias: Any = None
    norm_biases: Any = None


@dataclass(frozen=True, slots=True)
class Cache:
    """Keys and values [layers, pages, rows of a page, kv_heads, head_dim], bf16 or f16; position p
    of sequence s is row p mod page of page `pages[s, p // page]`."""

    keys: Any
    values: Any
    pages: Any

    @property
    def page(self) -> int:
        """Rows of a page."""
        return int(self.keys.shape[2])

    @property
    def context(self) -> int:
        """Positions that a sequence can have."""
        return int(self.pages.shape[1]) * self.page


@dataclass(frozen=True, slots=True)
class Columns:
    """What each of 1 to 8 columns goes on from, i32 [columns]: the token `ids`, at `positions` (−1:
    not used) of `sequences`. Columns of one sequence lie beside each other, in order. A launch
    leaves the next token and its position."""

    ids: Any
    positions: Any
    sequences: Any

    @property
    def count(self) -> int:
        """Columns of a launch."""
        return int(self.ids.shape[0])


@dataclass(frozen=True, slots=True)
class Workspace:
    """What phases leave for each other, and of each round `logits` [rounds · columns, vocabulary]
    and the tokens `chosen` [rounds, columns]. One serves all launches of a plan that have as many
    columns and rounds, one after the other."""

    stream: Any
    parts: tuple[Any, ...]
    chunks: tuple[Any, Any, Any]
    up: Any
    mixed: Any
    logits: Any
    best: Any
    best_at: Any
    chosen: Any
    state: Any

    @classmethod
    def make(
        cls, plan: Plan, columns: int, context: int, zeros: Zeros, rounds: int = 1
    ) -> "Workspace":
        """Arrays by `zeros(shape, dtype)`; `state` and `parts` have to begin as zeros: parts that a
        band does not have are read and stay so."""
        shape = plan.shape
        chunks = arguments.ceil_div(context, CHUNK)

        def floats(*sizes: int) -> Any:
            return zeros(sizes, np.float32)

        def parts(matrix: Matrix) -> Any:
            return floats(matrix.parts, columns, matrix.bands * matrix.high, LINE)

        heads = (columns, chunks, shape.heads)
        return cls(
            stream=floats(2, columns, shape.hidden // LINE, LINE),
            parts=tuple(parts(matrix) for matrix in (*plan.matrices, plan.head)),
            chunks=(
                floats(columns, chunks, shape.query // LINE, LINE),
                floats(*heads),
                floats(*heads),
            ),
            up=floats(1, columns, shape.feed_forward // LINE, LINE),
            mixed=floats(columns, shape.query // LINE, LINE),
            logits=floats(rounds * columns, shape.vocabulary),
            best=floats(columns, plan.blocks),
            best_at=zeros((columns, plan.blocks), np.int32),
            chosen=zeros((rounds, columns), np.int32),
            state=zeros((state_size(shape.parallel),), np.int32),
        )


def check(
    plan: Plan,
    weights: Weights,
    cache: Cache,
    columns: Columns,
    work: Workspace,
    rounds: int = 1,
) -> None:
    """Raises ShapeError T201, T202 where an array does not fit the plan or another one."""
    shape, call = plan.shape, "token"
    known = arguments.sizes(
        call,
        packed=(weights.packed, "steps elements"),
        embedding=(weights.embedding, "vocabulary hidden"),
        norms=(weights.norms, "norms hidden"),
        norm_biases=(weights.norm_biases, "norms hidden"),
        qkv_bias=(weights.qkv_bias, "layers qkv"),
        out_bias=(weights.out_bias, "layers hidden"),
        up_bias=(weights.up_bias, "layers up"),
        down_bias=(weights.down_bias, "layers hidden"),
        keys=(cache.keys, "layers pages page kv_heads head_dim"),
        values=(cache.values, "layers pages page kv_heads head_dim"),
        q_norm=(weights.q_norm, "layers head_dim"),
        k_norm=(weights.k_norm, "layers head_dim"),
        ids=(columns.ids, "columns"),
        positions=(columns.positions, "columns"),
        sequences=(columns.sequences, "columns"),
        logits=(work.logits, "rows vocabulary"),
        chosen=(work.chosen, "rounds columns"),
        chunks=(work.chunks[1], "columns chunks heads"),
    )
    wanted = {
        "steps": plan.total_steps,
        "elements": plan.step_elements,
        "norms": 2 * shape.layers + 1,
        "columns": columns.count,
        "rounds": rounds,
        "rows": rounds * columns.count,
    } | {n: getattr(shape, n) for n in ("vocabulary", "hidden", "layers", "kv_heads", "heads")}
    wanted |= {"qkv": plan.qkv.rows, "up": plan.gate_up.rows}
    for name, size in wanted.items():
        arguments.require(
            known.get(name, size) == size,
            call,
            f"`{name}` is {known.get(name)}",
            f"the plan has {size}",
        )
    arguments.require(
        1 <= columns.count <= MOST_TOKENS,
        call,
        f"{columns.count} columns in one launch",
        f"the matrix instruction has {MOST_TOKENS}",
        hint="make several launches",
    )
    arguments.require(
        cache.page % 4 == 0, call, f"pages of {cache.page} rows", "a warp reads 4 rows at a time"
    )
    arguments.require(
        cache.context <= known["chunks"] * CHUNK,
        call,
        f"a sequence can have {cache.context} positions",
        f"the workspace was made for {known['chunks'] * CHUNK}",
        hint="make the workspace with the context of the cache",
    )
    dtype = arguments.dtype_name(weights.packed)
    arguments.dtypes(call, ("bf16", "f16"), packed=weights.packed)
    arguments.dtypes(call, (dtype,), embedding=weights.embedding)
    arguments.dtypes(call, ("bf16", "f16"), keys=cache.keys, values=cache.values)

"""The weights of a model as arrays of one device, projections that share an input in one array.

Knows file roles and shapes, not file formats, and no kernels.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from warploom.engine.checkpoint import Checkpoint
from warploom.engine.config import FUSED, ModelConfig, rotary_frequencies

DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


@dataclass
class LayerWeights:
    """One layer. `qkv` is [q + k + v, hidden], `gate_up` [2 x feed_forward, hidden], or
    [feed_forward, hidden] where nothing gates. None stands for what the model does not have."""

    attention_norm: Any
    qkv: Any
    attention_out: Any
    ffn_norm: Any
    gate_up: Any
    down: Any
    attention_norm_bias: Any = None
    qkv_bias: Any = None
    out_bias: Any = None
    ffn_norm_bias: Any = None
    up_bias: Any = None
    down_bias: Any = None
    q_norm: Any = None
    k_norm: Any = None


@dataclass
class Weights:
    """All weights. `head` is the embedding table itself where the two are tied.

    Norm weights, biases and `frequencies` are f32; all but the last hold values of the model's
    dtype.
    """

    embedding: Any
    layers: list[LayerWeights]
    final_norm: Any
    head: Any
    frequencies: Any
    final_norm_bias: Any = None


def moved(weights: Weights, put: Callable[[Any], Any]) -> Weights:
    """The same weights where `put` brings each array."""

    def brought(arrays: dict[str, Any]) -> dict[str, Any]:
        return {name: None if a is None else put(a) for name, a in arrays.items()}

    layers = [LayerWeights(**brought(vars(layer))) for layer in weights.layers]
    rest = {name: a for name, a in vars(weights).items() if name not in ("layers", "head")}
    made = brought(rest)
    tied = weights.head is weights.embedding
    return Weights(layers=layers, head=made["embedding"] if tied else put(weights.head), **made)


def load_weights(
    checkpoint: Checkpoint,
    dtype: str,
    put: Callable[[np.ndarray], Any],
    progress: Callable[[int, int], None] | None = None,
) -> Weights:
    """Reads all weights; `put` moves each array to its device, `progress` hears (done, total).

    Two threads de-quantise (NumPy lets go of the interpreter), each array directly into its final
    place and type: besides the weights only a few MB of scratch exist at any time.
    """
    config = checkpoint.config
    read = _Reader(checkpoint, dtype)
    total = config.layers + 2
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(read.layer, index) for index in range(config.layers)]
        table = pool.submit(read.matrix, config.hidden, {"embedding": config.vocabulary})
        layers: list[LayerWeights] = []
        try:
            for job in jobs:
                arrays = vars(job.result()).items()
                layers.append(LayerWeights(**{n: None if a is None else put(a) for n, a in arrays}))
                if progress:
                    progress(len(layers), total)
            embedding = put(table.result())
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    if progress:
        progress(total - 1, total)
    head = embedding
    if not config.tied:
        head = put(read.matrix(config.hidden, {"head": config.vocabulary}))
    scaling = config.rope_scaling
    divisors = None
    if scaling is not None and scaling.kind == "table":
        divisors = np.empty(config.rotary_dim // 2, np.float32)
        checkpoint.read("rope_table", None, divisors)
    weights = Weights(
        embedding=embedding,
        layers=layers,
        final_norm=put(read.vector("final_norm", config.hidden)),
        head=head,
        frequencies=put(rotary_frequencies(config, divisors)),
        final_norm_bias=(
            put(read.vector("final_norm_bias", config.hidden)) if config.biases else None
        ),
    )
    if progress:
        progress(total, total)
    return weights


class _Reader:
    def __init__(self, checkpoint: Checkpoint, dtype: str) -> None:
        self._checkpoint = checkpoint
        self._dtype = DTYPES[dtype]

    def matrix(self, width: int, rows: dict[str, int], layer: int | None = None) -> np.ndarray:
        """Matrices of one width below each other; `rows` maps each role to its number of rows."""
        out = np.empty((sum(rows.values()), width), self._dtype)
        start = 0
        for role, count in rows.items():
            self._checkpoint.read(role, layer, out[start : start + count])
            start += count
        return out

    def vector(self, role: str, length: int, layer: int | None = None) -> np.ndarray:
        """Numbers of the model's dtype, in f32."""
        out = np.empty(length, np.float32)
        self._checkpoint.read(role, layer, out)
        return out.astype(self._dtype).astype(np.float32)

    def layer(self, index: int) -> LayerWeights:
        c = self._checkpoint.config
        wide = {"gate": c.feed_forward} if c.gated else {}
        return LayerWeights(
            attention_norm=self.vector("attention_norm", c.hidden, index),
            qkv=self._qkv(c, index),
            attention_out=self.matrix(c.q_size, {"attention_out": c.hidden}, index),
            ffn_norm=self.vector("ffn_norm", c.hidden, index),
            gate_up=self.matrix(c.hidden, {**wide, "up": c.feed_forward}, index),
            down=self.matrix(c.feed_forward, {"down": c.hidden}, index),
            **(self._biases(c, index) if c.biases else {}),
            **(self._head_norms(c, index) if c.head_norms else {}),
        )

    def _qkv(self, c: ModelConfig, index: int) -> np.ndarray:
        """Rows of q, then of k, then of v."""
        if self._checkpoint.has(FUSED):
            return by_parts(self.matrix(c.hidden, {FUSED: 3 * c.q_size}, index), c.heads)
        return self.matrix(c.hidden, {"q": c.q_size, "k": c.kv_size, "v": c.kv_size}, index)

    def _biases(self, c: ModelConfig, index: int) -> dict[str, np.ndarray]:
        lengths = {
            "attention_norm_bias": c.hidden,
            "out_bias": c.hidden,
            "ffn_norm_bias": c.hidden,
            "up_bias": c.feed_forward,
            "down_bias": c.hidden,
        }
        found = {role: self.vector(role, length, index) for role, length in lengths.items()}
        fused = self.vector(FUSED + "_bias", 3 * c.q_size, index)
        return {**found, "qkv_bias": by_parts(fused, c.heads)}

    def _head_norms(self, c: ModelConfig, index: int) -> dict[str, np.ndarray]:
        return {role: self.vector(role, c.head_dim, index) for role in ("q_norm", "k_norm")}


def by_parts(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows (q, k, v of head 0, then of head 1, …) as all of q, then of k, then of v."""
    split = rows.reshape(heads, 3, -1, *rows.shape[1:])
    return np.ascontiguousarray(split.swapaxes(0, 1)).reshape(rows.shape)

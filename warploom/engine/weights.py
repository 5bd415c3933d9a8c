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
from warploom.engine.config import rotary_frequencies

DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


@dataclass
class LayerWeights:
    """One layer. `qkv` is [q + k + v, hidden], `gate_up` [2 x feed_forward, hidden]."""

    attention_norm: Any
    qkv: Any
    attention_out: Any
    ffn_norm: Any
    gate_up: Any
    down: Any


@dataclass
class Weights:
    """All weights. `head` is the embedding table itself where the two are tied.

    Norm weights and `frequencies` are f32; the norm weights hold values of the model's dtype.
    """

    embedding: Any
    layers: list[LayerWeights]
    final_norm: Any
    head: Any
    frequencies: Any


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
                layers.append(_move(job.result(), put))
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
        final_norm=put(read.norm("final_norm", None)),
        head=head,
        frequencies=put(rotary_frequencies(config, divisors)),
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

    def norm(self, role: str, layer: int | None) -> np.ndarray:
        out = np.empty(self._checkpoint.config.hidden, np.float32)
        self._checkpoint.read(role, layer, out)
        return out.astype(self._dtype).astype(np.float32)

    def layer(self, index: int) -> LayerWeights:
        c = self._checkpoint.config
        qkv = {"q": c.q_size, "k": c.kv_size, "v": c.kv_size}
        return LayerWeights(
            attention_norm=self.norm("attention_norm", index),
            qkv=self.matrix(c.hidden, qkv, index),
            attention_out=self.matrix(c.q_size, {"attention_out": c.hidden}, index),
            ffn_norm=self.norm("ffn_norm", index),
            gate_up=self.matrix(c.hidden, {"gate": c.feed_forward, "up": c.feed_forward}, index),
            down=self.matrix(c.feed_forward, {"down": c.hidden}, index),
        )


def _move(layer: LayerWeights, put: Callable[[np.ndarray], Any]) -> LayerWeights:
    return LayerWeights(**{name: put(array) for name, array in vars(layer).items()})

"""Models with random weights in the shapes of real ones, for suite `decode`. Knows no timing."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from warploom.engine.config import ModelConfig, rotary_frequencies
from warploom.engine.weights import LayerWeights, Weights

BF16 = np.dtype(ml_dtypes.bfloat16)
# Random numbers that all matrices are cut from; a prime number, so that rows do not repeat.
_POOL = 16_777_213


@dataclass(frozen=True, slots=True)
class Sizes:
    """layers, hidden, heads, key heads, width of a head, feed-forward, vocabulary; all untied."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocabulary: int


MODELS = {
    "llama-3.2-1b": Sizes(16, 2048, 32, 8, 64, 8192, 128256),
    "llama-2-7b": Sizes(32, 4096, 32, 32, 128, 11008, 32000),
    "llama-3.1-8b": Sizes(32, 4096, 32, 8, 128, 14336, 128256),
    "qwen3-8b": Sizes(36, 4096, 32, 8, 128, 12288, 151936),
    "tiny": Sizes(2, 128, 4, 2, 32, 192, 300),
}
"""Shapes by name. `qwen3-8b` without its norms of queries and keys, on all sides alike."""


def config_of(name: str, context: int) -> ModelConfig:
    """The configuration of a model of MODELS."""
    s = MODELS[name]
    return ModelConfig(
        family="llama",
        name=name,
        layers=s.layers,
        hidden=s.hidden,
        heads=s.heads,
        kv_heads=s.kv_heads,
        head_dim=s.head_dim,
        feed_forward=s.feed_forward,
        vocabulary=s.vocabulary,
        context=context,
        norm_eps=1e-5,
        rope_base=500000.0,
        rope_style="half",
        rotary_dim=s.head_dim,
        tied=False,
    )


class Random:
    """Matrices that no two models share, from one pool of numbers."""

    def __init__(self, seed: int, most: int) -> None:
        self._draw = np.random.default_rng(seed)
        count = min(_POOL, most)
        self._pool = self._draw.standard_normal(count, np.float32).astype(BF16)

    def matrix(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        """A bf16 array of normal numbers of this standard deviation, rounded to a power of two."""
        factor = 2.0 ** np.round(np.log2(scale))
        pool = (self._pool.astype(np.float32) * np.float32(factor)).astype(BF16)
        start = int(self._draw.integers(0, len(pool)))
        return np.resize(np.roll(pool, start), shape)


def weights_of(config: ModelConfig, seed: int) -> Weights:
    """Weights on the host; every layer keeps the size of what passes through it."""
    c = config
    random = Random(seed, 8 * c.hidden * c.feed_forward)
    inner, wide = c.hidden**-0.5, c.feed_forward**-0.5
    ones = np.ones(c.hidden, np.float32)

    def layer() -> LayerWeights:
        return LayerWeights(
            attention_norm=ones,
            qkv=random.matrix(c.q_size + 2 * c.kv_size, c.hidden, scale=inner),
            attention_out=random.matrix(c.hidden, c.q_size, scale=inner),
            ffn_norm=ones,
            gate_up=random.matrix(2 * c.feed_forward, c.hidden, scale=inner),
            down=random.matrix(c.hidden, c.feed_forward, scale=wide),
        )

    return Weights(
        embedding=random.matrix(c.vocabulary, c.hidden),
        layers=[layer() for _ in range(c.layers)],
        final_norm=ones,
        head=random.matrix(c.vocabulary, c.hidden, scale=inner),
        frequencies=rotary_frequencies(c),
    )


def bytes_of(config: ModelConfig, context: int, batch: int) -> int:
    """What a token must read: each matrix once, a row of the table, all keys and values before."""
    c = config
    table = c.vocabulary * c.hidden
    cache = 2 * c.layers * c.kv_size * context
    return (c.parameters - table + batch * (cache + c.hidden)) * BF16.itemsize


def filled(shape: tuple[int, ...], seed: int) -> Any:
    """A bf16 cache of normal numbers."""
    return Random(seed, 1 << 20).matrix(*shape)

"""Models with random weights in the shapes of real ones, for suite `decode`. Knows no timing."""

from dataclasses import dataclass
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from warploom.engine.config import ModelConfig, rotary_frequencies
from warploom.engine.weights import LayerWeights, Weights

BF16 = np.dtype(ml_dtypes.bfloat16)
# Random numbers that matrices of the host are cut from; a prime number, so that rows do not repeat.
_POOL = 16_777_213
# Keys are longer than other vectors: then few of them weigh, and a wrong one shows in the logits.
KEYS = 2.0


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
    family: str = "llama"


MODELS = {
    "llama-3.2-1b": Sizes(16, 2048, 32, 8, 64, 8192, 128256),
    "llama-2-7b": Sizes(32, 4096, 32, 32, 128, 11008, 32000),
    "llama-3.1-8b": Sizes(32, 4096, 32, 8, 128, 14336, 128256),
    "qwen3-8b": Sizes(36, 4096, 32, 8, 128, 12288, 151936, "qwen3"),
    "pythia-2.8b": Sizes(32, 2560, 32, 32, 80, 10240, 50304, "gpt_neox"),
    "pythia-6.9b": Sizes(32, 4096, 32, 32, 128, 16384, 50432, "gpt_neox"),
    "smollm2-135m": Sizes(30, 576, 9, 3, 64, 1536, 49152),
    "tiny": Sizes(2, 128, 4, 2, 32, 192, 300),
    "tiny-qwen3": Sizes(2, 128, 4, 2, 32, 192, 300, "qwen3"),
    "tiny-pythia": Sizes(2, 128, 4, 4, 32, 256, 300, "gpt_neox"),
}
"""Shapes by name; the tiny ones are for tests."""


def config_of(name: str, context: int) -> ModelConfig:
    """The configuration of a model of MODELS."""
    s = MODELS[name]
    neox = s.family == "gpt_neox"
    return ModelConfig(
        family=s.family,
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
        rope_base=10000.0 if neox else 500000.0,
        rope_style="half",
        rotary_dim=s.head_dim // 4 if neox else s.head_dim,
        tied=False,
        head_norms=s.family == "qwen3",
        gated=not neox,
        biases=neox,
        parallel=neox,
    )


class Random(Protocol):
    """Where random numbers come from, and where they lie."""

    def matrix(self, *shape: int, scale: float = 1.0) -> Any:
        """A bf16 array of normal numbers of this standard deviation, rounded to a power of two."""
        ...


class HostRandom:
    """NumPy arrays that no two models share, from one pool of numbers."""

    def __init__(self, seed: int, most: int = _POOL) -> None:
        self._draw = np.random.default_rng(seed)
        count = min(_POOL, most)
        self._pool = self._draw.standard_normal(count, np.float32).astype(BF16)

    def matrix(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        """A bf16 array of normal numbers of this standard deviation, rounded to a power of two."""
        pool = (self._pool.astype(np.float32) * np.float32(power_of_two(scale))).astype(BF16)
        start = int(self._draw.integers(0, len(pool)))
        return np.resize(np.roll(pool, start), shape)


def power_of_two(scale: float) -> float:
    """The nearest one: a product with it is exact."""
    return float(2.0 ** np.round(np.log2(scale)))


def weights_of(config: ModelConfig, random: Random, seed: int) -> Weights:
    """Every layer keeps the size of what passes through it. Vectors are f32, on the host."""
    c = config
    inner, wide = c.hidden**-0.5, c.feed_forward**-0.5
    vectors = np.random.default_rng(seed)

    def near(middle: float, length: int) -> np.ndarray:
        found = middle + 0.1 * vectors.standard_normal(length, np.float32)
        return found.astype(BF16).astype(np.float32)

    def biases() -> dict[str, np.ndarray]:
        lengths = {
            "attention_norm_bias": c.hidden,
            "qkv_bias": c.q_size + 2 * c.kv_size,
            "out_bias": c.hidden,
            "ffn_norm_bias": c.hidden,
            "up_bias": c.feed_forward,
            "down_bias": c.hidden,
        }
        return {name: near(0, length) for name, length in lengths.items()}

    def layer() -> LayerWeights:
        return LayerWeights(
            attention_norm=near(1, c.hidden),
            qkv=random.matrix(c.q_size + 2 * c.kv_size, c.hidden, scale=inner),
            attention_out=random.matrix(c.hidden, c.q_size, scale=inner),
            ffn_norm=near(1, c.hidden),
            gate_up=random.matrix((1 + c.gated) * c.feed_forward, c.hidden, scale=inner),
            down=random.matrix(c.hidden, c.feed_forward, scale=wide),
            **(biases() if c.biases else {}),
            **({n: near(1, c.head_dim) for n in ("q_norm", "k_norm")} if c.head_norms else {}),
        )

    return Weights(
        embedding=random.matrix(c.vocabulary, c.hidden),
        layers=[layer() for _ in range(c.layers)],
        final_norm=near(1, c.hidden),
        head=random.matrix(c.vocabulary, c.hidden, scale=inner),
        frequencies=rotary_frequencies(c),
        final_norm_bias=near(0, c.hidden) if c.biases else None,
    )


def bytes_of(config: ModelConfig, context: int, batch: int) -> int:
    """What a token must read: each matrix once, a row of the table, all keys and values before."""
    c = config
    table = c.vocabulary * c.hidden
    return (c.parameters - table + batch * c.hidden) * BF16.itemsize + cache_bytes(
        c, context, batch
    )


def cache_bytes(config: ModelConfig, context: int, batch: int) -> int:
    """Keys and values of some sequences."""
    return batch * 2 * config.layers * config.kv_size * context * BF16.itemsize

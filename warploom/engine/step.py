"""The launches of one step through the model, as a list that is built once.

`count` tokens of a prompt come from the arrays `ids` and `positions`; `count` 0 means the token of
the device's own state, which the step replaces by the best next one. Knows no devices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from warploom.engine.cache import Cache
from warploom.engine.config import ModelConfig
from warploom.engine.place import Place
from warploom.engine.weights import LayerWeights, Weights
from warploom.kernels import (
    activation,
    attention,
    embedding,
    kv,
    linear,
    norm,
    position,
    rope,
    sampling,
)


@dataclass
class Buffers:
    """Everything that a step writes, for up to `chunk` tokens: activations are f32.

    `token` and `position` [1] are the state of the sequence; `ids` and `positions` a prompt's.
    """

    ids: Any
    positions: Any
    token: Any
    position: Any
    stream: Any
    normed: Any
    qkv: Any
    mixed: Any
    gate_up: Any
    gated: Any
    logits: Any
    partial: Any
    argmax: Any

    @classmethod
    def make(cls, config: ModelConfig, place: Place, chunk: int, context: int) -> "Buffers":
        """Arrays of zeros on a device."""

        def rows(width: int) -> Any:
            return place.zeros((chunk, width), np.float32)

        logits = rows(config.vocabulary)
        return cls(
            ids=place.zeros((chunk,), np.int32),
            positions=place.zeros((chunk,), np.int32),
            token=place.zeros((1,), np.int32),
            position=place.zeros((1,), np.int32),
            stream=rows(config.hidden),
            normed=rows(config.hidden),
            qkv=rows(config.q_size + 2 * config.kv_size),
            mixed=rows(config.q_size),
            gate_up=rows((1 + config.gated) * config.feed_forward),
            gated=rows(config.feed_forward),
            logits=logits,
            partial=attention.workspace(chunk, config.heads, config.head_dim, context, like=logits),
            argmax=sampling.workspace(1, config.vocabulary, like=logits),
        )


class Launches:
    """Calls in order. Calling it makes them all."""

    def __init__(self) -> None:
        self._calls: list[Callable[[], object]] = []

    def add(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Appends a kernel call with its arguments frozen."""
        self._calls.append(partial(call, *arguments, **options))

    def __call__(self) -> None:
        for call in self._calls:
            call()

    def __len__(self) -> int:
        return len(self._calls)


def build_step(
    config: ModelConfig,
    weights: Weights,
    cache: Cache,
    buffers: Buffers,
    count: int,
    heads: int,
    rows: int,
) -> Launches:
    """The launches for `count` tokens, logits for the last `heads` of them, `rows` cache rows."""
    own_state = count == 0
    count = max(1, count)
    ids = buffers.token if own_state else buffers.ids[:count]
    positions = buffers.position if own_state else buffers.positions[:count]
    stream = buffers.stream[:count]
    launches = Launches()
    launches.add(embedding.embed, ids, weights.embedding, stream)
    for index, layer in enumerate(weights.layers):
        keys, values = cache.keys[index][:rows], cache.values[index][:rows]
        _attention(launches, config, layer, weights, buffers, (keys, values), positions, stream)
        if config.parallel:  # both halves begin with the same stream
            _gated(launches, config, layer, buffers, stream)
            _attention_out(launches, layer, buffers, stream)
        else:
            _attention_out(launches, layer, buffers, stream)
            _gated(launches, config, layer, buffers, stream)
        _down(launches, layer, buffers, stream)
    if heads:
        _head(launches, config, weights, buffers, stream[count - heads :], heads)
    if own_state:
        launches.add(position.advance, buffers.position)
    return launches


def _attention(
    launches: Launches,
    config: ModelConfig,
    layer: LayerWeights,
    weights: Weights,
    buffers: Buffers,
    cache: tuple[Any, Any],
    positions: Any,
    stream: Any,
) -> None:
    """mixed = attention(norm(stream))"""
    count, dim, both = stream.shape[0], config.head_dim, config.q_size + config.kv_size
    normed, qkv, mixed = buffers.normed[:count], buffers.qkv[:count], buffers.mixed[:count]
    heads = qkv.reshape(count, -1, dim)
    # Queries and keys lie side by side and turn by the same angles: one launch for both.
    turning = heads[:, : both // dim]
    q, k, v = heads[:, : config.heads], turning[:, config.heads :], heads[:, both // dim :]
    _norm(launches, config, stream, layer.attention_norm, layer.attention_norm_bias, normed)
    launches.add(linear.linear, normed, layer.qkv, qkv, layer.qkv_bias)
    if config.head_norms:
        for token in range(count):
            launches.add(norm.rms_norm, q[token], layer.q_norm, q[token], config.norm_eps)
            launches.add(norm.rms_norm, k[token], layer.k_norm, k[token], config.norm_eps)
    launches.add(
        rope.rope, turning, positions, weights.frequencies, turning, style=config.rope_style
    )
    launches.add(kv.append, k, v, *cache, positions)
    launches.add(
        attention.decode, q, *cache, positions, mixed.reshape(count, config.heads, dim),
        config.scale, partial=buffers.partial,
    )  # fmt: skip


def _attention_out(launches: Launches, layer: LayerWeights, buffers: Buffers, stream: Any) -> None:
    """stream += attention_out(mixed)"""
    mixed = buffers.mixed[: stream.shape[0]]
    launches.add(linear.linear, mixed, layer.attention_out, stream, layer.out_bias, residual=stream)


def _gated(
    launches: Launches, config: ModelConfig, layer: LayerWeights, buffers: Buffers, stream: Any
) -> None:
    """gated = silu(gate) * up, or gelu(up), of norm(stream)"""
    count, wide = stream.shape[0], config.feed_forward
    normed, gate_up, gated = buffers.normed[:count], buffers.gate_up[:count], buffers.gated[:count]
    _norm(launches, config, stream, layer.ffn_norm, layer.ffn_norm_bias, normed)
    launches.add(linear.linear, normed, layer.gate_up, gate_up, layer.up_bias)
    if config.gated:
        launches.add(activation.silu_mul, gate_up[:, :wide], gate_up[:, wide:], gated)
    else:
        launches.add(activation.gelu, gate_up, gated)


def _down(launches: Launches, layer: LayerWeights, buffers: Buffers, stream: Any) -> None:
    """stream += down(gated)"""
    gated = buffers.gated[: stream.shape[0]]
    launches.add(linear.linear, gated, layer.down, stream, layer.down_bias, residual=stream)


def _norm(
    launches: Launches, config: ModelConfig, x: Any, weight: Any, bias: Any, out: Any
) -> None:
    """RMSNorm, or LayerNorm where the model has biases."""
    if bias is None:
        launches.add(norm.rms_norm, x, weight, out, config.norm_eps)
    else:
        launches.add(norm.layer_norm, x, weight, bias, out, config.norm_eps)


def _head(
    launches: Launches,
    config: ModelConfig,
    weights: Weights,
    buffers: Buffers,
    stream: Any,
    heads: int,
) -> None:
    """Logits of `heads` tokens, and the best next token after the last one."""
    normed, logits = buffers.normed[:heads], buffers.logits[:heads]
    _norm(launches, config, stream, weights.final_norm, weights.final_norm_bias, normed)
    launches.add(linear.linear, normed, weights.head, logits)
    last = logits[heads - 1 :]
    launches.add(sampling.argmax, last, buffers.token, scratch=buffers.argmax)

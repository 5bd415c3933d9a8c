"""The forward pass in plain NumPy, f32: what the kernels are measured against.

Independent of kernels, runner and cache; whole sequences at once, causal attention, no chunks.
"""

import math

import numpy as np

from warploom.engine.config import ModelConfig
from warploom.engine.weights import LayerWeights, Weights

Pair = tuple[np.ndarray, np.ndarray]


def forward(
    config: ModelConfig, weights: Weights, ids: list[int], last: int | None = None
) -> np.ndarray:
    """Logits [last, vocabulary] after each of the `last` ids (all by default), in f32."""
    positions = np.arange(len(ids))
    angles = positions[:, None].astype(np.float32) * np.asarray(weights.frequencies)
    turn = np.cos(angles)[:, None], np.sin(angles)[:, None]
    mask = np.where(positions[:, None] >= positions[None, :], 0.0, -np.inf).astype(np.float32)
    x = _f32(weights.embedding[np.asarray(ids)])
    for layer in weights.layers:
        attention = _attention(config, layer, x, turn, mask)
        middle = x if config.parallel else x + attention
        x = x + attention + _feed_forward(config, layer, middle)
    kept = x if last is None else x[len(ids) - last :]
    final = _norm(kept, weights.final_norm, config.norm_eps, weights.final_norm_bias)
    return final @ _f32(weights.head).T


def _attention(
    config: ModelConfig, layer: LayerWeights, x: np.ndarray, turn: Pair, mask: np.ndarray
) -> np.ndarray:
    normed = _norm(x, layer.attention_norm, config.norm_eps, layer.attention_norm_bias)
    qkv = _times(normed, layer.qkv, layer.qkv_bias)
    q, k, v = np.split(qkv, [config.q_size, config.q_size + config.kv_size], axis=1)
    q, k, v = (part.reshape(len(x), -1, config.head_dim) for part in (q, k, v))
    if config.head_norms:
        q = _norm(q, layer.q_norm, config.norm_eps)
        k = _norm(k, layer.k_norm, config.norm_eps)
    q, k = (_rotate(part, *turn, config.rope_style) for part in (q, k))
    return _times(_attend(q, k, v, mask, config.scale), layer.attention_out, layer.out_bias)


def _feed_forward(config: ModelConfig, layer: LayerWeights, x: np.ndarray) -> np.ndarray:
    normed = _norm(x, layer.ffn_norm, config.norm_eps, layer.ffn_norm_bias)
    up = _times(normed, layer.gate_up, layer.up_bias)
    if config.gated:
        gate, up = np.split(up, 2, axis=1)
        up = gate / (1 + np.exp(-gate)) * up
    else:
        up = np.float32(0.5) * up * (1 + _erf(up * np.float32(math.sqrt(0.5))))
    return _times(up, layer.down, layer.down_bias)


_erf = np.vectorize(math.erf, otypes=[np.float32])


def _times(x: np.ndarray, matrix: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    found = x @ _f32(matrix).T
    return found if bias is None else found + bias


def _f32(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32, copy=False)


def _norm(
    x: np.ndarray, weight: np.ndarray, eps: float, bias: np.ndarray | None = None
) -> np.ndarray:
    """RMSNorm; with a bias LayerNorm."""
    if bias is not None:
        x = x - np.mean(x, axis=-1, keepdims=True, dtype=np.float32)
    mean = np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32)
    found = x / np.sqrt(mean + np.float32(eps)) * weight
    return found if bias is None else found + bias


def _rotate(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, style: str) -> np.ndarray:
    pairs, out = 2 * cos.shape[-1], x.copy()
    if style == "interleaved":
        first, second = slice(0, pairs, 2), slice(1, pairs, 2)
    else:
        first, second = slice(0, pairs // 2), slice(pairs // 2, pairs)
    a, b = x[..., first], x[..., second]
    out[..., first], out[..., second] = a * cos - b * sin, b * cos + a * sin
    return out


def _attend(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray, scale: float
) -> np.ndarray:
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(part, group, axis=1).transpose(1, 0, 2) for part in (k, v))
    scores = q.transpose(1, 0, 2) @ k.transpose(0, 2, 1) * np.float32(scale) + mask
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = weights / weights.sum(axis=-1, keepdims=True) @ v
    return mixed.transpose(1, 0, 2).reshape(q.shape[0], -1)

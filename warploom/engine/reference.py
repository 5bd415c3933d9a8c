"""The Llama forward pass in plain NumPy, f32: what the kernels are measured against.

Independent of kernels, runner and cache; whole sequences at once, causal attention, no chunks.
"""

import numpy as np

from warploom.engine.config import ModelConfig
from warploom.engine.weights import Weights


def forward(
    config: ModelConfig, weights: Weights, ids: list[int], last: int | None = None
) -> np.ndarray:
    """Logits [last, vocabulary] after each of the `last` ids (all by default), in f32."""
    positions = np.arange(len(ids))
    angles = positions[:, None].astype(np.float32) * np.asarray(weights.frequencies)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    mask = np.where(positions[:, None] >= positions[None, :], 0.0, -np.inf).astype(np.float32)
    x = _f32(weights.embedding[np.asarray(ids)])
    for layer in weights.layers:
        qkv = _norm(x, layer.attention_norm, config.norm_eps) @ _f32(layer.qkv).T
        q, k, v = np.split(qkv, [config.q_size, config.q_size + config.kv_size], axis=1)
        q, k, v = (part.reshape(len(ids), -1, config.head_dim) for part in (q, k, v))
        q, k = (_rotate(part, cos, sin, config.rope_style) for part in (q, k))
        mixed = _attend(q, k, v, mask, config.scale)
        x = x + mixed @ _f32(layer.attention_out).T
        gate, up = np.split(
            _norm(x, layer.ffn_norm, config.norm_eps) @ _f32(layer.gate_up).T, 2, axis=1
        )
        x = x + (gate / (1 + np.exp(-gate)) * up) @ _f32(layer.down).T
    kept = x if last is None else x[len(ids) - last :]
    return _norm(kept, weights.final_norm, config.norm_eps) @ _f32(weights.head).T


def _f32(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32, copy=False)


def _norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    mean = np.mean(x * x, axis=-1, keepdims=True, dtype=np.float32)
    return x / np.sqrt(mean + np.float32(eps)) * weight


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

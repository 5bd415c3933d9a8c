"""A decoder-only model in NumPy, float32, whole sequences at once: what a token launch is held
against. Independent of plans, packing and caches.

With `short` it rounds where the kernel does: what a matrix is multiplied with, keys and values.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.kernels.token.plan import Shape


@dataclass
class Layer:
    """Matrices [outputs, inputs] of one layer; norms and biases f32, None where there is none."""

    qkv: np.ndarray
    out: np.ndarray
    gate_up: np.ndarray
    down: np.ndarray
    norms: np.ndarray
    qkv_bias: np.ndarray | None = None
    q_norm: np.ndarray | None = None
    k_norm: np.ndarray | None = None
    out_bias: np.ndarray | None = None
    up_bias: np.ndarray | None = None
    down_bias: np.ndarray | None = None
    norm_biases: np.ndarray | None = None


@dataclass
class Model:
    """Weights as a model file has them."""

    shape: Shape
    embedding: np.ndarray
    layers: list[Layer]
    norm: np.ndarray
    head: np.ndarray
    frequencies: np.ndarray
    eps: float = 1e-5
    norm_bias: np.ndarray | None = None


@dataclass
class Result:
    """Of a sequence of n tokens: the stream [n, hidden] before the first layer and after each, keys
    and values [n, kv_heads, head_dim] of each layer, logits [n, vocabulary]."""

    streams: list[np.ndarray] = field(default_factory=list)
    keys: list[np.ndarray] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)
    logits: np.ndarray = field(default_factory=lambda: np.empty(0))


def forward(model: Model, ids: Any, short: bool = False) -> Result:
    """All tokens of one sequence."""
    shape, found = model.shape, Result()
    dtype = model.embedding.dtype

    def times(x: np.ndarray, matrix: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        made = held(x) @ _wide(matrix).T
        return made if bias is None else made + bias

    def normed_times(
        x: np.ndarray, weight: np.ndarray, shift: np.ndarray | None, matrix: np.ndarray
    ) -> np.ndarray:
        """A matrix times what a norm gives. With numbers of bf16 and no mean taken away, the kernel
        multiplies the root into the sums, unless two matrices share the source."""
        at_once = shift is None and dtype.name == "bfloat16"
        if not short or not at_once or (shape.parallel and matrix is not model.head):
            return times(_normed(x, weight, model.eps, shift), matrix)
        return times(x * weight, matrix) * _root(x, model.eps)

    def held(x: np.ndarray) -> np.ndarray:
        return _wide(x.astype(dtype)) if short else x

    x = _wide(model.embedding[np.asarray(ids)])
    found.streams.append(x)
    for layer in model.layers:
        biases = (None, None) if layer.norm_biases is None else layer.norm_biases
        heads = normed_times(x, layer.norms[0], biases[0], layer.qkv)
        heads = heads if layer.qkv_bias is None else heads + layer.qkv_bias
        heads = heads.reshape(len(x), -1, shape.head_dim)
        q, k, v = np.split(heads, [shape.heads, shape.heads + shape.kv_heads], axis=1)
        if layer.q_norm is not None and layer.k_norm is not None:
            q, k = _normed(q, layer.q_norm, model.eps), _normed(k, layer.k_norm, model.eps)
        q, k = (turned(part, model.frequencies, shape.rope_style) for part in (q, k))
        k, v = held(k), held(v)
        found.keys.append(k)
        found.values.append(v)
        attention = times(_attention(q, k, v), layer.out, layer.out_bias)
        middle = x if shape.parallel else x + attention
        inner = normed_times(middle, layer.norms[1], biases[1], layer.gate_up)
        inner = inner if layer.up_bias is None else inner + layer.up_bias
        up = _activated(inner, shape.gated)
        x = x + attention + times(up, layer.down, layer.down_bias)
        found.streams.append(x)
    found.logits = normed_times(x, model.norm, model.norm_bias, model.head)
    return found


def _activated(x: np.ndarray, gated: bool) -> np.ndarray:
    if not gated:
        erf = np.vectorize(math.erf, otypes=[np.float32])
        return np.float32(0.5) * x * (1 + erf(x * np.float32(math.sqrt(0.5))))
    gate, up = np.split(x, 2, axis=1)
    return gate / (1 + np.exp(-gate)) * up


def turned(x: np.ndarray, frequencies: np.ndarray, style: str) -> np.ndarray:
    """Heads [n, heads, head_dim] turned by their positions 0 … n − 1."""
    angle = np.arange(len(x), dtype=np.float32)[:, None, None] * frequencies
    cos, sin, half, out = np.cos(angle), np.sin(angle), len(frequencies), x.copy()
    first, second = slice(0, half), slice(half, 2 * half)
    if style == "interleaved":
        first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
    a, b = x[..., first], x[..., second]
    out[..., first], out[..., second] = a * cos - b * sin, b * cos + a * sin
    return out


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    n, heads, width = q.shape
    k, v = (np.repeat(part, heads // k.shape[1], axis=1) for part in (k, v))
    scores = np.einsum("nhd,mhd->hnm", q, k) * np.float32(width**-0.5)
    scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    return np.einsum("hnm,mhd->nhd", weights, v).reshape(n, -1)


def _normed(
    x: np.ndarray, weight: np.ndarray, eps: float, bias: np.ndarray | None = None
) -> np.ndarray:
    if bias is not None:
        x = x - np.mean(x, -1, keepdims=True, dtype=np.float32)
    made = x * _root(x, eps) * weight
    return made if bias is None else made + bias


def _root(x: np.ndarray, eps: float) -> np.ndarray:
    """1 / root of the mean square of each row."""
    mean = np.mean(x * x, -1, keepdims=True, dtype=np.float32)
    return 1 / np.sqrt(mean + np.float32(eps))


def _wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32, copy=False)

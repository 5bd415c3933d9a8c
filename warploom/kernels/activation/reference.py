"""Activations in NumPy, in float64."""

import math

import numpy as np

_ERF = np.vectorize(math.erf, otypes=[np.float64])


def silu_mul(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    """gate / (1 + e^−gate) · up."""
    g = gate.astype(np.float64)
    with np.errstate(over="ignore"):
        return g / (1.0 + np.exp(-g)) * up.astype(np.float64)


def gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    """x · Φ(x): ½x(1 + erf(x/√2)), or ½x(1 + tanh(√(2/π)(x + 0.044715 x³)))."""
    v = x.astype(np.float64)
    if approximate == "tanh":
        return 0.5 * v * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (v + 0.044715 * v**3)))
    return 0.5 * v * (1.0 + _ERF(v * math.sqrt(0.5)))


def softmax(x: np.ndarray) -> np.ndarray:
    """e^(x − max) / Σ e^(x − max) along the last axis."""
    v = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        e = np.exp(v - v.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

"""The linear layer in NumPy, in float64."""

import numpy as np


def linear(
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray | None = None,
    residual: np.ndarray | None = None,
) -> np.ndarray:
    """x · wᵀ (+ bias) (+ residual)."""
    y = x.astype(np.float64) @ w.astype(np.float64).T
    if bias is not None:
        y = y + bias.astype(np.float64)
    return y if residual is None else y + residual.astype(np.float64)


def error_scale(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Σ_k |x[t, k]·w[n, k]|: what the rounding error of a sum is a small multiple of."""
    return np.abs(x.astype(np.float64)) @ np.abs(w.astype(np.float64)).T

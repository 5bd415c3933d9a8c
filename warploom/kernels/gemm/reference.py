"""The matrix product in NumPy, in float64."""

import numpy as np


def matmul(a: np.ndarray, b: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """a · b (+ bias)."""
    y = a.astype(np.float64) @ b.astype(np.float64)
    return y if bias is None else y + bias.astype(np.float64)


def error_scale(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Σ_k |a[m, k]·b[k, n]|: what the rounding error of a sum is a small multiple of."""
    return np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))

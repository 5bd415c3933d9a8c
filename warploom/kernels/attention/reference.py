"""Decode attention in NumPy, in float64, one token and one head at a time."""

import numpy as np


def decode(
    q: np.ndarray, k_cache: np.ndarray, v_cache: np.ndarray, positions: np.ndarray, scale: float
) -> np.ndarray:
    """Softmax(scale · q·Kᵀ)·V over keys 0 … positions[t]; no key gives zeros."""
    out = np.zeros(q.shape, np.float64)
    ratio = q.shape[1] // k_cache.shape[1]
    for t, position in enumerate(positions):
        n = min(int(position) + 1, len(k_cache))
        if n <= 0:
            continue
        for h in range(q.shape[1]):
            keys = k_cache[:n, h // ratio].astype(np.float64)
            scores = keys @ q[t, h].astype(np.float64) * scale
            weights = np.exp(scores - scores.max())
            out[t, h] = weights / weights.sum() @ v_cache[:n, h // ratio].astype(np.float64)
    return out

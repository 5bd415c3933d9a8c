"""Appending to a cache in NumPy, in place."""

import numpy as np


def append(
    k: np.ndarray,
    v: np.ndarray,
    k_cache: np.ndarray,
    v_cache: np.ndarray,
    positions: np.ndarray,
) -> None:
    """cache[positions[t]] = new[t] for positions inside the cache."""
    for t, row in enumerate(positions):
        if 0 <= row < len(k_cache):
            k_cache[row] = k[t].astype(k_cache.dtype)
            v_cache[row] = v[t].astype(v_cache.dtype)

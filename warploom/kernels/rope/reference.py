"""Rotary position embedding, pair by pair."""

import numpy as np


def pairs(rotary: int, style: str) -> list[tuple[int, int]]:
    """The columns that turn together, in the order of their frequencies."""
    half = rotary // 2
    if style == "half":
        return [(i, i + half) for i in range(half)]
    return [(2 * i, 2 * i + 1) for i in range(half)]


def rope(
    x: np.ndarray, positions: np.ndarray, inv_freq: np.ndarray, style: str = "half"
) -> np.ndarray:
    """Turn each pair by position · inv_freq (an f32 product); the rest is copied. float64."""
    out = x.astype(np.float64)
    for t, position in enumerate(positions):
        for i, (a, b) in enumerate(pairs(2 * len(inv_freq), style)):
            angle = np.float64(np.float32(position) * np.float32(inv_freq[i]))
            first, second = out[t, :, a].copy(), out[t, :, b].copy()
            out[t, :, a] = first * np.cos(angle) - second * np.sin(angle)
            out[t, :, b] = second * np.cos(angle) + first * np.sin(angle)
    return out

"""RMSNorm and LayerNorm in NumPy, in float64."""

import numpy as np


def rms_norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    """(x / √(mean(x²) + eps)) · weight along the last axis."""
    v = x.astype(np.float64)
    scale = 1.0 / np.sqrt((v * v).mean(-1, keepdims=True) + eps)
    return v * scale * weight.astype(np.float64)


def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    """(d / √(mean(d²) + eps)) · weight + bias with d = x − mean(x), along the last axis."""
    v = x.astype(np.float64)
    d = v - v.mean(-1, keepdims=True)
    scale = 1.0 / np.sqrt((d * d).mean(-1, keepdims=True) + eps)
    return d * scale * weight.astype(np.float64) + bias.astype(np.float64)

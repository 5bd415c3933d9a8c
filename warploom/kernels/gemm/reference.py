"""The matrix product in NumPy, in float64."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np


def matmul(
    a: np.ndarray,
    b: np.ndarray,
    bias: np.ndarray | None = None,
    residual: np.ndarray | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    activation: Callable[[np.ndarray], np.ndarray] | None = None,
    scale_a: np.ndarray | float = 1.0,
    scale_b: np.ndarray | float = 1.0,
) -> np.ndarray:
    """activation(alpha · scale_a · scale_b · a · b + bias) + beta · residual, of every product of a
    batch; scales are numbers, [M, 1] and [1, N]."""
    y = alpha * (a.astype(np.float64) @ b.astype(np.float64))
    y = y * np.asarray(scale_a, np.float64) * np.asarray(scale_b, np.float64)
    if bias is not None:
        y = y + bias.astype(np.float64)[..., None, :]
    if activation is not None:
        y = activation(y)
    return y if residual is None else y + beta * residual.astype(np.float64)


def error_scale(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Σ_k |a[m, k]·b[k, n]|: what the rounding error of a sum is a small multiple of."""
    return np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))


def grouped_rows(a: np.ndarray, b: np.ndarray, offsets: np.ndarray, out: np.ndarray) -> np.ndarray:
    """`out` with a · b[g] in the rows of each group."""
    made = out.astype(np.float64)
    for group, (lo, hi) in enumerate(pairwise(offsets)):
        made[lo:hi] = matmul(a[lo:hi], b[group])
    return made


def grouped_depth(a: np.ndarray, b: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The products over each group's part of the common axis."""
    return np.stack([matmul(a[:, lo:hi], b[lo:hi]) for lo, hi in pairwise(offsets)])

"""Collectives in NumPy, in the order in which the kernels fold: the bits are equal."""

import numpy as np

FOLDS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def fold(parts: np.ndarray, op: str) -> np.ndarray:
    """parts[0] op parts[1] op …, from left to right; halves in f32, rounded once at the end."""
    wide = parts.astype(np.float32) if parts.dtype.itemsize == 2 else parts
    total = wide[0]
    with np.errstate(over="ignore", invalid="ignore"):
        for part in wide[1:]:
            total = FOLDS[op](total, part)
    return total.astype(parts.dtype)


def all_reduce(
    x: np.ndarray, cluster: int, op: str, rounds: int = 1, scale: float = 1.0
) -> np.ndarray:
    """Rounds of an all-reduce of x [blocks, N] over clusters of so many blocks, each result
    multiplied by `scale` in the dtype."""
    factor = x.dtype.type(scale)
    for _ in range(rounds):
        groups = x.reshape(-1, cluster, x.shape[1])
        x = np.repeat(np.stack([fold(g, op) for g in groups]), cluster, axis=0) * factor
    return x


def exchange(x: np.ndarray, share: int, rounds: int) -> np.ndarray:
    """The vector of the last of `rounds` ≥ 1 in which every block passes on the share behind its
    own, plus 1."""
    for _ in range(rounds - 1):
        x = np.roll(x, -share) + x.dtype.type(1)
    return x

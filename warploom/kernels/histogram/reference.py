"""Counts in NumPy."""

import numpy as np


def histogram(x: np.ndarray, bins: int) -> np.ndarray:
    """How often each of 0 … bins − 1 stands in each row; other numbers are not counted."""
    rows = [np.bincount(row[(row >= 0) & (row < bins)], minlength=bins) for row in x]
    return np.array(rows, np.int32).reshape(len(x), bins)

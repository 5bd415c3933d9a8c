"""The embedding in NumPy."""

import numpy as np


def embed(ids: np.ndarray, table: np.ndarray) -> np.ndarray:
    """out[t] = table[ids[t]]; a row of zeros where ids[t] is outside the table."""
    inside = (ids >= 0) & (ids < len(table))
    rows = table.astype(np.float32)[np.where(inside, ids, 0)]
    return np.where(inside[:, None], rows, np.float32(0))

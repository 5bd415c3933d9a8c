"""The packed order of weights in NumPy."""

import numpy as np

from warploom.kernels.token.plan import ROWS, UNIT, Matrix


def packed(weights: np.ndarray, matrix: Matrix, warps: int) -> np.ndarray:
    """[steps, elements of a step] of a matrix [rows, columns], zeros in rows beyond it.

    A step has a unit for each warp, those beside each other first. A unit has four steps of the
    instruction, a step 32 threads, a thread 8 numbers: four neighbouring columns of row i and of
    row i + 8, as the registers of operand A want them (`ir/ops/mma.py`; columns are numbered anew,
    in the vectors alike).
    """
    high, wide = matrix.high, matrix.wide
    whole = np.zeros((matrix.bands * matrix.band_rows, matrix.columns), weights.dtype)
    whole[: matrix.rows] = weights
    # (band, high, half, row, step, wide, instruction, pair, side, low)
    parts = whole.reshape(matrix.bands, high, 2, 8, matrix.steps, wide, UNIT // 16, 4, 2, 2)
    # (band, step, high, wide, instruction, row, pair, side, half, low)
    order = (0, 4, 1, 5, 6, 3, 7, 8, 2, 9)
    return parts.transpose(order).reshape(matrix.total, warps * ROWS * UNIT)

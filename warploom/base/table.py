"""Rows of text as lines with columns below each other."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[object]], right: str = "") -> list[str]:
    """One line a row; a column whose letter in `right` is `r` ends below the others, else it
    begins below them."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = right.ljust(len(widths), "l")
    return [
        "  ".join(
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ).rstrip()
        for row in cells
    ]

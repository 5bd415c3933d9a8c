"""Positions that live on the device: a captured graph continues where its last run ended."""

from typing import Any

from warploom.kernels import arguments
from warploom.kernels.position import kernel


def advance(positions: Any, by: int = 1) -> None:
    """positions[t] += by. positions [T] i32, up to 1,024. Raises ShapeError T201, T202."""
    size = arguments.sizes("advance", positions=(positions, "T"))
    arguments.dtypes("advance", ("i32",), positions=positions)
    arguments.require(size["T"] <= kernel.MOST, "advance", f"{size['T']} positions are too many")
    if size["T"]:
        kernel.advance.launch(1, pdl=True)(positions, by, BT=1 << (size["T"] - 1).bit_length())

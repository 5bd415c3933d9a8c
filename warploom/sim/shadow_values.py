"""Written-ness of values in slots: None where all is written, else flags and where they came
from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warploom.base.dtypes import boolean
from warploom.sim.faults import Origin
from warploom.sim.values import merge_blocks, take_blocks


class Shadow:
    """Which elements of a value are written (bool, shaped like the value) and where the first
    unwritten one was read."""

    __slots__ = ("flags", "origin")

    def __init__(self, flags: np.ndarray, origin: Origin) -> None:
        self.flags = flags
        self.origin = origin

    def map(self, change: Callable[[np.ndarray], np.ndarray]) -> Shadow:
        """The same after moving elements."""
        return Shadow(change(self.flags), self.origin)


def both(*shadows: Shadow | None) -> Shadow | None:
    """What is computed from values with these shadows."""
    found: Shadow | None = None
    for shadow in shadows:
        if shadow is not None:
            found = shadow if found is None else Shadow(found.flags & shadow.flags, found.origin)
    return found


def take_shadow(shadow: Shadow, places: np.ndarray) -> Shadow:
    """The shadow of some blocks of the batch."""
    return shadow.map(lambda flags: take_blocks(flags, places))


def merge_shadows(
    shadows: list[tuple[np.ndarray, Shadow | None]], count: int, rank: int | None
) -> Shadow | None:
    """The shadow of a value merged from parts of the batch."""
    origin = next((s.origin for _, s in shadows if s is not None), None)
    if origin is None:
        return None
    parts: list[tuple[np.ndarray, Any]] = [
        (rows, True if s is None else s.flags) for rows, s in shadows
    ]
    return Shadow(merge_blocks(parts, count, boolean, rank), origin)

"""Which lanes of a warp touched each element last. The text of a program orders what one lane does;
two lanes of a warp are ordered by what lets them meet: a warp sync, a barrier, or an arrival and a
wait. Knows masks of lanes; what accesses there have been, `history` knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from warploom.sim.order.history import Access

EVERY, FIRST = np.uint32(0xFFFF_FFFF), np.uint32(1)
"""Masks of all lanes, and of the one that acts alone for them."""


class Lanes(NamedTuple):
    """The lanes of a warp in one access: `bits`, which of them touch each cell; `clock`, what all
    of them know, the one that acts alone aside. `parts` are the components of what they do and of
    copies that they have begun, `common` the epochs of those up to which all know of each other."""

    bits: np.ndarray
    clock: np.ndarray
    parts: tuple[int, ...]
    common: tuple[int, ...]

    def share(self, access: Access) -> bool | None:
        """Whether all lanes know of an access of this warp's lanes; None where it is another's."""
        if access.component not in self.parts:
            return None
        return access.epoch <= self.common[self.parts.index(access.component)]


class LaneMap:
    """The lanes that wrote each cell last, and that have read it (or reduced into it) since: those
    of one warp in one epoch, the last that did."""

    __slots__ = ("reader", "readers", "writers")

    def __init__(self, cells: int) -> None:
        self.writers = np.zeros(cells, np.uint32)
        self.readers = np.zeros(cells, np.uint32)
        self.reader = np.full(cells, -1, np.int32)  # the component of their warp

    def apart(self, before: Access, at: Any, bits: np.ndarray, writes: bool) -> np.ndarray:
        """At which cells different lanes of a warp conflict: `bits` access now, others did
        `before`. Lanes that hold the same value may all store it and read it again."""
        if before.changes:
            held = self.writers[at]
            return (held & ~bits if writes else bits & ~held) != 0
        both = self.readers[at] | bits
        return (self.reader[at] == before.component) & (both & (both - FIRST) != 0)

    def note(self, at: Any, component: int, bits: np.ndarray, changes: bool, on: Any) -> None:
        """Lanes access cells; `on`: those at which the same lanes' reads go on that are noted."""
        if changes:
            self.writers[at] = bits
            return
        if on is not None:
            same = on & (self.reader[at] == component)
            bits = bits | np.where(same, self.readers[at], 0).astype(np.uint32)
        self.readers[at] = bits
        self.reader[at] = component

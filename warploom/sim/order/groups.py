"""Asynchronous work that retires group by group: components and epochs by which it is known. Knows
neither operations nor memory.
"""

from __future__ import annotations

import numpy as np


class Groups:
    """Work of one thread or warpgroup that retires group by group, oldest first."""

    __slots__ = ("closed", "component", "seen")

    def __init__(self, component: int) -> None:
        self.component = component
        self.closed = 0
        self.seen: dict[int, np.ndarray] = {}  # what who issued a group had seen

    @property
    def epoch(self) -> int:
        """The epoch of what is issued now."""
        return self.closed + 1


class ThreadCopies(Groups):
    """Groups of `cp.async`. An arrival may come in the middle of a group, and stands for the copies
    before it only: epochs count arrivals, too."""

    __slots__ = ("arrivals", "ends")

    def __init__(self, component: int) -> None:
        super().__init__(component)
        self.arrivals = 0
        self.ends: list[int] = []  # the last epoch of each closed group

    @property
    def epoch(self) -> int:
        """The epoch of what is issued now."""
        return self.closed + self.arrivals + 1

    def close(self) -> None:
        """Close the current group."""
        self.ends.append(self.epoch)
        self.closed += 1

    def over(self, pending: int) -> int:
        """The last epoch that is over where at most `pending` groups are open."""
        done = self.closed - pending
        return self.ends[done - 1] if done > 0 else 0

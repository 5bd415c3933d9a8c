"""What the engine finds, as plain data. Words and codes are the simulator's business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple


class Kind(Enum):
    """Kinds of findings, in the order in which they are shown: what is unstable explains races."""

    MANY_ARRIVALS = "arrivals that mean a phase exceed its count"
    BYTES = "bytes issued for a phase differ from those announced"
    ARRIVAL = "an arrival is not ordered with the phase before"
    EXPECT = "an announcement does not happen before an arrival of its phase"
    WAIT = "a wait is not ordered with the phase after the one it means"
    SIGNAL = "a wait for a counter or flag could be satisfied otherwise"
    STORE = "stores to a flag are not ordered with its waits"
    WORD = "flagged data is sent again before it is known to be received"
    LEFT = "a barrier ends inside a phase"
    UNMADE = "a barrier is used before it is known to be made"
    SCOPE = "two atomic accesses, of which one does not reach the thread of the other"
    TAKEN = "an item that belongs to one is taken by two, or by nobody"
    STORAGE = "an access touches the bytes of a barrier"
    RACE = "two accesses are not ordered"
    FENCE = "two accesses are ordered, but no fence joins their proxies"
    EXIT = "an access is not over when its block exits"


class Beginning(NamedTuple):
    """The site of what makes a block's memory: where the block begins."""

    state: Any


UNSTABLE = (Kind.MANY_ARRIVALS, Kind.BYTES, Kind.ARRIVAL, Kind.EXPECT, Kind.WAIT)
UNSTABLE += (Kind.SIGNAL, Kind.STORE, Kind.WORD, Kind.LEFT, Kind.UNMADE)


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: where (`site`), against what (`other`), on which object, with which numbers."""

    kind: Kind
    site: Any
    other: Any = None
    object: Any = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def unstable(self) -> bool:
        """Whether a synchronisation could resolve otherwise under another schedule."""
        return self.kind in UNSTABLE


Found = Callable[[Problem], None]

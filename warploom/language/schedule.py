"""`wl.tiles`: what a loop goes over when a struct says what comes first, next and last."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.language.context import Refused, vocabulary
from warploom.language.structs import Instance
from warploom.language.values import kind_of

_METHODS = {"first": 1, "valid": 2, "next": 2}


@dataclass(frozen=True, slots=True)
class Tiles:
    """A schedule as what a `for` goes over."""

    schedule: Instance


@vocabulary
def tiles(schedule: Instance) -> Tiles:
    """A loop over a schedule: `for t in wl.tiles(s)` is `t = s.first()`, and as long as
    `s.valid(t)`, the body and `t = s.next(t)`.

    `schedule` is a `wl.struct` with these three methods. What they give may be a scalar, a tuple or
    a struct; it is carried from trip to trip. `kernels/schedule` holds the usual orders.

    Shapes: any.
    Executes: every warp; the condition is the same for the whole role.
    Since: sm_80.
    """
    if not isinstance(schedule, Instance):
        raise Refused(
            "T015",
            f"a schedule is a `wl.struct`, not {kind_of(schedule)}",
            argument="schedule",
            hint="`wl.range(n)` counts",
        )
    methods = schedule.struct.methods
    missing = [name for name in _METHODS if name not in methods]
    if missing:
        raise Refused(
            "F036",
            f"{schedule!r} has no method `{missing[0]}`",
            argument="schedule",
            notes=("a schedule has first(self), valid(self, t) and next(self, t)",),
            hint="a schedule has `first`, `valid` and `next`: see docs/patterns/schedule.md",
        )
    return Tiles(schedule)

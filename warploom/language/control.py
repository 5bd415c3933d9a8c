"""What `for` goes over. Branches and loops themselves are syntax: the front end has them."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

from warploom.language.context import Refused, vocabulary
from warploom.language.values import Scalar, Tile, index_value, kind_of

# Copies of one loop body that still compile in reasonable time.
_MOST_COPIES = 1024


@dataclass(frozen=True, slots=True)
class Range:
    """A run-time loop: bounds and step are integers or scalars; `unroll` is a request to ptxas."""

    lo: Scalar | int
    hi: Scalar | int
    step: Scalar | int
    unroll: int = 1


@dataclass(frozen=True, slots=True)
class Unroll:
    """A compile-time loop: its body is copied for each of these numbers."""

    numbers: builtins.range


@vocabulary
def range(
    lo: Scalar | int,
    hi: Scalar | int | None = None,
    step: Scalar | int = 1,
    unroll: int = 1,
) -> Range:
    """A run-time loop, as Python's `range`: `for i in wl.range(lo, hi, step)`.

    The index is i32, or i64 where a bound is. `step` is not 0; a negative one counts down. `unroll`
    copies the body this many times in the machine code and changes no result.

    Shapes: integer scalars.
    Executes: every warp; the bounds are the same for the whole block.
    Since: sm_80.
    """
    if hi is None:
        lo, hi = 0, lo
    for name, bound in (("lo", lo), ("hi", hi), ("step", step)):
        _check_bound(bound, name)
    if isinstance(step, int) and step == 0:
        raise Refused(
            "F036", "the step of a loop is 0", argument="step", hint="use 1 or more, or -1"
        )
    if isinstance(unroll, bool) or not isinstance(unroll, int) or not 1 <= unroll <= _MOST_COPIES:
        raise Refused("F027", "`unroll` is a constant from 1 up", argument="unroll")
    return Range(lo, hi, step, unroll)


def _check_bound(bound: Any, name: str) -> None:
    if isinstance(bound, float):
        raise Refused(
            "T015",
            f"a loop counts integers, not {bound!r}",
            argument=name,
            hint="`//` divides integers",
        )
    if not isinstance(bound, int):
        index_value(bound, name)


@vocabulary
def unroll(lo: int, hi: int | None = None, step: int = 1) -> Unroll:
    """A compile-time loop: `for i in wl.unroll(n)` copies the body, with i a constant in each copy.

    Shapes: constants.
    Executes: nothing by itself.
    Since: sm_80.
    """
    given = {"lo": lo, "hi": hi, "step": step}
    for name, bound in given.items():
        if isinstance(bound, Scalar | Tile):
            raise Refused(
                "F027",
                "the bounds of `wl.unroll` are constants, and this one is a run-time value",
                argument=name,
                label=kind_of(bound),
                hint="use `wl.range`, or a `wl.const` parameter",
            )
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):
            raise Refused("T015", f"a loop counts integers, not {kind_of(bound)}", argument=name)
    if step == 0:
        raise Refused(
            "F036", "the step of a loop is 0", argument="step", hint="use 1 or more, or -1"
        )
    numbers = builtins.range(0, lo, step) if hi is None else builtins.range(lo, hi, step)
    if len(numbers) > _MOST_COPIES:
        raise Refused(
            "F033",
            f"{len(numbers):,} copies of a loop body are too many",
            argument="lo" if hi is None else "hi",
            notes=(f"the most is {_MOST_COPIES:,}",),
            hint="use `wl.range`, which loops at run time",
        )
    return Unroll(numbers)

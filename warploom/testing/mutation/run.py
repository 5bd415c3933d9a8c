"""Mutation over examples, over the library, and for `selftest`: which launches, then the score."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from warploom.testing.mutation.library import Instance, families, instances, library_kernels
from warploom.testing.mutation.report import text
from warploom.testing.mutation.score import SURVIVED, Score, scored
from warploom.testing.mutation.trials import Trial

Tell = Callable[[str], None]


def _silent(words: str) -> None:
    """Say nothing."""


def library_score(
    wanted: str = "",
    *,
    seconds: float | None = None,
    sample: tuple[int, int] | None = None,
    tell: Tell = _silent,
) -> Score:
    """The score over the pipelined kernels of the library (of some families, separated by commas).

    `seconds`: no mutant is begun after so long; `sample`: so many mutants of each compiled kernel,
    drawn by a seed. Launches of loops without a step run unaltered only.
    """
    until = None if seconds is None else time.monotonic() + seconds
    found = instances(wanted)
    trials = [Trial(i.name, i.call(), i.seeds) for i in found if i.altered]
    score = scored(trials, until=until, sample=sample, tell=tell)
    for instance in found:
        if not instance.altered:
            score.launches += 1
            score.alarms += [(instance.name, f.report) for f in instance.call().check(seeds=1)]
    return score


def selftest_score(
    seconds: float | None = None, sample: tuple[int, int] | None = None, tell: Tell = _silent
) -> dict[str, Any]:
    """What the file of `selftest` holds of mutation: counts, and each survivor in words."""
    score = library_score(seconds=seconds, sample=sample, tell=tell)
    survived = [v.json() for v in score.of(SURVIVED)]
    return {
        "kernels": score.by_kernel(),
        "counted": score.counted,
        "caught": score.caught,
        "equivalent": len(score.of("equivalent")),
        "unreached": len(score.of("unreached")),
        "not_tried": score.left,
        "false_alarms": len(score.alarms),
        "survived": survived,
    }


__all__ = [
    "Instance",
    "families",
    "instances",
    "library_kernels",
    "library_score",
    "selftest_score",
    "text",
]

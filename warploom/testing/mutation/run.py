"""Mutation over examples, over the library, and for `selftest`: which launches, then the score."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from warploom.testing.mutation.library import Instance, families, instances, library_kernels
from warploom.testing.mutation.report import text
from warploom.testing.mutation.score import EQUIVALENT, SURVIVED, UNREACHED, Score, scored
from warploom.testing.mutation.trials import Trial

Tell = Callable[[str], None]
_LONG = ("token", "gemm", "collectives", "rows")


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
    seconds: float | None = None,
    sample: tuple[int, int] | None = None,
    tell: Tell = _silent,
    processes: int = 1,
) -> dict[str, Any]:
    """What the file of `selftest` holds of mutation: counts, and each survivor in words. Several
    processes share the families."""
    if processes == 1:
        return _counts(library_score(seconds=seconds, sample=sample, tell=tell))
    found: list[dict[str, Any]] = []
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        # Those that take longest are begun first.
        names = sorted(families(), key=lambda name: (name not in _LONG, name))
        parts = {pool.submit(_counts_of, name, seconds, sample): name for name in names}
        for part in as_completed(parts):
            found.append(part.result())
            tell(f"{parts[part]}: {found[-1]['caught']} of {found[-1]['counted']} mutants caught")
    return _together(found)


def _counts_of(
    family: str, seconds: float | None, sample: tuple[int, int] | None
) -> dict[str, Any]:
    return _counts(library_score(family, seconds=seconds, sample=sample))


def _counts(score: Score) -> dict[str, Any]:
    return {
        "kernels": score.by_kernel(),
        "counted": score.counted,
        "caught": score.caught,
        "equivalent": len(score.of(EQUIVALENT)),
        "unreached": len(score.of(UNREACHED)),
        "not_tried": score.left,
        "sampled": score.sampled(),
        "false_alarms": len(score.alarms),
        "survived": [v.json() for v in score.of(SURVIVED)],
    }


def _together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts of families as those of all: numbers are added, lists and tables joined."""
    made = dict(parts[0])
    for part in parts[1:]:
        for name, value in part.items():
            made[name] = made[name] | value if isinstance(value, dict) else made[name] + value
    return made


__all__ = [
    "Instance",
    "families",
    "instances",
    "library_kernels",
    "library_score",
    "selftest_score",
    "text",
]

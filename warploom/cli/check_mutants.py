"""What `warploom check` does with `--library` and `--mutate`: which kernels, and how it is told.

Knows nothing of edits: `testing.mutation` has the score.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

from warploom.base.diagnostics import wants_colour
from warploom.base.errors import error
from warploom.cli.kernel_name import Found
from warploom.runtime.arrays import SIM
from warploom.testing.mutation import report, run
from warploom.testing.mutation.score import Score, scored
from warploom.testing.mutation.trials import Trial


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of mutation and of the library."""
    parser.add_argument(
        "--library", action="store_true", help="the kernels of the library instead of KERNEL"
    )
    parser.add_argument("--families", default="", metavar="A,B", help="only these of the library")
    parser.add_argument(
        "--mutate",
        action="store_true",
        help="alter one synchronisation at a time, and tell which alterations are found",
    )
    parser.add_argument(
        "--score",
        type=float,
        default=1.0,
        metavar="S",
        help="with --mutate: the share of mutants that must be found (default 1.0)",
    )


def refuse_wrong(options: argparse.Namespace) -> None:
    """Raise LaunchError H021 for options that do not go together."""
    if bool(options.kernel) == options.library:
        raise error("H021", "either KERNEL or --library", hint="warploom check --help")
    if options.families and not options.library:
        raise error("H021", "--families without --library", hint="write --library --families a,b")
    if options.mutate and options.explore:
        hint = "run them one after the other"
        raise error("H021", "--mutate and --explore are two questions", hint=hint)
    if options.mutate and (options.seed is not None or options.schedule):
        raise error("H021", "--mutate takes no --seed and no --schedule", hint="--seeds N")
    if not 0.0 <= options.score <= 1.0:
        hint = "--score 0.9 asks for nine of ten"
        raise error("H021", f"--score {options.score}: a share from 0 to 1", hint=hint)


def library_examples(families: str) -> list[Found]:
    """All examples of the library's kernels, of some families; raises LaunchError H021."""
    kernels = list(run.library_kernels())
    known = list(dict.fromkeys(family for family, _ in kernels))
    wanted = [name.strip() for name in families.split(",") if name.strip()] or known
    for name in wanted:
        if name not in known:
            raise error(
                "H021", f"there is no family `{name}`", hint=f"families: {', '.join(known)}"
            )
    return [
        Found(kernel, name)
        for family, kernel in kernels
        if family in wanted
        for name in kernel.examples
        if name != "bench"
    ]


def score_of(options: argparse.Namespace, found: Callable[[], list[Found]]) -> Score:
    """The score at the kernels that the options name."""
    if options.library:
        return run.library_score(options.families, tell=_tell)
    trials = [Trial(f.title, f.call(SIM), options.seeds or 1) for f in found()]
    return scored(trials, tell=_tell)


def _tell(words: str) -> None:
    print(f"mutants of {words}", file=sys.stderr, flush=True)


def show(score: Score) -> None:
    """Print the report."""
    print(report.text(score, wants_colour(sys.stdout)))


def json_of(score: Score, least: float) -> dict[str, Any]:
    """The object that `--json` writes."""
    verdict = "findings" if score.alarms else "clean"
    found = [{"launch": name, "code": r.code, "message": r.message} for name, r in score.alarms]
    return {"verdict": verdict, "alarms": found, "least": least, **score.json()}

"""`warploom check KERNEL`, `check FILE.py`, `check --library`: run examples checked, on many
schedules; with `--mutate` tell what the checker would notice.

Knows nothing of what is checked: `runtime.findings` has the verdict, `testing.mutation` the score.
"""

import argparse
import sys
from typing import Any

from warploom.base.diagnostics import wants_colour
from warploom.base.errors import error
from warploom.cli import check_mutants, json_file, kernel_name
from warploom.cli.kernel_name import Found
from warploom.cli.verbs import FINE, NO
from warploom.runtime.arrays import SIM
from warploom.runtime.findings import SCHEMA, Findings
from warploom.runtime.launch import Call
from warploom.sim.actors import SCHEDULES
from warploom.sim.explore.search import LIMIT

_SEEDS = 20


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "check",
        description="Run a kernel's examples checked on the simulator: races, deadlocks, barriers "
        "that could complete otherwise.",
        epilog="exit codes: 0 nothing found (with --mutate: enough is found), 1 the answer is no, "
        "2 could not run",
    )
    parser.add_argument(
        "kernel",
        metavar="KERNEL",
        nargs="?",
        help=f"{kernel_name.HELP}; FILE.py for all of its examples",
    )
    seeds = f"schedules to run (default {_SEEDS}; with --mutate 1)"
    parser.add_argument("--seeds", type=int, metavar="N", help=seeds)
    parser.add_argument("--seed", type=int, metavar="N", help="run the schedule of this seed only")
    words = ", ".join(f"{name} ({text})" for name, text in SCHEDULES.items())
    parser.add_argument(
        "--schedule",
        choices=tuple(SCHEDULES),
        metavar="NAME",
        default="",
        help=f"the schedule of all seeds: {words}; by default seeds 0, 1, 2 are the first three, "
        "odd and even ones beyond are the others",
    )
    parser.add_argument(
        "--explore",
        action="store_true",
        help="visit all interleavings of a small example instead of some schedules: a proof for it",
    )
    parser.add_argument(
        "--limit", type=int, metavar="N", help=f"states to explore at most (default {LIMIT:,})"
    )
    parser.add_argument(
        "--no-reduction",
        action="store_true",
        help="explore equivalent interleavings too, for comparison",
    )
    check_mutants.add_options(parser)
    parser.add_argument("--json", metavar="FILE", help=json_file.HELP)


def run(options: argparse.Namespace) -> int:
    """Check each example; returns the exit code."""
    _refuse(options)
    if options.mutate:
        return _mutate(options)
    verdicts = []
    with json_file.kept_clean(options.json):
        for found in _examples(options):
            findings, words = _checked(found.call(SIM), options)
            findings.example = found.example
            verdicts.append(findings)
            if options.json != "-":
                print(f"{found.title}: {findings.verdict} ({words})")
                if not findings.clean:
                    print("\n" + findings.text(ansi=wants_colour(sys.stdout)) + "\n")
    clean = all(v.clean for v in verdicts)
    if options.json:
        whole = {"schema": SCHEMA, "verdict": "clean" if clean else "findings"}
        json_file.write(options.json, whole | {"checked": [v.json() for v in verdicts]})
    return FINE if clean else NO


def _examples(options: argparse.Namespace) -> list[Found]:
    if options.library:
        return check_mutants.library_examples(options.families)
    return kernel_name.find_examples(options.kernel)


def _mutate(options: argparse.Namespace) -> int:
    """Score the checker at the mutants of the examples."""
    with json_file.kept_clean(options.json):
        score = check_mutants.score_of(options, lambda: _examples(options))
        if options.json != "-":
            check_mutants.show(score)
    if options.json:
        whole = {"schema": SCHEMA, **check_mutants.json_of(score, options.score)}
        json_file.write(options.json, whole)
    return NO if score.alarms or score.share < options.score else FINE


def _refuse(options: argparse.Namespace) -> None:
    """Refuse numbers and options that do not fit."""
    check_mutants.refuse_wrong(options)
    if options.seeds is not None and options.seeds < 1:
        raise error(
            "H021",
            f"--seeds {options.seeds}: at least one run",
            hint="--seeds 20 runs twenty schedules",
        )
    if options.seed is not None and options.seed < 0:
        raise error("H021", f"--seed {options.seed}: seeds count from 0", hint="give 0 or more")
    if options.limit is not None and options.limit < 1:
        raise error("H021", f"--limit {options.limit}: at least one state", hint="give 1 or more")
    if options.explore and (options.seeds or options.seed is not None or options.schedule):
        hint = "leave out --seeds, --seed, --schedule"
        raise error("H021", "--explore visits all schedules", hint=hint)
    if not options.explore and (options.limit is not None or options.no_reduction):
        raise error("H021", "--limit and --no-reduction are of --explore", hint="add --explore")


def _checked(call: Call, options: argparse.Namespace) -> tuple[Findings, str]:
    """What was found in a call, and what was run for it."""
    if options.explore:
        findings = call.explore(options.limit or LIMIT, not options.no_reduction)
        return findings, findings.words
    count = _SEEDS if options.seeds is None else options.seeds
    seeds, first, words = count, 0, f"{count} schedules"
    if options.seed is not None:
        seeds, first, words = 1, options.seed, f"seed {options.seed}"
    words += f", {options.schedule}" * bool(options.schedule)
    return call.check(seeds, first, options.schedule), words

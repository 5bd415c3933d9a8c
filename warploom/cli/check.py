"""`warploom check KERNEL` or `warploom check FILE.py`: run examples checked, on many schedules.

Knows nothing of what is checked: `runtime.findings` has the verdict.
"""

import argparse
import sys
from typing import Any

from warploom.base.diagnostics import wants_colour
from warploom.base.errors import error
from warploom.cli import json_file, kernel_name
from warploom.cli.verbs import FINE, NO
from warploom.runtime.arrays import SIM
from warploom.runtime.findings import SCHEMA, Findings
from warploom.sim.actors import SCHEDULES

_SEEDS = 20


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "check",
        description="Run a kernel's examples checked on the simulator: races, deadlocks, barriers "
        "that could complete otherwise.",
        epilog="exit codes: 0 nothing found, 1 findings, 2 could not run",
    )
    parser.add_argument(
        "kernel", metavar="KERNEL", help=f"{kernel_name.HELP}; FILE.py for all of its examples"
    )
    seeds = f"schedules to run (default {_SEEDS})"
    parser.add_argument("--seeds", type=int, default=_SEEDS, metavar="N", help=seeds)
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
    parser.add_argument("--json", metavar="FILE", help=json_file.HELP)


def run(options: argparse.Namespace) -> int:
    """Check each example; returns the exit code."""
    if options.seeds < 1:
        raise error("H021", f"--seeds {options.seeds}: at least one run")
    if options.seed is not None and options.seed < 0:
        raise error("H021", f"--seed {options.seed}: seeds count from 0")
    seeds, first = (options.seeds, 0) if options.seed is None else (1, options.seed)
    runs = f"{seeds} schedules" if options.seed is None else f"seed {first}"
    runs += f", {options.schedule}" * bool(options.schedule)
    verdicts = []
    with json_file.kept_clean(options.json):
        for found in kernel_name.find_examples(options.kernel):
            findings: Findings = found.call(SIM).check(seeds, first, options.schedule)
            findings.example = found.example
            verdicts.append(findings)
            if options.json != "-":
                print(f"{found.title}: {findings.verdict} ({runs})")
                if not findings.clean:
                    print("\n" + findings.text(ansi=wants_colour(sys.stdout)) + "\n")
    clean = all(v.clean for v in verdicts)
    if options.json:
        whole = {"schema": SCHEMA, "verdict": "clean" if clean else "findings"}
        json_file.write(options.json, whole | {"checked": [v.json() for v in verdicts]})
    return FINE if clean else NO

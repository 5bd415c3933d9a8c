"""`warploom fuzz`: random kernels against NumPy. What they are: `testing.fuzz`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from warploom.base.errors import error
from warploom.cli import json_file
from warploom.cli.verbs import FINE, NO
from warploom.runtime import places
from warploom.runtime.arrays import SIM
from warploom.testing.fuzz import runner

_COUNT = 200
_EVERY = 50  # kernels between two words of progress


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "fuzz",
        description="Run random kernels and hold what they give against NumPy: level 1 as tile IR, "
        "level 2 with roles, pipes and products. A failure is made smaller and printed as a file "
        "that runs.",
        epilog="exit codes: 0 no difference, 1 differences, 2 could not run",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first seed (0)")
    count = f"kernels to run, one a seed (default {_COUNT})"
    parser.add_argument("--count", type=int, default=_COUNT, metavar="N", help=count)
    parser.add_argument("--device", default=SIM, metavar="DEVICE", help="sim, gpu or gpu:1 (sim)")
    parser.add_argument(
        "--level", type=int, choices=runner.LEVELS, help="kernels of this level only"
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), metavar="S", help="begin none after so long"
    )
    beside = "run and compile so many at a time (1)"
    parser.add_argument("--processes", type=int, default=1, metavar="N", help=beside)
    keep = "write each failure to a file of this folder"
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help=keep)
    parser.add_argument("--json", metavar="FILE", help=json_file.HELP)


def run(options: argparse.Namespace) -> int:
    """Run the kernels; returns the exit code."""
    if options.count < 0 or options.seed < 0:
        raise error(
            "H021",
            f"--seed {options.seed} --count {options.count}: both count from 0",
            hint="give 0 or more for both",
        )
    if options.processes < 1:
        raise error(
            "H021", f"--processes {options.processes}: there is at least one", hint="give 1 or more"
        )
    device = places.parse(options.device)
    quiet = options.json == "-"

    def tell(heard: runner.Failure | int) -> None:
        if isinstance(heard, int):
            if heard % _EVERY == 0:
                print(f"{heard} of {options.count}", file=sys.stderr)
            return
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            path = options.keep / f"{heard.family}_{heard.seed}.py"
            path.write_text(heard.text, encoding="utf-8")
        if not quiet:
            print(f"seed {heard.seed}, {heard.family}: {heard.why}\n\n{heard.text}")

    levels = runner.LEVELS if options.level is None else (options.level,)
    with json_file.kept_clean(options.json):
        found = runner.run(
            options.seed,
            options.count,
            device,
            levels,
            options.seconds,
            tell,
            options.processes,
        )
    if not quiet:
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(found.ran.items()))
        bad = len(found.failures)
        print(
            f"{found.total} kernels ({kinds or 'none'}) on {device}: "
            f"{bad or 'no'} difference{'s' * (bad > 1)} from NumPy"
        )
        if found.lost:
            print(f"{found.lost} were not run: a kernel before had broken the GPU's context")
    if options.json:
        json_file.write(options.json, found.json())
    return NO if found.failures or found.lost else FINE

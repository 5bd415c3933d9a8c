"""`warploom selftest`: how well the checker and the compiler do, in numbers, with the commit. What
is examined and what is enough: `testing.selftest`."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from warploom.base.errors import error
from warploom.base.table import aligned
from warploom.bench import machine
from warploom.cli import json_file
from warploom.cli.verbs import FINE, NO
from warploom.testing import selftest

SCHEMA = 1


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "selftest",
        description="Examine the checker: hazards in pairs, faults planted blind, exploration, "
        "random kernels. In a checkout, on the simulator.",
        epilog="exit codes: 0 all that is wanted is reached, 1 something is not, 2 could not run",
    )
    full = "everything, and 2,000 random kernels (without: at most 10 minutes)"
    parser.add_argument("--full", action="store_true", help=full)
    parser.add_argument(
        "--part",
        action="append",
        choices=tuple(selftest.PARTS),
        metavar="PART",
        help=f"only this part; more than one may be named ({', '.join(selftest.PARTS)})",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of samples (0)")
    where = "write the result file; FOLDER/ gets selftest.json"
    parser.add_argument("--json", metavar="FILE", help=f"{where} (- is stdout)")
    parser.add_argument("--commit", metavar="HASH", help="the commit, where there is no checkout")


def run(options: argparse.Namespace) -> int:
    """Run the parts; returns the exit code."""
    if options.seed < 0:
        raise error("H021", f"--seed {options.seed}: seeds count from 0")
    parts = [name for name in selftest.PARTS if not options.part or name in options.part]
    found, dirty = machine.commit()
    began = time.time()
    with json_file.kept_clean(options.json):
        counts = selftest.run(parts, options.full, options.seed, _say)
    record = {
        "schema": SCHEMA,
        "suite": "selftest",
        **machine.describe("sim"),
        "commit": options.commit or found,
        "dirty": dirty,
        "source": machine.source_hash(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "seconds": round(time.time() - began, 1),
        "seed": options.seed,
        "full": options.full,
        **counts,
    }
    _write(options.json, record)
    short = selftest.shortcomings(counts)
    if options.json != "-":
        print("\n".join([*aligned(selftest.summary(counts)), *short]))
    return NO if short else FINE


def _write(target: str | None, record: dict[str, Any]) -> None:
    if target is None:
        return
    if target != "-" and (target.endswith("/") or Path(target).is_dir()):
        Path(target).mkdir(parents=True, exist_ok=True)
        target = str(Path(target) / "selftest.json")
    if target == "-":
        print(json.dumps(record, ensure_ascii=False))
        return
    json_file.write(target, record)


def _say(text: str) -> None:
    """Progress goes to stderr: stdout carries the result."""
    print(text, file=sys.stderr, flush=True)

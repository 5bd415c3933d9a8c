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
    again = "go on from the file: parts that it has of the same sources are not run again"
    parser.add_argument("--resume", action="store_true", help=again)
    parser.add_argument("--commit", metavar="HASH", help="the commit, where there is no checkout")


def run(options: argparse.Namespace) -> int:
    """Run the parts; returns the exit code."""
    if options.seed < 0:
        raise error("H021", f"--seed {options.seed}: seeds count from 0", hint="give 0 or more")
    if options.resume and options.json in (None, "-"):
        raise error("H021", "--resume goes on from a file", hint="name it by --json FILE")
    target = _file(options.json)
    record = _begun(options)
    counts = _held(target, record) if options.resume else {}
    named = [name for name in selftest.PARTS if not options.part or name in options.part]
    began, before = time.monotonic(), sum(one["seconds"] for one in counts.values())

    def ended(found: dict[str, Any]) -> None:
        """Keep what has been counted so far: a long run may be cut short."""
        counts.update(found)
        record.update(seconds=round(before + time.monotonic() - began, 1), **counts)
        if target not in (None, "-"):
            json_file.write(target, record)

    with json_file.kept_clean(target):
        for name in named:
            if name not in counts:
                ended(selftest.run([name], options.full, options.seed, _say))
    counts = {name: counts[name] for name in selftest.PARTS if name in counts}
    if target == "-":
        json_file.write(target, record)
    short = selftest.shortcomings(counts)
    if options.json != "-":
        print("\n".join([*aligned(selftest.summary(counts)), *short]))
    return NO if short else FINE


def _begun(options: argparse.Namespace) -> dict[str, Any]:
    """The head of the result file."""
    found, dirty = machine.commit()
    return {
        "schema": SCHEMA,
        "suite": "selftest",
        **machine.describe("sim"),
        "commit": options.commit or found,
        "dirty": dirty,
        "source": machine.source_hash(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": 0.0,
        "seed": options.seed,
        "full": options.full,
    }


def _file(target: str | None) -> str | None:
    """The file of `--json`; a folder is made, and gets one."""
    if target is None or target == "-":
        return target
    if target.endswith("/") or Path(target).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
        return str(Path(target) / "selftest.json")
    return target


def _held(target: str | None, record: dict[str, Any]) -> dict[str, Any]:
    """The parts that a file has of the same sources, seed and extent."""
    path = Path(target or "")
    if not path.is_file():
        return {}
    held = json.loads(path.read_text(encoding="utf-8"))
    if any(held.get(name) != record[name] for name in ("schema", "source", "seed", "full")):
        return {}
    return {name: held[name] for name in selftest.PARTS if name in held}


def _say(text: str) -> None:
    """Progress goes to stderr: stdout carries the result."""
    print(text, file=sys.stderr, flush=True)

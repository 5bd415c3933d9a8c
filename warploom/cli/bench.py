"""`warploom bench`: measure suites and write their result files, or judge files by the bars."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from warploom.base.errors import error
from warploom.bench import bars, record, suites
from warploom.bench import driver as measuring
from warploom.bench.machine import ROOT
from warploom.cli import json_file
from warploom.cli.verbs import FINE, NO, UNUSABLE
from warploom.runtime import driver, places
from warploom.runtime.arrays import SIM

BARS = ROOT / "benchmarks" / "bars.toml"


def add_parser(commands: Any) -> None:
    """Options of the verb."""
    parser = commands.add_parser(
        "bench",
        description="Measure suites, or judge result files by benchmarks/bars.toml.",
        epilog=f"suites: {' '.join(suites.NAMES)}. exit codes: 0 fine, 1 a bar is missed or a "
        "row failed, 2 could not run",
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument(
        "--cases", action="append", metavar="PATTERN", default=[], help="only these, e.g. 'bf16/*'"
    )
    parser.add_argument("--device", help="sim, gpu or gpu:N; else what the suite is for")
    parser.add_argument(
        "--json", metavar="FILE", help="write the result file; - is stdout, FOLDER/ one file each"
    )
    parser.add_argument("--commit", metavar="HASH", help="the commit, where there is no checkout")
    parser.add_argument("--bars", action="store_true", help="judge what was measured")
    parser.add_argument(
        "--judge", nargs="+", type=Path, metavar="FILE", help="judge these result files instead"
    )


def run(options: argparse.Namespace) -> int:
    """Measure or judge; returns the exit code."""
    if bool(options.judge) == bool(options.suites):
        _say("bench takes suites to measure, or --judge FILE… (see `warploom bench --help`)")
        return UNUSABLE
    if unknown := [name for name in options.suites if name not in suites.NAMES]:
        _say(f"there is no suite `{unknown[0]}`; suites: {' '.join(suites.NAMES)}")
        return UNUSABLE
    try:
        limits = bars.load(BARS) if options.bars or options.judge else {}
        files = [record.read(path) for path in options.judge or []]
    except (OSError, ValueError) as why:
        _say(f"{why}; `warploom bench SUITE --json FILE` writes result files")
        return UNUSABLE
    if options.judge:
        return _judge(files, limits)
    for name in options.suites:
        _check(name, options.device, options.cases)
    single = len(options.suites) == 1
    _prepare(options.json, single)
    records = []
    for name in options.suites:
        made = measuring.run_suite(name, options.device, options.commit, _say, only=options.cases)
        records.append(made)
        _write(made, options.json, single)
    if options.json != "-":
        print("\n".join(line for made in records for line in measuring.table(made)))
    if options.bars:
        return _judge(records, limits, to=sys.stderr if options.json == "-" else sys.stdout)
    return NO if any(made["failed"] for made in records) else FINE


def _check(name: str, device: str | None, patterns: list[str]) -> None:
    """Refuse what would measure nothing: patterns without a case, a GPU that is not there."""
    suite = suites.load(name)
    where = device or suite.DEVICE
    place = places.parse(where)
    if place != SIM and (problem := driver.problem()):
        raise problem
    cases = suite.cases(where)
    if not any(measuring.chosen(case, patterns) for case in cases):
        raise error(
            "H021",
            f"suite {name} has no case `{' '.join(patterns)}`",
            notes=[f"cases: {', '.join(cases[:8])}{', …' * (len(cases) > 8)}"],
            hint="patterns are as in a shell: --cases 'bf16/*'",
        )


def _is_folder(target: str, single: bool) -> bool:
    return target.endswith(("/", "\\")) or Path(target).is_dir() or not single


def _prepare(target: str | None, single: bool) -> None:
    """Refuse a place that cannot be written before minutes of measuring, not after them."""
    if target is None or target == "-":
        return
    folder = Path(target) if _is_folder(target, single) else Path(target).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as why:
        raise json_file.unwritable(target, why) from why


def _write(made: dict[str, Any], target: str | None, single: bool) -> None:
    """Write a record where --json says."""
    if target == "-":
        json.dump(made, sys.stdout, ensure_ascii=False)
        print()
    elif target is not None:
        path = Path(target)
        record.write(path / f"{made['suite']}.json" if _is_folder(target, single) else path, made)


def _judge(files: list[dict[str, Any]], limits: dict[str, Any], to: Any = None) -> int:
    """Print every verdict; 1 where one is missed."""
    verdicts = [verdict for file in files for verdict in bars.judge(file, limits)]
    for verdict in verdicts:
        print(verdict, file=to)
    return NO if bars.missed(verdicts) else FINE


def _say(text: str) -> None:
    """Progress and complaints go to stderr: stdout carries the result."""
    print(text, file=sys.stderr, flush=True)

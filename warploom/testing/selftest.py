"""The checker's own examination: hazards in pairs, mutants, faults planted blind, exploration,
random kernels. Each part gives counts; `shortcomings` judges them.

The pairs, the planted faults and the instances are tests of the checkout, and run as such. Knows
not where the result goes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.base.errors import error
from warploom.testing import exploration
from warploom.testing.fuzz import runner
from warploom.testing.mutation.run import selftest_score

ROOT = Path(__file__).resolve().parents[2]
Tell = Callable[[str], None]
Counts = dict[str, Any]
# Random kernels, and the seconds within which they begin where not all are run.
_KERNELS, _ALL_KERNELS, _FUZZ = 400, 2000, 90.0
# Mutants of each compiled kernel, and the seconds within which they begin, where not all are tried.
_MUTANTS, _MUTATION = 20, 120.0
# Mutants of each compiled kernel where all are tried: those of a kernel that has more are drawn.
_ALL_MUTANTS = 160
# The shares of planted faults and of mutants that have to be found.
FOUND, MUTANTS = 0.95, 0.98


@dataclass(frozen=True)
class Case:
    """One test and how it ended."""

    file: str
    name: str
    passed: bool


def tested(folder: str, *words: str) -> list[Case]:
    """Run the tests of a folder of the checkout; how each ended that was not skipped."""
    place = ROOT / folder
    if not place.exists():
        text = f"there is no {folder} beside the package"
        raise error("H021", text, hint="`warploom selftest` runs in a checkout of the sources")
    with tempfile.TemporaryDirectory(prefix="warploom-selftest-") as held:
        report = Path(held) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder, *words]
        command += ["--junitxml", str(report), "-o", "junit_family=xunit1"]
        command += ["-n", str(_processes())]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if not report.exists():
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            text = f"the tests of {folder} did not run: {' '.join(last) or done.returncode}"
            raise error("H021", text, hint="pip install -e '.[dev]'")
        return cases_of(report.read_text(encoding="utf-8"))


def _processes() -> int:
    """How many processes share the work."""
    return min(os.cpu_count() or 1, 8)


def cases_of(report: str) -> list[Case]:
    """The tests of a report of pytest, but for those that were skipped."""
    found = []
    for case in xml.fromstring(report).iter("testcase"):
        kinds = {child.tag for child in case}
        if "skipped" not in kinds:
            passed = not kinds & {"failure", "error"}
            found.append(Case(case.get("file", ""), case.get("name", ""), passed))
    return found


def _named(cases: Sequence[Case], pattern: str) -> list[Case]:
    return [case for case in cases if re.match(pattern, case.name)]


# ---- parts -------------------------------------------------------------------------------------


def hazards(full: bool, seed: int, tell: Tell) -> Counts:
    """Pairs of a wrong and a right kernel: the wrong ones reported at their lines on 20 schedules,
    the right ones silent on as many."""
    cases = tested("tests/hazards", "--ignore", "tests/hazards/blind")
    wrong, right = _named(cases, r"test_wrong\["), _named(cases, r"test_right\[")
    return {
        "pairs": len(wrong),
        "caught": sum(case.passed for case in wrong),
        "false_alarms": sum(not case.passed for case in right),
        "missed": [case.name for case in wrong if not case.passed],
        "alarmed": [case.name for case in right if not case.passed],
    }


def mutation(full: bool, seed: int, tell: Tell) -> Counts:
    """Kernels of the library in which one synchronisation at a time is altered."""
    if full:
        return selftest_score(sample=(_ALL_MUTANTS, seed), tell=tell, processes=_processes())
    return selftest_score(_MUTATION, (_MUTANTS, seed), tell)


def blind(full: bool, seed: int, tell: Tell) -> Counts:
    """Faults planted by somebody who had not read the checker."""
    cases = tested("tests/hazards/blind")
    planted, right = _named(cases, r"test_found\["), _named(cases, r"test_right\[")
    return {
        "planted": len(planted),
        "found": sum(case.passed for case in planted),
        "false_alarms": sum(not case.passed for case in right),
        "missed": [case.name for case in planted if not case.passed],
    }


def explore(full: bool, seed: int, tell: Tell) -> Counts:
    """Instances of which every interleaving is visited, with reduction and without, and numbers of
    the library's examples."""
    marks = "not gpu and not soak" + ("" if full else " and not slow")
    cases = tested("tests/explore", "-m", marks)
    failed = [f"{case.file}: {case.name}" for case in cases if not case.passed]
    return {"tests": len(cases), "failed": failed, "library": exploration.explore()}


def fuzz(full: bool, seed: int, tell: Tell) -> Counts:
    """Random kernels of both levels against NumPy."""
    count, seconds = (_ALL_KERNELS, float("inf")) if full else (_KERNELS, _FUZZ)

    def heard(one: runner.Failure | int) -> None:
        if isinstance(one, runner.Failure):
            tell(f"fuzz: seed {one.seed}, {one.family}: {one.why}")

    processes = _processes() if full else 1
    found = runner.run(seed, count, seconds=seconds, tell=heard, processes=processes)
    return {
        "seed": seed,
        "kernels": found.total,
        "by_family": dict(sorted(found.ran.items())),
        "differences": [[one.seed, one.family, one.why] for one in found.failures],
    }


PARTS: dict[str, Callable[[bool, int, Tell], Counts]] = {
    "hazards": hazards,
    "mutation": mutation,
    "blind": blind,
    "explore": explore,
    "fuzz": fuzz,
}


def run(
    parts: Sequence[str] = tuple(PARTS),
    full: bool = False,
    seed: int = 0,
    tell: Tell = lambda text: None,
) -> Counts:
    """Run parts; the counts of each by its name."""
    found: Counts = {}
    for name in parts:
        tell(f"{name} …")
        began = time.monotonic()
        found[name] = PARTS[name](full, seed, tell)
        found[name]["seconds"] = round(time.monotonic() - began, 1)
    return found


# ---- what is judged ----------------------------------------------------------------------------


def shortcomings(found: Counts) -> list[str]:
    """What a run did not reach, a line each; nothing of parts that did not run."""
    lines: list[str] = []
    for name, counts in found.items():
        lines += _JUDGES[name](counts)
    return lines


def _hazards(counts: Counts) -> list[str]:
    lines = _at_least("hazards", counts["caught"], counts["pairs"], 1.0, "pairs caught")
    return lines + _none("hazards", counts["false_alarms"], "false alarms")


def _mutation(counts: Counts) -> list[str]:
    lines = _at_least("mutation", counts["caught"], counts["counted"], MUTANTS, "mutants caught")
    return lines + _none("mutation", counts["false_alarms"], "false alarms")


def _blind(counts: Counts) -> list[str]:
    lines = _at_least("blind", counts["found"], counts["planted"], FOUND, "faults found")
    return lines + _none("blind", counts["false_alarms"], "false alarms")


def _explore(counts: Counts) -> list[str]:
    lines = [] if counts["tests"] else ["explore: nothing ran"]
    lines += _none("explore", len(counts["failed"]), "tests failed")
    return lines + _none("explore", len(counts["library"]["failed"]), "examples are not proved")


def _fuzz(counts: Counts) -> list[str]:
    lines = [] if counts["kernels"] else ["fuzz: nothing ran"]
    return lines + _none("fuzz", len(counts["differences"]), "differences from NumPy")


def _at_least(part: str, reached: int, of: int, share: float, what: str) -> list[str]:
    if of and reached >= share * of:
        return []
    return [f"{part}: {reached} of {of} {what}, {share:.0%} are wanted"]


def _none(part: str, count: int, what: str) -> list[str]:
    return [f"{part}: {count} {what}"] if count else []


_JUDGES: dict[str, Callable[[Counts], list[str]]] = {
    "hazards": _hazards,
    "mutation": _mutation,
    "blind": _blind,
    "explore": _explore,
    "fuzz": _fuzz,
}


def summary(found: Counts) -> list[tuple[str, str]]:
    """A line a part: its name, and its numbers in words."""
    words: dict[str, Callable[[Counts], str]] = {
        "hazards": lambda c: (
            f"{c['caught']} of {c['pairs']} pairs, {c['false_alarms']} false alarms"
        ),
        "mutation": lambda c: (
            f"{c['caught']} of {c['counted']} mutants, {c['equivalent']} equivalent, "
            f"{c['false_alarms']} false alarms"
            + "".join(f"; {n} sampled: {s['tried']} of {s['of']}" for n, s in c["sampled"].items())
        ),
        "blind": lambda c: f"{c['found']} of {c['planted']} faults at their lines",
        "explore": lambda c: (
            f"{c['tests']} tests, {len(c['failed'])} failed; {c['library']['proved']} of "
            f"{c['library']['instances']} examples of the library proved"
        ),
        "fuzz": lambda c: f"{c['kernels']} kernels, {len(c['differences'])} differences",
    }
    return [(name, f"{words[name](one)} ({one['seconds']:g} s)") for name, one in found.items()]

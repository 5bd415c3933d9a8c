"""The driver: runs the cases of a suite one process each and puts their rows into one file.

Knows what a suite offers, not what it measures; the bars are judged elsewhere.
"""

import fnmatch
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from warploom.bench import machine, suites
from warploom.bench.record import SCHEMA, Row, ratios

# A rival that is this much slower than written down makes the row worthless.
RIVAL_SLACK = 1.05
_POLL_S = 0.02


def run_suite(
    name: str,
    device: str | None,
    commit: str | None = None,
    tell: Callable[[str], None] = lambda text: None,
    seed: int = 0,
    only: Sequence[str] = (),
) -> dict[str, Any]:
    """Measure a suite; returns the record of a result file. `tell` hears of progress. `only`: cases
    that match one of these patterns, all without one.
    """
    suite = suites.load(name)
    where = device or suite.DEVICE
    began = time.time()
    found, dirty = machine.commit()
    head = {"schema": SCHEMA, "suite": name, **machine.describe(where)}
    limits: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    cases = [case for case in suite.cases(where) if chosen(case, only)]
    if hasattr(suite, "prepare"):
        before = time.time()
        suite.prepare(cases, where)
        tell(f"{name}: prepared in {time.time() - before:.1f} s")
    parts = [cases] if getattr(suite, "TOGETHER", False) else [[case] for case in cases]
    for row, more in (
        answer for part in parts for answer in run_cases(name, part, where, seed, suite.LIMIT_S)
    ):
        tell(f"{name}: {row['case']}")
        limits.update(more)
        rows.append(check_rivals(row, name, head["machine"]))
        tell(f"  {describe_row(row)}")
        if spent := row.get("seconds_of"):
            tell("  seconds: " + ", ".join(f"{part} {value:g}" for part, value in spent.items()))
    geomean, worst = ratios(rows)
    good = sum(row["status"] == "ok" for row in rows)
    return {
        **head,
        "commit": commit or found,
        "dirty": dirty,
        "source": machine.source_hash(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "seconds": round(time.time() - began, 1),
        "seed": seed,
        "limits": limits,
        "geomean_ratio": geomean,
        "worst_ratio": worst,
        "ok": good,
        "failed": len(rows) - good,
        "rows": rows,
    }


def chosen(case: str, patterns: Sequence[str]) -> bool:
    """Whether a case is to be measured."""
    return not patterns or any(fnmatch.fnmatchcase(case, pattern) for pattern in patterns)


def run_cases(
    suite: str, cases: Sequence[str], device: str, seed: int, limit_s: float
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(row, limits) of each case, from a child process; after a fault the rest gets a new one."""
    left = list(cases)
    while left:
        with tempfile.TemporaryDirectory() as folder:
            child = _Child(suite, left, device, seed, Path(folder))
            while left:
                answer = child.next(limit_s)
                case = left.pop(0)
                if isinstance(answer, dict):
                    yield answer["row"], answer["limits"]
                    continue
                yield failed(case, *answer), {}
                break
            child.end()


class _Child:
    """A process that measures cases one after another."""

    def __init__(
        self, suite: str, cases: Sequence[str], device: str, seed: int, folder: Path
    ) -> None:
        command = [sys.executable, "-m", "warploom.bench.case", suite, *cases, "--device", device]
        command += ["--seed", str(seed), "--out", str(folder / "rows")]
        self.out, self.errors = folder / "rows", folder / "stderr"
        self.seen = 0
        with self.errors.open("wb") as stderr:
            self.process = subprocess.Popen(
                command, cwd=machine.ROOT, stdout=subprocess.DEVNULL, stderr=stderr
            )

    def next(self, limit_s: float) -> dict[str, Any] | tuple[str, str]:
        """The next answer, or (status, note) where there is none."""
        until = time.monotonic() + limit_s
        while True:
            ended = self.process.poll() is not None
            text = self.out.read_text(encoding="utf-8") if self.out.exists() else ""
            lines = text.split("\n")[:-1]  # what stands behind the last newline is not done
            if len(lines) > self.seen:
                self.seen += 1
                return json.loads(lines[self.seen - 1])
            if ended:
                return _fault(self.process.returncode, self.errors.read_text(errors="replace"))
            if time.monotonic() > until:
                self.process.kill()
                return "hung", f"no answer after {limit_s:g} s"
            time.sleep(_POLL_S)

    def end(self) -> None:
        """Wait until it is gone."""
        self.process.wait()


def failed(case: str, status: str, note: str) -> dict[str, Any]:
    """A row without a figure."""
    return Row(case, "", "lower", status=status, note=note).to_json()


def _fault(code: int, stderr: str) -> tuple[str, str]:
    """(status, note) of a child that died: what was raised, or the last that it said."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else "nothing on stderr"
    traces = [at for at, line in enumerate(lines) if line.startswith("Traceback ")]
    if traces:
        last = next((s for s in lines[traces[-1] + 1 :] if not s.startswith(" ")), last)
    memory = "MemoryError" in last or "out of memory" in last.lower() or code == -9
    return ("oom" if memory else "fault"), f"exit {code}: {last}"


def check_rivals(row: dict[str, Any], suite: str, where: str) -> dict[str, Any]:
    """Mark a row whose rival is slower than it is known to be: a win over it proves nothing."""
    known = machine.facts(where).get("rivals", {}).get(suite, {}).get(row["case"], {})
    for rival, figure in known.items():
        value = row["rivals"].get(rival)
        if row["status"] != "ok" or value is None:
            continue
        loss = value / figure if row["better"] == "lower" else figure / value
        if loss > RIVAL_SLACK:
            row["status"] = "rival_slow"
            row["note"] = f"{rival}: {value:g}, known to do {figure:g} {row['unit']}"
    return row


def describe_row(row: dict[str, Any]) -> str:
    """A row in one line."""
    if row["status"] != "ok":
        return f"{row['status']}: {row['note']}"
    parts = [f"{row['ours']:.4g} {row['unit']}"]
    parts += [f"{name} {value:.4g}" for name, value in row["rivals"].items()]
    if row["ratio"] is not None:
        parts.append(f"ratio {row['ratio']:.3f}")
    if row["of_limit"] is not None:
        parts.append(f"{100 * row['of_limit']:.1f}% of the limit")
    return ", ".join(parts)


def table(record: dict[str, Any]) -> Iterator[str]:
    """A record as lines for a person."""
    yield f"{record['suite']} on {record['machine']} ({record['device']}), {record['started']}"
    width = max((len(row["case"]) for row in record["rows"]), default=0)
    for row in record["rows"]:
        yield f"  {row['case']:{width}}  {describe_row(row)}"

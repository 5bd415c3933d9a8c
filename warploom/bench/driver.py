"""The driver: runs the cases of a suite one process each and puts their rows into one file.

Knows what a suite offers, not what it measures; the bars are judged elsewhere.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warploom.bench import machine, suites
from warploom.bench.record import SCHEMA, Row, ratios

# A rival that is this much slower than written down makes the row worthless.
RIVAL_SLACK = 1.05


def run_suite(
    name: str,
    device: str | None,
    commit: str | None = None,
    tell: Callable[[str], None] = lambda text: None,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure a suite; returns the record of a result file. `tell` hears of progress."""
    suite = suites.load(name)
    where = device or suite.DEVICE
    began = time.time()
    found, dirty = machine.commit()
    head = {"schema": SCHEMA, "suite": name, **machine.describe(where)}
    limits: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for case in suite.cases(where):
        tell(f"{name}: {case}")
        row, more = run_case(name, case, where, seed, suite.LIMIT_S)
        limits.update(more)
        rows.append(check_rivals(row, name, head["machine"]))
        tell(f"  {describe_row(row)}")
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


def run_case(
    suite: str, case: str, device: str, seed: int, limit_s: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(row, limits) of one case, from a child process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "row.json"
        command = [sys.executable, "-m", "warploom.bench.case", suite, case, "--device", device]
        command += ["--seed", str(seed), "--out", str(out)]
        try:
            child = subprocess.run(
                command, cwd=machine.ROOT, capture_output=True, text=True, timeout=limit_s
            )
        except subprocess.TimeoutExpired:
            return failed(case, "hung", f"no answer after {limit_s:g} s"), {}
        if child.returncode or not out.exists():
            return failed(case, *_fault(child.returncode, child.stderr)), {}
        answer = json.loads(out.read_text(encoding="utf-8"))
    return answer["row"], answer["limits"]


def failed(case: str, status: str, note: str) -> dict[str, Any]:
    """A row without a figure."""
    return Row(case, "", "lower", status=status, note=note).to_json()


def _fault(code: int, stderr: str) -> tuple[str, str]:
    """(status, note) of a child that died."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else "nothing on stderr"
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

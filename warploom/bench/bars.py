"""The bars: numbers that result files are judged by, from `benchmarks/bars.toml`.

Measures nothing. A missing row, a failed row and the wrong machine are misses like any other.

    [suite]
    machine = "h200"                          # where the file must come from
    cases = ["bf16/nt/4096x4096x4096"]        # rows that must be there and be ok
    geomean_ratio.cublas = 1.00               # at least
    worst_ratio.cublas = 0.93                 # at least
    [suite.rows."case or pattern"]
    max_ours = 3.0                            # at most; min_… is at least; any field of a row
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """One bar and how a file stands against it."""

    suite: str
    bar: str
    value: object
    good: bool

    def __str__(self) -> str:
        return f"{'ok    ' if self.good else 'MISSED'} {self.suite}: {self.bar} (is {self.value})"


def load(path: Path) -> dict[str, Any]:
    """All bars; raises ValueError where the file holds a word that no bar has."""
    bars = tomllib.loads(path.read_text(encoding="utf-8"))
    allowed = {"machine", "cases", "geomean_ratio", "worst_ratio", "rows"}
    for suite, table in bars.items():
        if unknown := sorted(set(table) - allowed):
            raise ValueError(f"{path}: [{suite}] has no bar called {', '.join(unknown)}")
        for case, row in table.get("rows", {}).items():
            if wrong := [w for w in row if not w.startswith(("max_", "min_"))]:
                raise ValueError(f"{path}: [{suite}.rows.{case}]: {wrong[0]} is no min_ or max_")
    return bars


def judge(record: Mapping[str, Any], bars: Mapping[str, Any]) -> list[Verdict]:
    """Every bar of the record's suite against the record."""
    suite = record["suite"]
    if suite not in bars:
        return [Verdict(suite, "the suite has bars", "none in bars.toml", False)]
    return list(_verdicts(record, suite, bars[suite]))


def missed(verdicts: list[Verdict]) -> bool:
    """Whether the answer is no; no verdict at all proves nothing."""
    return not verdicts or not all(verdict.good for verdict in verdicts)


def _verdicts(record: Mapping[str, Any], suite: str, table: Mapping[str, Any]) -> Iterator[Verdict]:
    """The verdicts of one suite, in the order of the file."""
    if "machine" in table:
        right = record["machine"] == table["machine"]
        yield Verdict(suite, f"measured on {table['machine']}", record["machine"], right)
    rows = {row["case"]: row for row in record["rows"]}
    for row in rows.values():
        if row["status"] != "ok":
            yield Verdict(suite, f"{row['case']} is ok", f"{row['status']}: {row['note']}", False)
    for case in table.get("cases", []):
        if case not in rows:
            yield Verdict(suite, f"{case} is measured", "missing", False)
    for kind in ("geomean_ratio", "worst_ratio"):
        for rival, least in table.get(kind, {}).items():
            value = record[kind].get(rival)
            good = value is not None and value >= least
            yield Verdict(suite, f"{kind} to {rival} >= {least}", value, good)
    for pattern, limits in table.get("rows", {}).items():
        yield from _row_verdicts(suite, rows, pattern, limits)


def _row_verdicts(
    suite: str, rows: Mapping[str, Any], pattern: str, limits: Mapping[str, float]
) -> Iterator[Verdict]:
    """The bars of the rows that one pattern names; a pattern that names none is a miss."""
    matching = [row for case, row in rows.items() if fnmatchcase(case, pattern)]
    if not matching:
        yield Verdict(suite, f"{pattern} is measured", "missing", False)
    for row in matching:
        for word, bound in limits.items():
            side, name = word.split("_", 1)
            value = row.get(name)
            good = value is not None and (value <= bound if side == "max" else value >= bound)
            sign = "<=" if side == "max" else ">="
            yield Verdict(suite, f"{row['case']} {name} {sign} {bound}", value, good)

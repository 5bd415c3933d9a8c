"""The format of a result file: rows, what is derived from them, and what makes a file valid.

Knows neither how a row is measured nor which numbers are good enough.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1
STATUSES = ("ok", "wrong", "hung", "fault", "oom", "rival_slow", "rival_failed", "skipped")
BETTER = ("lower", "higher")
# Field of a file -> the type that a reader may rely on.
FIELDS: dict[str, type | tuple[type, ...]] = {
    "schema": int,
    "suite": str,
    "machine": str,
    "device": str,
    "driver": (str, type(None)),
    "cpu": str,
    "cores": int,
    "versions": dict,
    "commit": (str, type(None)),
    "dirty": bool,
    "source": str,
    "command": str,
    "started": str,
    "seconds": (int, float),
    "seed": int,
    "limits": dict,
    "geomean_ratio": dict,
    "worst_ratio": dict,
    "ok": int,
    "failed": int,
    "rows": list,
}


@dataclass
class Row:
    """One case, measured. `ours`, `spread` and `rivals` are in `unit`; times are medians."""

    case: str
    unit: str
    better: str
    ours: float | None = None
    spread: tuple[float, float] | None = None
    rivals: dict[str, float] = field(default_factory=dict)
    fastest: str | None = None
    ratio: float | None = None
    of_limit: float | None = None
    limit: str | None = None
    error: float | None = None
    rival_error: float | None = None
    config: dict[str, Any] = field(default_factory=dict)
    rounds: int = 0
    clock_mhz: int | None = None
    status: str = "ok"
    note: str = ""
    # What a suite adds: `rss_mb`, `bytes`, `launches` and so on.
    extra: dict[str, Any] = field(default_factory=dict)

    def settle(self) -> None:
        """Round, and fill in what follows from `ours` and `rivals`.

        A ratio above 1 means: ours is better.
        """
        self.rivals = {name: significant(value) for name, value in self.rivals.items()}
        if self.ours is not None:
            self.ours = significant(self.ours)
        if self.spread is not None:
            self.spread = (significant(self.spread[0]), significant(self.spread[1]))
        if not self.rivals or self.ours is None:
            return
        pick = min if self.better == "lower" else max
        self.fastest = pick(self.rivals, key=lambda name: self.rivals[name])
        self.ratio = round(self.ratio_to(self.rivals[self.fastest]), 4)

    def ratio_to(self, rival: float) -> float:
        """How much better ours is than `rival`."""
        assert self.ours is not None
        return rival / self.ours if self.better == "lower" else self.ours / rival

    def to_json(self) -> dict[str, Any]:
        """The row as it stands in a file."""
        shown = asdict(self)
        shown.update(shown.pop("extra"))
        if self.spread is not None:
            shown["spread"] = list(self.spread)
        return shown


def significant(value: float) -> float:
    """Six digits that count: more is noise, and a file should be readable."""
    return float(f"{value:.6g}")


def ratios(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, float], dict[str, float]]:
    """(geometric means, worst values) of the ratio to each rival and to the fastest."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["status"] != "ok" or row["ours"] is None:
            continue
        for name, value in row["rivals"].items():
            good = value / row["ours"] if row["better"] == "lower" else row["ours"] / value
            found.setdefault(name, []).append(good)
        if row["ratio"] is not None:
            found.setdefault("fastest", []).append(row["ratio"])
    means = {k: round(math.exp(sum(map(math.log, v)) / len(v)), 4) for k, v in found.items()}
    return means, {k: round(min(v), 4) for k, v in found.items()}


def problems(record: Mapping[str, Any]) -> list[str]:
    """What is wrong with a result file; empty for a valid one."""
    found = [f"field `{name}` is missing" for name in FIELDS if name not in record]
    if found:
        return found
    for name, kind in FIELDS.items():
        if not isinstance(record[name], kind) or (kind is int and record[name] is True):
            found.append(f"field `{name}` is {record[name]!r}")
    if record["schema"] != SCHEMA:
        found.append(f"schema {record['schema']}, this version reads {SCHEMA}")
    if found:
        return found
    if record["commit"] is not None and not re.fullmatch(r"[0-9a-f]{40}", record["commit"]):
        found.append(f"commit {record['commit']!r} is not 40 hexadecimal digits")
    if not re.fullmatch(r"[0-9a-f]{64}", record["source"]):
        found.append("source is not a SHA-256")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["started"]):
        found.append(f"started {record['started']!r} is not a time in UTC")
    for row in record["rows"]:
        found += [f"row {row.get('case')!r}: {text}" for text in row_problems(row)]
    names = [row.get("case") for row in record["rows"]]
    found += [
        f"row {name!r} stands twice" for name in sorted({n for n in names if names.count(n) > 1})
    ]
    good = sum(row.get("status") == "ok" for row in record["rows"])
    if (record["ok"], record["failed"]) != (good, len(record["rows"]) - good):
        found.append("ok and failed do not add up")
    if not found and (record["geomean_ratio"], record["worst_ratio"]) != ratios(record["rows"]):
        found.append("geomean_ratio or worst_ratio do not follow from the rows")
    return found


def row_problems(row: Mapping[str, Any]) -> list[str]:
    """What is wrong with one row."""
    known = set(Row.__dataclass_fields__) - {"extra"}
    if missing := sorted(known - set(row)):
        return [f"field `{name}` is missing" for name in missing]
    found: list[str] = []
    if row["status"] not in STATUSES:
        found.append(f"status {row['status']!r}")
    if row["better"] not in BETTER:
        found.append(f"better {row['better']!r}")
    if row["status"] != "ok":
        return found if row["note"] else [*found, "failed without a note that says why"]
    if not isinstance(row["ours"], (int, float)) or row["ours"] <= 0:
        return [*found, f"ours is {row['ours']!r}"]
    if row["rounds"] < 1:
        found.append("ok without a round")
    low, high = row["spread"] or (None, None)
    if low is None or high is None or not low <= row["ours"] <= high:
        found.append(f"spread {row['spread']!r} does not hold the median {row['ours']}")
    if row["rivals"]:
        again = Row(row["case"], row["unit"], row["better"], row["ours"], rivals=row["rivals"])
        again.settle()
        if (again.fastest, again.ratio) != (row["fastest"], row["ratio"]):
            found.append(f"fastest and ratio should be {again.fastest} and {again.ratio}")
    elif row["ratio"] is not None:
        found.append("a ratio without a rival")
    return found


def read(path: Path) -> dict[str, Any]:
    """A result file; raises ValueError with every problem."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: no JSON ({error})") from error
    if not isinstance(record, dict):
        raise ValueError(f"{path}: no result file")
    if found := problems(record):
        raise ValueError(f"{path}: " + "; ".join(found))
    return record


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Write a result file, a row a line."""
    rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in record["rows"])
    head = json.dumps({**record, "rows": []}, indent=1, ensure_ascii=False)
    assert head.endswith('"rows": []\n}')
    text = head.removesuffix("[]\n}") + ("[\n  " + rows + "\n ]\n}" if rows else "[]\n}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")

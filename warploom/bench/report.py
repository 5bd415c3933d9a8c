"""Result files as a table for people. Quotes what the files say and adds nothing."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from warploom.bench.record import read

HEADER = (
    "| suite / row | machine | ours | best rival | ratio | of the limit |\n"
    "|---|---|---|---|---|---|\n"
)
EMPTY = "No result file yet: nothing is claimed.\n"

# Suites whose figures stand in tables of pages of their own.
LESSONS = ("gemm-ladder", "exchange")
# A suite with more rows than these is summed up.
MOST_ROWS = 6


def figures_table(files: Sequence[Path]) -> str:
    """A Markdown table, one line a row, lost ones included. A ratio above 1: ours is better.

    What runs without a GPU stands there once, as the first machine measured it: two cores.
    """
    records = []
    for record in map(read, files):
        again = any(record["suite"] == other["suite"] for other in records)
        if record["suite"] not in LESSONS and not again:
            records.append(record)
    lines = [line for record in records for line in _lines(record)]
    return HEADER + "".join(lines) if lines else EMPTY


def steps_table(record: dict[str, Any]) -> str:
    """Rows `step/shape` as a Markdown table: a line a step, a column a shape, the rival last."""
    rows = {tuple(row["case"].split("/")): row for row in record["rows"]}
    steps, shapes = (list(dict.fromkeys(case[i] for case in rows)) for i in (0, 1))
    unit = record["rows"][0]["unit"]
    out = f"| {unit} | " + " | ".join(shapes) + " |\n" + "|---" * (1 + len(shapes)) + "|\n"
    for step in steps:
        held = [rows.get((step, shape)) for shape in shapes]
        out += f"| `{step}` | " + " | ".join(_cell(row) for row in held) + " |\n"
    rivals = dict.fromkeys(name for row in record["rows"] for name in row["rivals"])
    for rival in rivals:
        cells = []
        for shape in shapes:
            values = [
                row["rivals"][rival]
                for (_, its), row in rows.items()
                if its == shape and rival in row["rivals"]
            ]
            cells.append(number(median(values)) if values else "")
        out += f"| {rival} | " + " | ".join(cells) + " |\n"
    return out


def collectives_table(record: dict[str, Any], trip_cycles: float) -> str:
    """Rows `bytes/cluster/how` as a Markdown table: a line a size, a column a cluster, in each one
    cluster / all SMs, and how many times two trips to a peer the first is."""
    rows = {tuple(row["case"].split("/")): row for row in record["rows"]}
    sizes, clusters = (list(dict.fromkeys(case[i] for case in rows)) for i in (0, 1))
    sizes.sort(key=int)
    out = "| bytes | " + " | ".join(f"{c} blocks" for c in clusters) + " |\n"
    out += "|---" * (1 + len(clusters)) + "|\n"
    for size in sizes:
        cells = []
        for cluster in clusters:
            one, full = (rows.get((size, cluster, how)) for how in ("one", "full"))
            text = f"{_cell(one)} / {_cell(full)}"
            if one is not None and one["status"] == "ok" and one["clock_mhz"]:
                trips = one["ours"] * one["clock_mhz"] * 1e-3 / (2 * trip_cycles)
                text += f" (× {trips:.1f})"
            cells.append(text)
        out += f"| {size} | " + " | ".join(cells) + " |\n"
    return out


def exchange_table(record: dict[str, Any]) -> str:
    """Rows `elements/idle` and `elements/busy` as a Markdown table: microseconds and protocol."""
    rows = {tuple(row["case"].split("/")): row for row in record["rows"]}
    out = "| elements of f32 | memory idle | beside a stream |\n|---|---|---|\n"
    for length in dict.fromkeys(case[0] for case in rows):
        cells = []
        for how in ("idle", "busy"):
            row = rows.get((length, how))
            by = f" ({row['config']['protocol']})" if row and row["status"] == "ok" else ""
            cells.append(_cell(row) + by)
        out += f"| {length} | " + " | ".join(cells) + " |\n"
    return out


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return number(row["ours"]) if row["status"] == "ok" else row["status"]


def _lines(record: dict[str, Any]) -> list[str]:
    """The rows of a file; of many the mean, the worst and how many were not measured."""
    rows = record["rows"]
    if len(rows) <= MOST_ROWS:
        return [_line(record, row) for row in rows]
    good = [row for row in rows if row["status"] == "ok" and row["ratio"] is not None]
    judged = sorted(good, key=lambda row: -row["ratio"])
    if not judged:
        groups: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row["status"] == "ok":
                groups.setdefault(row["case"].partition("/")[0], []).append(row)
        slowest = [max(group, key=lambda r: r["ours"]) for group in groups.values()]
        notes = [
            f" (slowest of {len(group)})" if len(group) > 1 else "" for group in groups.values()
        ]
        failed = [_line(record, row) for row in rows if row["status"] != "ok"]
        return [*(_line(record, *pair) for pair in zip(slowest, notes, strict=True)), *failed]
    mean, missing = record["geomean_ratio"]["fastest"], sum(row["status"] != "ok" for row in rows)
    name = f"{record['suite']}, geometric mean of {len(judged)}, worst {judged[-1]['ratio']:.2f}"
    name += f"; {missing} not judged" if missing else ""
    return [f"| {name} | {record['machine']} | | | {mean:.2f} | |\n"]


def _line(record: dict[str, Any], row: dict[str, Any], note: str = "") -> str:
    """One row of one file."""
    name = f"{record['suite']} / {row['case']}{note}"
    if row["status"] != "ok":
        return f"| {name} | {record['machine']} | {row['status']} | | | |\n"
    rival = f"{row['fastest']} {number(row['rivals'][row['fastest']])}" if row["fastest"] else ""
    ratio = f"{row['ratio']:.2f}" if row["ratio"] is not None else ""
    limit = f"{100 * row['of_limit']:.0f}%" if row["of_limit"] is not None else ""
    ours = f"{number(row['ours'])} {row['unit']}"
    return f"| {name} | {record['machine']} | {ours} | {rival} | {ratio} | {limit} |\n"


def number(value: float) -> str:
    """Three digits that count, without an exponent."""
    digits = 0
    while digits < 6 and abs(value) * 10**digits < 100:
        digits += 1
    return f"{value:.{digits}f}"

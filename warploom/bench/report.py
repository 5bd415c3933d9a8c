"""Result files as a table for people. Quotes what the files say and adds nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warploom.bench.record import read

HEADER = (
    "| suite / row | machine | ours | best rival | ratio | of the limit |\n"
    "|---|---|---|---|---|---|\n"
)
EMPTY = "No result file yet: nothing is claimed.\n"


def figures_table(files: Sequence[Path]) -> str:
    """A Markdown table, one line a row, lost ones included. A ratio above 1: ours is better."""
    lines = [_line(record, row) for record in map(read, files) for row in record["rows"]]
    return HEADER + "".join(lines) if lines else EMPTY


def _line(record: dict[str, Any], row: dict[str, Any]) -> str:
    """One row of one file."""
    name = f"{record['suite']} / {row['case']}"
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

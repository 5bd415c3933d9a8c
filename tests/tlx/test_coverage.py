"""The checklist of behaviours of TLX on Hopper: each has a test here, or a reason. docs/tlx.md is
made from this table and that of names.

`pytest tests/tlx --update-golden` writes the page.
"""

import ast
import csv
import re
from functools import cache
from pathlib import Path

import pytest

import warploom as wl
from tests.ops.test_ops import CASES
from warploom.testing.golden import difference

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
PAGE = ROOT / "docs" / "tlx.md"
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"
# The parts of the checklist; the last is of hardware that this is not for.
SECTIONS = {
    "4.1": "Barriers",
    "4.2": "Roles",
    "4.3": "Shared memory",
    "4.4": "The copy engine",
    "4.5": "Products",
    "4.6": "Clusters",
    "4.7": "Threads, clocks, bulk copies, fences",
    "4.8": "Layouts",
    "4.9": "Storage aliases",
    "4.10": "AMD",
}


def table(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


ROWS, NAMES = table("coverage.csv"), table("names.csv")


@cache
def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['section']} {row['behaviour']}")
def test_a_behaviour_has_a_test_or_a_reason(row: dict[str, str]) -> None:
    assert row["section"] in SECTIONS
    assert len(row["behaviour"]) > 3
    assert bool(row["test"]) != bool(row["reason"])
    if not row["test"]:
        assert len(row["reason"]) > 20
        return
    match = re.fullmatch(r"(tests/\S+\.py)::(\w+)(?:\[sim-(.+)\])?", row["test"])
    assert match, row["test"]
    path, function, case = match.groups()
    assert (ROOT / path).exists(), f"no file {path}"
    assert function in functions(path), f"no test {function} in {path}"
    if case:
        assert path == "tests/ops/test_ops.py"
        assert case in {str(c) for c in CASES}, f"no case {case}"


def test_every_section_has_a_line() -> None:
    assert {row["section"] for row in ROWS} == set(SECTIONS)


def test_behaviours_are_listed_once() -> None:
    said = [(row["section"], row["behaviour"]) for row in ROWS]
    assert len(said) == len(set(said))


@pytest.mark.parametrize("row", NAMES, ids=lambda row: row["theirs"])
def test_what_stands_for_a_name_exists(row: dict[str, str]) -> None:
    for name in re.findall(r"\bwl\.(\w+)", row["ours"] + row["note"]):
        assert name in wl.__all__, name


def page() -> str:
    """Names by group, then behaviours by section."""
    lines: list[str] = ["## Names", ""]
    for group in dict.fromkeys(row["group"] for row in NAMES):
        lines += [f"### {group}", "", "| TLX | here | |", "|---|---|---|"]
        for row in NAMES:
            if row["group"] == group:
                theirs = ", ".join(f"`{n}`" for n in re.split(r", (?![^(]*\))", row["theirs"]))
                lines.append(f"| {theirs} | {row['ours'] or 'not here'} | {row['note']} |")
        lines.append("")
    proven = sum(bool(row["test"]) for row in ROWS)
    lines += [
        "## Behaviours",
        "",
        f"{proven} of {len(ROWS)} have a test; the others say why not.",
        "",
    ]
    for number, title in SECTIONS.items():
        lines += [f"### {title}", ""]
        for row in ROWS:
            if row["section"] == number:
                proof = f"`{row['test']}`" if row["test"] else row["reason"]
                lines.append(f"- {row['behaviour']}: {proof}")
        lines.append("")
    return "\n".join(lines)


def test_the_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    old = PAGE.read_text(encoding="utf-8")
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = before + BEGIN + page() + "\n" + END + after
    if request.config.getoption("--update-golden"):
        PAGE.write_text(made, encoding="utf-8", newline="\n")
    else:
        assert old == made, difference(old, made, "tlx.md")

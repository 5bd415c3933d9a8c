"""Figures of speed stand in result files, or nowhere: the README's table and every page."""

import json
import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from warploom.bench.machine import facts
from warploom.bench.record import read
from warploom.bench.report import (
    EMPTY,
    collectives_table,
    exchange_table,
    figures_table,
    steps_table,
)

FOUND = (ROOT / "benchmarks" / "results").glob("*/*.json")
RESULTS = sorted(path for path in FOUND if path.name != "selftest.json")
# Figures of the design are targets and history (base/hw holds them); a note quotes its file.
PAGES = [ROOT / "README.md", ROOT / "docs" / "start.md", ROOT / "docs" / "numerics.md"]
FIGURE = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)\s?(ms|µs|us|TB/s|GB/s|TFLOP/s|tokens/s)\b")


def numbers_of_results() -> set[float]:
    found: set[float] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, (int, float)):
            found.add(float(value))

    for path in RESULTS:
        walk(json.loads(path.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_quoted_figure_is_in_a_result_file(page: Path) -> None:
    known = numbers_of_results()
    for text, unit in FIGURE.findall(page.read_text(encoding="utf-8")):
        digits = len(text.partition(".")[2])
        value = float(text.replace(",", ""))
        near = any(round(number, digits) == value for number in known)
        assert near, f"{page.name} says {text} {unit}, and no result file does"


def between(page: Path, word: str, made: str, update: bool) -> None:
    """Compare what stands between two marks of a page with what follows from the results."""
    text = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {word}: begin -->\n", f"<!-- {word}: end -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    assert rest and after, f"{page.name} has no place for the {word}"
    whole = before + begin + made + end + after
    if update:
        page.write_text(whole, encoding="utf-8")
    else:
        assert text == whole, "run: pytest tests/docs/test_figures.py --update-golden"


def test_the_readmes_table_is_made_from_the_result_files(
    request: pytest.FixtureRequest,
) -> None:
    update = bool(request.config.getoption("--update-golden"))
    between(ROOT / "README.md", "figures", figures_table(RESULTS), update)


@pytest.mark.parametrize("suite", ["collectives", "exchange"])
def test_the_costs_in_clusters_are_made_from_their_result_files(
    request: pytest.FixtureRequest, suite: str
) -> None:
    update = bool(request.config.getoption("--update-golden"))
    files = [path for path in RESULTS if path.parent.name == "h200" and path.stem == suite]
    trip = facts("h200")["dsmem_load"]["value"]
    table = {"collectives": lambda r: collectives_table(r, trip), "exchange": exchange_table}[suite]
    made = "".join(table(read(path)) for path in files) or EMPTY
    between(ROOT / "docs" / "clusters.md", suite, made, update)


def test_a_table_of_costs() -> None:
    row = {"case": "256/2/one", "ours": 205.0, "status": "ok", "clock_mhz": 2000.0}
    full = row | {"case": "256/2/full", "ours": 300.0, "clock_mhz": None}
    wrong = row | {"case": "8192/16/one", "status": "wrong"}
    assert collectives_table({"rows": [row, full, wrong]}, 205.0).splitlines()[2:] == [
        "| 256 | 205 / 300 (× 1.0) |  /  |",
        "| 8192 |  /  | wrong /  |",
    ]
    idle = row | {"case": "256/idle", "ours": 0.95, "config": {"protocol": "flagged"}}
    assert exchange_table({"rows": [idle]}).splitlines()[2] == "| 256 | 0.950 (flagged) |  |"


def test_the_table_of_the_steps_is_made_from_their_result_file(
    request: pytest.FixtureRequest,
) -> None:
    update = bool(request.config.getoption("--update-golden"))
    files = [path for path in RESULTS if path.stem == "gemm-ladder"]
    made = "".join(steps_table(read(path)) for path in files) or EMPTY
    between(ROOT / "examples" / "gemm" / "README.md", "steps", made, update)

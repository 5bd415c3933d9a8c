"""Figures of speed stand in result files, or nowhere: the README's table and every page."""

import json
import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from warploom.bench.report import figures_table

RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*/*.json"))
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


def test_the_readmes_table_is_made_from_the_result_files(
    request: pytest.FixtureRequest,
) -> None:
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    begin, end = "<!-- figures: begin -->\n", "<!-- figures: end -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    assert rest and after, "README.md has no place for the figures"
    made = before + begin + figures_table(RESULTS) + end + after
    if request.config.getoption("--update-golden"):
        readme.write_text(made, encoding="utf-8")
    else:
        assert text == made, "run: pytest tests/docs/test_figures.py --update-golden"

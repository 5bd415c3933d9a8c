"""Every code block of README.md and of the pages to read on runs and prints what is shown."""

import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Reader, blocks_of, matches

PATTERNS = sorted((ROOT / "docs" / "patterns").glob("*.md"))
OF_TORCH = [page for page in PATTERNS if "import torch" in page.read_text(encoding="utf-8")]
PAGES = [
    *(ROOT / "README.md", ROOT / "docs" / "start.md", ROOT / "docs" / "clusters.md"),
    *(pytest.param(p, marks=pytest.mark.torch if p in OF_TORCH else ()) for p in PATTERNS),
]
README_ORDER = [
    *("Try it", "A kernel", "A mistake", "What it runs on", "How fast", "The picture"),
    *("Levels", "What it is not", "Where next", "Licence"),
]


def test_pages_about_torch_run_where_torch_is() -> None:
    assert [page.name for page in OF_TORCH] == ["torch.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_runs(page: Path, tmp_path: Path) -> None:
    reader = Reader(page, tmp_path)
    blocks = blocks_of(page)
    assert any(block.kind in ("python", "console") for block in blocks)
    for block in blocks:
        reader.read(block)


def test_the_readme_is_short_and_in_order() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert re.findall(r"^## (.*)$", text, re.M) == README_ORDER


def test_the_first_commands_are_the_agreed_ones() -> None:
    first = blocks_of(ROOT / "README.md")[0].text.splitlines()
    install = "python3 -m venv .venv && .venv/bin/pip install -e"
    assert first == [
        f"{install} '.[engine]' && .venv/bin/warploom generate smollm2-135m "
        '"What is the capital of France?"',
        f"{install} '.[dev]' && .venv/bin/python -m pytest -n auto",
    ]


def test_the_levels_of_the_readme_are_lines_of_the_examples() -> None:
    blocks = [block for block in blocks_of(ROOT / "README.md") if block.kind == "py"]
    steps: dict[str, set[str]] = {}
    for path in (ROOT / "examples" / "gemm").glob("v*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        steps[path.stem] = {line.strip() for line in lines}
    assert blocks
    shown: set[str] = set()
    for line in blocks[0].text.splitlines():
        if named := re.fullmatch(r"# .* \((v\d_\w+)\)", line):
            shown = steps[named[1]]
        else:
            assert line.strip() in shown, line


def test_the_contributors_page_is_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= 100


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "AGENTS.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    ("expected", "shown", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nd\n", True),
        ("took … s\n", "took 1.25 s\n", True),
        ("took … s\n", "took 1\n2 s\n", False),
        ("", "\n", True),
        ("", "noise\n", False),
    ],
)
def test_outputs_are_compared_line_by_line(expected: str, shown: str, same: bool) -> None:
    assert matches(expected, shown) is same

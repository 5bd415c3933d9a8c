"""Words that promise work instead of doing it, names that say nothing, paths of one machine."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".md", ".toml", ".sh", ".json", ".txt", ""}
HERE = Path(__file__).resolve()

# Spelled in parts, so that this file does not find itself.
FORBIDDEN = {
    r"\bTO" + r"DO\b": "finish it or leave it out",
    r"\bFIX" + r"ME\b": "mend it",
    r"\bXX" + r"X\b": "say what is meant",
    r"raise NotImplemented" + r"Error\b": "a stub is no feature",
    r"/work/(main|shared)" + r"\b": "a path of one machine",
    r"\.\./shared" + r"\b": "a path outside the repository",
}
NAMES = {"utils", "helpers", "common", "misc"}


def files() -> list[Path]:
    """Everything that is versioned or would be."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    return [p for p in paths if p.is_file() and p.suffix in SUFFIXES and p != HERE]


@pytest.mark.parametrize("pattern", FORBIDDEN, ids=lambda pattern: re.sub(r"\W+", "", pattern))
def test_forbidden_words(pattern: str) -> None:
    found: list[str] = []
    for path in files():
        lines = path.read_text(encoding="utf-8").splitlines()
        found += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, line in enumerate(lines, 1)
            if re.search(pattern, line)
        ]
    assert not found, f"{FORBIDDEN[pattern]}: {found}"


def test_a_name_says_what_a_module_is_for() -> None:
    vague = [str(p.relative_to(ROOT)) for p in files() if NAMES & {p.stem, p.parent.name}]
    assert not vague, vague


def test_a_skip_says_why() -> None:
    silent: list[str] = []
    for path in (ROOT / "tests").rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"pytest\.skip\(\s*\)|mark\.skip\s*(?!\w|\()|mark\.skip\(\)", line):
                silent.append(f"{path.relative_to(ROOT)}:{number}")
    silent = [place for place in silent if not place.startswith("tests/architecture/")]
    assert not silent, silent

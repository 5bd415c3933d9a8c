"""The golden fixture, seen from outside: a small project of its own, run by pytest in a child."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST_FILE = """
def test_one(golden):
    golden("alpha\\nbeta")

def test_two(golden):
    golden("x", "first")
    golden("y", "second")
"""

# With workers, what each test read travels through its report: worth a slow test of its own.
ALONE_AND_SPREAD = pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["one", "xdist"]
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tests" / "part").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "tests" / "conftest.py").write_text("")
    (tmp_path / "tests" / "part" / "test_texts.py").write_text(TEST_FILE)
    return tmp_path


def run(project: Path, *arguments: str, ci: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CI": ci}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-p", "warploom.testing.plugin", "-q", *arguments]
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def goldens(project: Path) -> dict[str, str]:
    folder = project / "tests" / "golden"
    return {p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*.txt")}


def test_a_missing_golden_fails_and_shows_the_text(project: Path) -> None:
    result = run(project)
    assert result.returncode == 1
    assert "has no golden yet" in result.stdout
    assert "+alpha" in result.stdout
    assert goldens(project) == {}


@ALONE_AND_SPREAD
def test_update_writes_prints_and_then_passes(project: Path, workers: tuple[str, ...]) -> None:
    result = run(project, "--update-golden", *workers)
    assert result.returncode == 0, result.stdout
    assert "golden rewritten" in result.stdout
    assert "+beta" in result.stdout
    assert goldens(project) == {
        "part/test_texts/one.txt": "alpha\nbeta\n",
        "part/test_texts/first.txt": "x\n",
        "part/test_texts/second.txt": "y\n",
    }
    assert run(project, *workers).returncode == 0


def test_only_the_selected_tests_are_rewritten(project: Path) -> None:
    run(project, "--update-golden")
    file = project / "tests" / "part" / "test_texts.py"
    file.write_text(TEST_FILE.replace("alpha", "gamma").replace('"x"', '"z"'))
    result = run(project, "--update-golden", "-k", "test_one")
    assert result.returncode == 0, result.stdout
    assert goldens(project)["part/test_texts/one.txt"] == "gamma\nbeta\n"
    assert goldens(project)["part/test_texts/first.txt"] == "x\n"
    again = run(project)
    assert again.returncode == 1
    assert re.search(r"-x\n.*\+z", again.stdout)


@ALONE_AND_SPREAD
def test_an_unused_golden_fails_the_run(project: Path, workers: tuple[str, ...]) -> None:
    run(project, "--update-golden")
    old = project / "tests" / "golden" / "part" / "test_texts" / "old.txt"
    old.write_text("nobody reads this\n")
    assert run(project, "-k", "test_one", *workers).returncode == 0, "a part proves nothing"
    listed = run(project, "--collect-only", "--update-golden", *workers)
    assert listed.returncode == 0 and old.exists(), "where nothing runs nothing is unused"
    result = run(project, *workers)
    assert result.returncode == 1
    assert "old.txt: unused" in result.stdout
    assert run(project, "--update-golden", *workers).returncode == 0
    assert not old.exists()


@ALONE_AND_SPREAD
def test_a_run_that_stops_early_removes_nothing(project: Path, workers: tuple[str, ...]) -> None:
    run(project, "--update-golden")
    kept = goldens(project)
    (project / "tests" / "part" / "test_first.py").write_text("def test_no():\n    assert 0\n")
    result = run(project, "-x", "--update-golden", *workers)
    assert result.returncode != 0
    assert goldens(project) == kept


def test_update_refuses_in_ci(project: Path) -> None:
    result = run(project, "--update-golden", ci="true")
    assert result.returncode == 4
    assert "refuses under CI=true" in result.stderr
    assert goldens(project) == {}


def test_two_texts_of_one_test_need_names(project: Path) -> None:
    file = project / "tests" / "part" / "test_texts.py"
    file.write_text('def test_one(golden):\n    golden("a")\n    golden("b")\n')
    result = run(project, "--update-golden")
    assert result.returncode == 1
    assert "share the golden" in result.stdout

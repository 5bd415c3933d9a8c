"""Faults planted by hand: `bugs.toml`, `second.toml`, … say where, and which lines a report has to
name. README.md keeps who planted them, and what the first runs found and missed."""

import inspect
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom as wl
from tests.hazards.test_hazards import kernel_of, module
from warploom.base.diagnostics import Report

HERE = Path(__file__).parent
# A list of faults, and the folder of the kernels that they are planted in.
SETS = {"bugs": "kernels", "second": "second", "third": "third", "fourth": "fourth"}
# What the kernels of the fourth set ought to give is written beside them.
WITH_VALUES = sorted((HERE / "fourth").glob("*.py"))
KERNELS = [path for folder in SETS.values() for path in sorted((HERE / folder).glob("*.py"))]


def listed(name: str) -> list[dict[str, Any]]:
    """The faults of one set, each with the file that it is planted in."""
    bugs: list[dict[str, Any]] = tomllib.loads((HERE / f"{name}.toml").read_text())["bug"]
    return [bug | {"path": HERE / SETS[name] / f"{bug['kernel']}.py"} for bug in bugs]


BUGS = [bug for name in SETS for bug in listed(name)]


def parameter(bug: dict[str, Any]) -> object:
    """A fault as a parameter. One with a note that it is missed has to stay so."""
    missed = bug.get("missed")
    marks = [pytest.mark.xfail(strict=True, reason=missed)] if missed else []
    return pytest.param(bug, id=bug["name"], marks=marks)


def planted(bug: dict[str, Any]) -> str:
    """The text of a kernel with a fault in it."""
    text = bug["path"].read_text()
    for change in bug.get("changes", [bug]):
        was, now = change["was"], change["now"]
        # A whole line keeps the end of the line above it.
        assert text.count(was) == 1, (bug["name"], was)
        text = text.replace(was, now)
    return text


def line_of(text: str, piece: str) -> int:
    """The number of the only line with a piece of text."""
    (line,) = (n for n, one in enumerate(text.splitlines(), 1) if piece in one)
    return line


def reports(path: Path, seed: int = 0) -> list[Report]:
    """What a schedule (by default the first) of a file's example shows, or its refusal."""
    try:
        return [f.report for f in kernel_of(path).example_call().check(first_seed=seed)]
    except wl.Error as refused:
        return list(refused.reports)


def told_at(path: Path, bug: dict[str, Any], seed: int = 0) -> tuple[bool, list[Report]]:
    """Whether a report names all lines of a planted fault, and all reports."""
    text = planted(bug)
    path.write_text(text)
    lines = {line_of(text, piece) for piece in bug["lines"]}
    found = reports(path, seed)
    return any(lines <= {s.line for s in r.spans} for r in found), found


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in KERNELS])
def test_right(path: Path):
    found = kernel_of(path).example_call().check(seeds=20)
    assert found.clean, found.text()


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in WITH_VALUES])
def test_values(path: Path):
    """A right kernel gives what `expected(arguments…)`, in NumPy beside it, says."""
    call, expected = kernel_of(path).example_call(), module(path).expected
    names = list(inspect.signature(expected).parameters)
    wanted = expected(*(np.array(a) for a in call.args), **call.kwargs)
    call.run()
    assert wanted
    for name, value in wanted.items():
        got = call.args[names.index(name)]
        np.testing.assert_allclose(got, value, rtol=1e-3, atol=1e-2, err_msg=name)


@pytest.mark.parametrize("bug", [parameter(bug) for bug in BUGS])
def test_found(bug: dict[str, Any], tmp_path: Path):
    told, found = told_at(tmp_path / "planted.py", bug)
    assert told, "\n\n".join(r.render() for r in found) or "nothing was reported"


@pytest.mark.parametrize("bug", [pytest.param(b, id=b["name"]) for b in listed("fourth")])
def test_found_by_other_schedules(bug: dict[str, Any], tmp_path: Path):
    """The verdict is that of the program, not of the schedule that was run."""
    for seed in range(1, 5):
        told, found = told_at(tmp_path / f"planted{seed}.py", bug, seed)
        assert told, (seed, "\n\n".join(r.render() for r in found) or "nothing was reported")

"""What holds for every test of this project: which run by default, and how a case is selected.

Fixtures for kernels (`device`, `golden`) come from Warploom's own plug-in.
"""

import os
import re
from pathlib import Path
from typing import Any

# One BLAS thread a worker: workers inherit this process's environment.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# The IR is verified after each pass, and the user's own cache of kernels stays out of it.
os.environ.setdefault("WARPLOOM_VERIFY", "1")
os.environ.setdefault("WARPLOOM_CACHE", str(Path(__file__).parents[1] / ".pytest_cache/kernels"))

import pytest  # noqa: E402

pytest_plugins = ["warploom.testing.plugin"]

# Left out unless the -m expression names them.
BY_NAME_ONLY = ("gpu", "soak", "torch")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this project's tests."""
    parser.addoption("--case", metavar="C14,C16", help="run the tests of these cases only")


def pytest_configure(config: pytest.Config) -> None:
    """Always name the slowest tests: the run has a budget (two cores, twelve minutes)."""
    if config.option.durations is None:
        config.option.durations = 10


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Apply --case, and leave out what does not run by default."""
    expression = config.option.markexpr or ""
    named = set(re.findall(r"\w+", expression))
    left_out = {name for name in BY_NAME_ONLY if name not in named}
    cases = _cases(config)
    if not expression and not cases:
        left_out.add("slow")
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        fits = not cases or bool(cases & _cases_of(item))
        (kept if fits and not marks & left_out else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def _cases(config: pytest.Config) -> set[str]:
    """The case numbers of --case, in one spelling."""
    words: str = config.getoption("--case") or ""
    wanted = {word.strip().upper() for word in words.split(",") if word.strip()}
    for word in wanted:
        if not re.fullmatch(r"C\d+", word):
            raise pytest.UsageError(f"--case takes numbers such as C14, not {word!r}")
    return wanted


def _cases_of(item: pytest.Item) -> set[str]:
    """The case numbers that a test is marked with."""
    found: set[Any] = set()
    for mark in item.iter_markers("case"):
        found |= {str(argument).upper() for argument in mark.args}
    return found

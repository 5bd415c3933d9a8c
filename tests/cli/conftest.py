"""A folder with kernels in a file, and the command line as a function."""

from pathlib import Path
from typing import Any

import pytest

from warploom.cli import __main__ as entry

SOURCE = """
import numpy as np
import warploom as wl

@wl.kernel
def double(x: wl.Tensor, y: wl.Tensor, N: wl.const = 16):
    start = wl.program_id(0) * N
    wl.store(y[wl.ds(start, N)], wl.load(x[wl.ds(start, N)]) * 2)

@double.example
def small(make):
    return double.launch(2).call(make.arange(20, wl.f32), make.empty(20, wl.f32))

@double.example("unwritten")
def unwritten(make):
    return double.launch(2).call(make.empty(20, wl.f32), make.empty(20, wl.f32))

@wl.kernel
def plain(x: wl.Tensor):
    wl.store(x[wl.ds(0, 4)], wl.zeros((4,), wl.f32))

number = 3
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with kernels, in the current directory."""
    path = tmp_path / "weave.py"
    path.write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARPLOOM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WARPLOOM_DEVICE", "sim")
    return path


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command line; returns code, stdout, stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        code = entry.main(words)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run

"""`run` beyond a plain launch: stops before lines, checked seeds, JSON beside printed text."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

PRINTS = """
import warploom as wl

@wl.kernel
def tells(x: wl.Tensor):
    print("in the kernel")
    wl.store(x[wl.ds(0, 4)], wl.zeros((4,), wl.f32))

@tells.example
def small(make):
    return tells.launch(1).call(make.empty(4, wl.f32))
"""


@pytest.mark.parametrize("words", [("run",), ("run", "--checked"), ("trace", "--device", "sim")])
def test_what_a_kernel_prints_stays_out_of_the_json(
    file: Path, say: Any, words: tuple[str, ...]
) -> None:
    (file.parent / "tells.py").write_text(PRINTS)
    code, out, err = say(words[0], "tells.py:tells", *words[1:], "--json", "-")
    assert code == 0
    assert json.loads(out)["kernel"] == "tells"
    assert "in the kernel" in err


@pytest.mark.parametrize("seeds", [("3",), ("0", "--checked")])
def test_seeds_are_those_of_checked_runs(
    file: Path, say: Any, golden: Any, seeds: tuple[str, ...]
) -> None:
    code, out, err = say("run", "weave.py:double", "--seeds", *seeds)
    assert (code, out) == (2, "")
    golden(err, f"seeds: {seeds[0]}")


STOPS = """
import warploom as wl

@wl.function
def twice(t):
    # the same again
    return t + t

@wl.function
def unused(t):
    return t

@wl.kernel
def run(x: wl.Tensor, y: wl.Tensor, N: wl.const = 8):
    t = wl.load(x[
        wl.ds(0, N)])
    if N == 7:
        t = unused(t)
    wl.store(y[wl.ds(0, N)], twice(t))

@run.example
def small(make):
    return run.launch(1).call(make.arange(8, wl.f32), make.empty(8, wl.f32))
"""


@pytest.fixture
def stops(file: Path, monkeypatch: pytest.MonkeyPatch, say: Any) -> Any:
    """Run the kernel with stops and commands; returns code, stdout, stderr."""
    (file.parent / "stops.py").write_text(STOPS)

    def run(commands: str, *words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(commands))
        breaks = [part for word in words for part in ("--break", word)]
        return say("run", "stops.py:run", *breaks)

    return run


def test_break_stops_before_lines_of_the_kernel_and_of_its_functions(stops: Any) -> None:
    code, out, err = stops("p t\nc\np t\nnext\nc\n", "stops.py:19", "./stops.py:7")
    assert (code, err) == (0, "")
    said = out.split("(warploom) ")
    assert said[0] == "stops.py:19, block (0, 0, 0): wl.store(y[wl.ds(0, N)], twice(t))\n"
    assert said[1] == "t = [0. 1. 2. 3. 4. 5. 6. 7.] (f32 (8,))\n"
    assert said[2] == "stops.py:7, block (0, 0, 0): return t + t\n"
    assert said[3] == said[1]
    assert said[5].endswith("y: f32 8, from 0 to 14, mean 7\n")


def test_break_in_the_middle_of_a_statement_stops_before_it(stops: Any) -> None:
    assert stops("c\n", "stops.py:16")[1].startswith("stops.py:15, block (0, 0, 0): t = wl.load(")


@pytest.mark.parametrize("command", ["quit", "c"])
def test_break_takes_part_in_checked_runs(stops: Any, say: Any, command: str) -> None:
    stops("")
    sys.stdin = io.StringIO(f"{command}\n")
    code, out, _ = say("run", "stops.py:run", "--checked", "--break", "stops.py:19")
    assert "stops.py:19, block" in out
    assert code == (130 if command == "quit" else 0)


NOWHERE = {
    "not of this variant": "stops.py:18",
    "no statement": "stops.py:6",
    "no function of the kernel": "stops.py:11",
    "another file": "weave.py:8",
    "no line": "stops.py:x",
    "no file": "12",
}


@pytest.mark.parametrize("name", NOWHERE)
def test_break_where_nothing_can_stop(stops: Any, golden: Any, name: str) -> None:
    code, out, err = stops("", NOWHERE[name])
    assert (code, out) == (2, "")
    golden(err, f"break: {name}")


def test_break_on_a_gpu_is_refused(file: Path, say: Any, golden: Any) -> None:
    code, out, err = say("run", "weave.py:double", "--break", "weave.py:8", "--device", "gpu")
    assert (code, out) == (2, "")
    golden(err)

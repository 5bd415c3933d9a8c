"""The driver: one row whatever happens to a case, and a file that validates."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warploom.base.errors import error
from warploom.bench import driver, machine, measure, record, suites
from warploom.cli.__main__ import main
from warploom.engine import registry

SUITE = """
import os, sys, time
from warploom.bench.record import Row
DEVICE, LIMIT_S = "sim", 5

def cases(device):
    return ["good", "dies", "no memory", "hangs"]

def measure(case, context):
    if case == "dies":
        raise RuntimeError("a kernel went wrong")
    if case == "no memory":
        raise MemoryError("out of memory")
    if case == "hangs":
        time.sleep(60)
    context.limits["read"] = {"value": 4.6, "unit": "TB/s"}
    return Row(case, "s", "lower", 2.0, (1.9, 2.1), {"rival": 3.0}, rounds=context.seed + 3)
"""


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A suite `toy` that only this test knows; its cases run in children all the same."""
    (tmp_path / "toy_suite.py").write_text(SUITE)
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nfrom warploom.bench import suites\nimport toy_suite\n"
        "suites.load = lambda name: toy_suite\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{machine.ROOT}")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__("toy_suite")
    monkeypatch.setattr(suites, "load", lambda name: module)
    yield module
    sys.modules.pop("toy_suite", None)


@pytest.mark.slow
def test_every_case_gives_a_row_and_the_file_is_valid(toy: Any) -> None:
    heard: list[str] = []
    made = driver.run_suite("toy", None, "c" * 40, heard.append, seed=4)
    assert record.problems(made) == []
    rows = {row["case"]: row for row in made["rows"]}
    assert rows["good"]["ratio"] == 1.5
    assert rows["good"]["rounds"] == 7, "the seed reaches the case"
    assert rows["dies"]["status"] == "fault"
    assert "a kernel went wrong" in rows["dies"]["note"]
    assert rows["no memory"]["status"] == "oom"
    assert rows["hangs"]["status"] == "hung"
    assert (made["ok"], made["failed"]) == (1, 3)
    assert made["limits"]["read"]["value"] == 4.6
    assert made["geomean_ratio"] == {"rival": 1.5, "fastest": 1.5}
    assert heard[0] == "toy: good"


@pytest.mark.slow
def test_cases_that_share_a_process_lose_one_row_to_a_fault(toy: Any, tmp_path: Path) -> None:
    """What comes after a fault is measured in a new process; patterns choose cases."""
    source = SUITE.replace(
        'DEVICE, LIMIT_S = "sim", 5', 'DEVICE, LIMIT_S, TOGETHER = "sim", 5, True'
    )
    source = source.replace('["good", "dies",', '["good", "dies", "also good",')
    (tmp_path / "toy_suite.py").write_text(source)
    toy.TOGETHER, toy.cases = True, lambda device: ["good", "dies", "also good", "hangs"]
    made = driver.run_suite("toy", None, "c" * 40, only=["*good", "dies"])
    assert [row["case"] for row in made["rows"]] == ["good", "dies", "also good"]
    assert [row["status"] for row in made["rows"]] == ["ok", "fault", "ok"]


def test_a_rival_slower_than_known_makes_the_row_worthless(monkeypatch: Any) -> None:
    known = {"rivals": {"gemm": {"a": {"cublas": 700.0}}}}
    monkeypatch.setattr(machine, "facts", lambda name: known)
    row = {"case": "a", "status": "ok", "better": "higher", "unit": "TFLOP/s", "note": ""}
    fair = driver.check_rivals({**row, "rivals": {"cublas": 690.0}}, "gemm", "h200")
    assert fair["status"] == "ok"
    slow = driver.check_rivals({**row, "rivals": {"cublas": 600.0}}, "gemm", "h200")
    assert slow["status"] == "rival_slow"
    assert "known to do 700" in slow["note"]
    other = driver.check_rivals({**row, "rivals": {"triton": 1.0}}, "gemm", "h200")
    assert other["status"] == "ok"


def test_the_note_of_a_fault_is_what_was_raised() -> None:
    report = (
        "reading\n\nTraceback (most recent call last):\n  File ...\n    raise\n"
        "engine.ModelError: model[E201]: the file is damaged\n  = file: a\n  help: fetch it again\n"
    )
    assert driver._fault(1, report) == (
        "fault",
        "exit 1: engine.ModelError: model[E201]: the file is damaged",
    )
    assert driver._fault(1, "Traceback (most recent call last):\nMemoryError\n")[0] == "oom"
    assert driver._fault(-11, "") == ("fault", "exit -11: nothing on stderr")
    assert driver._fault(2, "one\ntwo\n") == ("fault", "exit 2: two")


def test_a_damaged_model_is_said_once_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, golden: Any
) -> None:
    monkeypatch.setenv("WARPLOOM_MODELS", str(tmp_path))
    path = registry.place_of(registry.KNOWN["smollm2-135m"])
    path.parent.mkdir()
    path.write_bytes(b"GGUF, in part")
    monkeypatch.setattr(driver, "run_cases", None)
    assert main(["bench", "sim", "--cases", "smollm2*"]) == 2
    text = capsys.readouterr().err.replace(str(tmp_path), "DIR")
    golden(text, "a damaged model")


def test_contestants_take_turns_and_swap_places() -> None:
    order: list[str] = []

    def contestant(name: str) -> Any:
        return lambda: order.append(name) or float(len(order))

    samples = measure.alternate({"a": contestant("a"), "b": contestant("b")}, 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert samples == {"a": [1.0, 4.0, 5.0], "b": [2.0, 3.0, 6.0]}


def test_contestants_rest_before_each_round(monkeypatch: Any) -> None:
    order: list[object] = []

    def contestant(name: str) -> Any:
        return lambda: order.append(name) or 1.0

    monkeypatch.setattr(measure.time, "sleep", order.append)
    measure.alternate({"a": contestant("a"), "b": contestant("b")}, 2, 0.25)
    assert order == [0.25, "a", "b", 0.25, "b", "a"]


def test_summary_is_median_and_measured_percentiles() -> None:
    assert measure.summary([float(n) for n in range(11)]) == (5.0, (1.0, 9.0))
    assert measure.summary([3.0]) == (3.0, (3.0, 3.0))
    assert measure.seconds(lambda: None) >= 0


def test_the_commit_is_that_of_the_checkout_and_of_no_folder_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "warploom"
    package.mkdir()
    (package / "one.py").write_text("1")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    commit, dirty = machine.commit()
    assert commit is not None and len(commit) == 40 and not dirty
    (package / "one.py").write_text("2")
    assert machine.commit() == (commit, True)
    (tmp_path / "copy").mkdir()
    monkeypatch.setattr(machine, "ROOT", tmp_path / "copy")
    assert machine.commit() == (None, False)


def test_the_source_hash_sees_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    file = tmp_path / "sub" / "a.py"
    file.write_text("x = 1\n")
    first = machine.source_hash(tmp_path)
    file.write_text("x = 2\n")
    second = machine.source_hash(tmp_path)
    file.rename(tmp_path / "sub" / "b.py")
    assert len({first, second, machine.source_hash(tmp_path)}) == 3


def test_the_command_line_judges_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from warploom.cli import bench

    made = {
        **{"schema": 1, "suite": "sim", "machine": "cpu2", "device": "simulator", "driver": None},
        **{"cpu": "x", "cores": 2, "versions": {}, "commit": None, "dirty": True},
        **{"source": "0" * 64, "command": "", "started": "2026-01-01T00:00:00Z", "seconds": 1},
        **{"seed": 0, "limits": {}, "geomean_ratio": {}, "worst_ratio": {}, "ok": 1, "failed": 0},
    }
    row = record.Row("t", "s", "lower", 2.0, (2.0, 2.0), rounds=1)
    path = tmp_path / "sim.json"
    record.write(path, {**made, "rows": [row.to_json()]})
    monkeypatch.setattr(bench, "BARS", tmp_path / "bars.toml")
    (tmp_path / "bars.toml").write_text("[sim.rows.t]\nmax_ours = 3.0\n")
    assert main(["bench", "--judge", str(path)]) == 0
    (tmp_path / "bars.toml").write_text("[sim.rows.t]\nmax_ours = 1.0\n")
    assert main(["bench", "--judge", str(path)]) == 1
    assert "MISSED sim: t ours <= 1.0 (is 2.0)" in capsys.readouterr().out
    path.write_text("{}")
    assert main(["bench", "--judge", str(path)]) == 2
    assert "is missing" in capsys.readouterr().err


def test_what_would_measure_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden: Any
) -> None:
    assert main(["bench", "sim", "--cases", "nothing*"]) == 2
    golden(capsys.readouterr().err, "no case")
    problem = error("H020", "there is no driver", hint="install one")
    monkeypatch.setattr("warploom.runtime.driver.problem", lambda: problem)
    monkeypatch.setattr(driver, "run_suite", None)
    assert main(["bench", "decode-small", "gemm"]) == 2
    golden(capsys.readouterr().err, "no GPU")


@pytest.mark.parametrize("words", [[], ["weaving"], ["sim", "--judge", "x.json"]])
def test_wrong_usage_of_bench_is_2(words: list[str]) -> None:
    assert main(["bench", *words]) == 2


def test_a_row_in_words() -> None:
    row = SimpleNamespace(to_json=record.Row("a", "ms", "lower", 1.5, rivals={"r": 3.0}).to_json)
    shown = {**row.to_json(), "ratio": 2.0, "of_limit": 0.5}
    assert driver.describe_row(shown) == "1.5 ms, r 3, ratio 2.000, 50.0% of the limit"

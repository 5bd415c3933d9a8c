"""What `warploom hw` measures and shows: by numbers that are given, and on a GPU by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warploom.base.errors import LaunchError
from warploom.bench import limits, machine
from warploom.bench.limits import Limit
from warploom.cli import __main__ as entry
from warploom.cli import hw
from warploom.runtime import driver

FOUND = [
    Limit("read", 4.6512, "TB/s", "plain loads of 1 GiB, best of 20 rounds"),
    Limit("matrix_bf16", 781.25, "TFLOP/s", "matmul 4096 x 4096 x 4096 at 1755 MHz"),
    Limit("matrix_fp8", None, "TFLOP/s", "not measured: `a` is f8e4m3, and matmul takes f16, bf16"),
]


@pytest.fixture
def h200(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU whose limits are given."""
    facts = driver.DeviceFacts("NVIDIA H200", (9, 0), 132, 1 << 37, 232448)
    monkeypatch.setattr(driver, "problem", lambda: None)
    monkeypatch.setattr(driver, "facts", lambda device: facts)
    monkeypatch.setattr(limits, "measure", lambda device, tell: FOUND)


def test_the_table(h200: None, capsys: pytest.CaptureFixture[str], golden: Any) -> None:
    assert entry.main(["hw"]) == 0
    golden(capsys.readouterr().out)


def test_json(h200: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["hw", "--json", "-", "--device", "gpu:0"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["machine"] == "h200" and data["limits"]["read"]["value"] == 4.6512
    assert data["written"]["read"]["value"] == 4.69
    assert data["limits"]["matrix_fp8"]["value"] is None


def test_a_gpu_that_nobody_has_written_about(h200: None, monkeypatch: Any, capsys: Any) -> None:
    other = driver.DeviceFacts("NVIDIA H100 PCIe", (9, 0), 114, 1 << 36, 232448)
    monkeypatch.setattr(driver, "facts", lambda device: other)
    assert entry.main(["hw"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("h100-pcie: NVIDIA H100 PCIe, 114 multiprocessors\n")
    assert "%" not in out and "written down:" not in out


@pytest.mark.parametrize("words", [("--device", "sim"), ("--device", "tpu")])
def test_what_is_no_gpu(words: tuple[str, ...], capsys: Any, golden: Any) -> None:
    assert entry.main(["hw", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    golden(shown.err, words[-1])


def test_no_gpu_is_exit_2(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from warploom.base.errors import error

    monkeypatch.setattr(driver, "problem", lambda: error("H020", "there is no NVIDIA driver"))
    assert entry.main(["hw"]) == 2
    assert "error[H020]: there is no NVIDIA driver" in capsys.readouterr().err


def test_what_is_written_of_each_limit_is_a_number() -> None:
    known = machine.facts("h200")
    for name in ("read", *limits.MATRIX):
        found = limits.written(name, known)
        assert found["value"] > 0 and found["unit"] in ("TB/s", "TFLOP/s")
    assert limits.written("cluster_barrier", known) == {}  # a range
    assert limits.written("read", {}) == {}


def test_what_the_library_refuses_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        from warploom.base.errors import error

        raise error("T202", "matmul takes f16, bf16")

    monkeypatch.setattr(limits, "_rate", refuse)
    found = limits.matrix("matrix_fp8", "f8e4m3", 0)
    assert (found.value, found.how) == (None, "not measured: matmul takes f16, bf16")


def test_the_fastest_shape_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {shape: 1e14 * (n + 1) for n, shape in enumerate(limits.SHAPES)}
    monkeypatch.setattr(limits, "_rate", lambda shape, dtype, device: (rates[shape], 1700))
    found = limits.matrix("matrix_bf16", "bf16", 0)
    assert found.value == 200.0
    assert found.how == "matmul 8192 x 8192 x 4096 at 1700 MHz, median of 15 rounds"


def test_measured_limits_count_before_those_written_down(
    h200: None, monkeypatch: Any, capsys: Any, tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    assert entry.main(["hw", "--json", str(path)]) == 0
    monkeypatch.setenv("WARPLOOM_HW", str(path))
    assert machine.facts("h200")["read"]["value"] == 4.6512
    assert machine.facts("h200")["matrix_fp8"]["value"] == 1979  # not measured there
    assert machine.facts("h200")["rivals"]
    assert "read" not in machine.facts("cpu2")
    capsys.readouterr()
    assert entry.main(["hw"]) == 0
    assert "4.65" in capsys.readouterr().out.splitlines()[2]


@pytest.mark.parametrize("text", [None, "no json", "[]", "{}", '{"limits": {"read": 4}}'])
def test_a_file_that_holds_no_limits(
    h200: None, monkeypatch: Any, capsys: Any, tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "mine.json"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("WARPLOOM_HW", str(path))
    assert entry.main(["hw"]) == 2
    assert "error[H021]: WARPLOOM_HW=" in capsys.readouterr().err


@pytest.mark.gpu
def test_a_gpu_is_measured() -> None:
    """Others may use the GPU at the same time, which makes everything slower and nothing faster: a
    wrong unit or count of bytes is off by more than the 50 that is allowed for that."""
    found = {one.name: one for one in limits.measure(0)}
    known = machine.facts(machine.name())
    for name in ("read", "matrix_bf16"):
        value = found[name].value
        assert value is not None
        if most := limits.written(name, known).get("value"):
            assert most / 50 < value < 1.05 * most


@pytest.mark.gpu
def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(LaunchError, match="there is no GPU 99"):
        limits.measure(99)


def test_the_text_of_a_limit_without_a_value() -> None:
    one = {"value": None, "unit": "TB/s", "how": "not measured: so"}
    data = {"machine": "m", "device": "d", "multiprocessors": 1}
    lines = hw.text({**data, "limits": {"read": one}, "written": {"read": {}}})
    assert lines[-1].split() == ["read", "-", "TB/s", "-", "not", "measured:", "so"]

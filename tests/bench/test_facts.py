"""What is written down about machines can be read, and its cases are named as suites name them."""

import json
from pathlib import Path

import pytest

from warploom.bench import machine

FILES = sorted(machine.FACTS.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_fact_file_names_itself_and_holds_positive_figures(path: Path) -> None:
    facts = json.loads(path.read_text())
    assert facts["machine"] == path.stem
    assert facts["device"]
    for suite in facts["rivals"].values():
        for figures in suite.values():
            assert all(value > 0 for value in figures.values())


def test_both_machines_are_there() -> None:
    assert {path.stem for path in FILES} >= {"h200", "cpu2"}


def test_a_machine_is_known_by_its_gpu_and_else_by_its_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "gpu", lambda: ("NVIDIA H200", "580"))
    assert machine.name() == "h200"
    monkeypatch.setattr(machine, "gpu", lambda: ("NVIDIA GeForce RTX 4090", "580"))
    assert machine.name() == "geforce-rtx-4090"
    monkeypatch.setattr(machine, "gpu", lambda: None)
    monkeypatch.setattr(machine, "cores", lambda: 2)
    assert machine.name() == "cpu2"
    assert machine.facts("cpu2")["machine"] == "cpu2"
    assert machine.facts("abacus") == {}

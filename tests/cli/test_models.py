"""`warploom models`: what each action prints, and its exit code."""

import json
from pathlib import Path

import pytest

from tests.engine import tiny
from warploom.cli import models
from warploom.cli.__main__ import main
from warploom.engine import registry
from warploom.engine.registry import KNOWN

SMOLLM2 = KNOWN["smollm2-135m"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WARPLOOM_MODELS", str(tmp_path / "models"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pretend_pulled() -> Path:
    path = registry.place_of(SMOLLM2)
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(SMOLLM2.bytes)  # a hole: takes no space
    return path


def test_list(capsys, golden) -> None:
    assert main(["models", "list"]) == 0
    before = capsys.readouterr().out
    pretend_pulled()
    assert main(["models", "list"]) == 0
    golden(before + capsys.readouterr().out)
    assert main(["models", "list", "--json", "-"]) == 0
    row = json.loads(capsys.readouterr().out)["models"][0]
    assert (row["name"], row["pulled"], row["bytes"]) == ("smollm2-135m", True, 98_362_432)


def test_pull_prints_the_path_and_fetches_once(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is here is fetched again where its contents are others than they should be."""
    monkeypatch.setattr(models, "pull", lambda model, progress: pretend_pulled())
    assert main(["models", "pull", "smollm2-135m"]) == 0
    assert capsys.readouterr().out.strip() == str(registry.place_of(SMOLLM2))
    fetched: list[str] = []
    monkeypatch.setattr(models, "pull", lambda model, progress: fetched.append(model.name))
    assert main(["models", "pull", "smollm2-135m"]) == 0 and fetched == ["smollm2-135m"]
    monkeypatch.setattr(registry, "is_whole", lambda model: True)
    assert main(["models", "pull", "smollm2-135m"]) == 0
    assert "already" in capsys.readouterr().err and len(fetched) == 1


def test_path_and_remove(folder: Path, capsys, golden) -> None:
    assert main(["models", "path", "smollm2-135m"]) == 2
    golden(capsys.readouterr().err.replace(str(folder), "DIR"))
    path = pretend_pulled()
    assert main(["models", "path", "smollm2-135m"]) == 0
    assert capsys.readouterr().out.strip() == str(path)
    assert main(["models", "remove", "smollm2-135m"]) == 0
    assert not path.exists()
    assert main(["models", "remove", "smollm2-135m"]) == 1


def test_show_a_file_and_a_name(folder: Path, capsys, golden) -> None:
    tiny.write_gguf(folder / "tiny.gguf", tiny.Tiny())
    assert main(["models", "show", "tiny.gguf"]) == 0
    golden(capsys.readouterr().out, "show a file")
    assert main(["models", "show", "tiny.gguf", "--json", "-"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["layers"], facts["stored_as"]) == (2, {"F32": 20})
    assert main(["models", "show", "smollm2-135m"]) == 0
    golden(capsys.readouterr().out.replace(str(folder), "DIR"), "show a name")


@pytest.mark.parametrize(
    "words", [["show", "nothing.gguf"], ["show", "smol"], ["pull", "smol"], ["remove", "smol"]]
)
def test_what_is_unknown_is_exit_2(words: list[str], capsys) -> None:
    assert main(["models", *words]) == 2
    assert "error[E10" in capsys.readouterr().err


def test_no_action_is_exit_2(capsys) -> None:
    assert main(["models"]) == 2

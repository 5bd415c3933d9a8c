"""The disk cache under stress (C38): races, damage, folders that cannot be written."""

import errno
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from warploom.runtime import cache
from warploom.runtime.cache import IMAGE, SOURCE, DiskCache

KEY = "ab" + "0" * 62
FILES = {"kernel.cubin": bytes(range(256)) * 4, "entry.json": b'{"a": 1}'}

pytestmark = pytest.mark.case("C38")


@pytest.fixture(autouse=True)
def _loud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPLOOM_QUIET", raising=False)


def test_what_is_stored_is_loaded(tmp_path: Path) -> None:
    store = DiskCache(tmp_path)
    assert store.load(SOURCE, KEY) is None
    assert store.store(SOURCE, KEY, FILES)
    assert store.load(SOURCE, KEY) == FILES
    assert DiskCache(tmp_path).load(SOURCE, KEY) == FILES
    assert store.load(IMAGE, KEY) is None
    assert [(e.kind, e.key) for e in store.entries()] == [(SOURCE, KEY)]
    assert store.clear() == 1
    assert store.load(SOURCE, KEY) is None


def test_an_entry_published_while_it_is_looked_for_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store, read = DiskCache(tmp_path), cache._read
    calls: list[Path] = []

    def late(path: Path, key: str) -> dict[str, bytes]:
        calls.append(path)
        if len(calls) == 1:
            DiskCache(tmp_path).store(SOURCE, KEY, FILES)
            raise FileNotFoundError(path)
        return read(path, key)

    monkeypatch.setattr(cache, "_read", late)
    assert store.load(SOURCE, KEY) == FILES
    assert len(calls) == 2 and capsys.readouterr().err == ""


def test_nothing_but_entries_is_left(tmp_path: Path) -> None:
    store = DiskCache(tmp_path)
    for _ in range(3):
        assert store.store(SOURCE, KEY, FILES)
    assert [p.name for p in (tmp_path / "v1").iterdir()] == [SOURCE]


def damaged_files() -> list[tuple[str, str]]:
    names = [*FILES, "SUM"]
    return [(name, how) for name in names for how in ("cut", "flip", "empty", "gone")]


@pytest.mark.parametrize(("name", "how"), damaged_files())
def test_a_damaged_entry_is_noticed_and_built_again(
    tmp_path: Path, name: str, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = DiskCache(tmp_path)
    store.store(SOURCE, KEY, FILES)
    path = next(store.entries()).path / name
    data = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]
        path.write_bytes({"cut": data[:middle], "flip": flipped, "empty": b""}[how])
    assert store.load(SOURCE, KEY) is None
    assert capsys.readouterr().err.count("warning[C006]") == 1
    assert store.store(SOURCE, KEY, FILES)
    assert store.load(SOURCE, KEY) == FILES
    assert capsys.readouterr().err == ""


def test_flipped_bits_of_a_small_entry_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_QUIET", "1")
    store = DiskCache(tmp_path)
    store.store(SOURCE, KEY, {"a": b"abc"})
    path = next(store.entries()).path
    for name in ("a", "SUM"):
        whole = (path / name).read_bytes()
        for bit in range(0, 8 * len(whole), 1 if name == "a" else 7):
            data = bytearray(whole)
            data[bit // 8] ^= 1 << bit % 8
            (path / name).write_bytes(bytes(data))
            # A flip inside SUM may leave its meaning as it was (white space), never another one.
            assert store.load(SOURCE, KEY) in (None, {"a": b"abc"}), f"bit {bit} of {name}"
            shutil.rmtree(path, ignore_errors=True)
            store.store(SOURCE, KEY, {"a": b"abc"})


def test_what_is_said_of_a_damaged_entry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden
) -> None:
    store = DiskCache(tmp_path)
    store.store(SOURCE, KEY, FILES)
    (next(store.entries()).path / "SUM").write_text("{}")
    store.load(SOURCE, KEY)
    golden(capsys.readouterr().err)


def test_an_entry_under_another_key_is_not_taken(tmp_path: Path) -> None:
    store = DiskCache(tmp_path)
    store.store(SOURCE, KEY, FILES)
    other = "ab" + "1" * 62
    path = next(store.entries()).path
    path.rename(path.parent / other)
    assert store.load(SOURCE, other) is None


def _hammer(folder: str, number: int, rounds: int) -> int:
    """Load or store five entries again and again; returns how often something was wrong."""
    store = DiskCache(Path(folder))
    wrong = 0
    for round_ in range(rounds):
        for index in range(5):
            key = f"{round_:02x}{index:062x}"
            files = {"data": f"{round_} {index}".encode() * 100}
            found = store.load(SOURCE, key)
            if found is None:
                wrong += not store.store(SOURCE, key, files)
                found = store.load(SOURCE, key)
            wrong += found != files
    return wrong


def test_sixteen_processes_race_for_the_same_entries(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(16) as pool:
        wrong = pool.starmap(_hammer, [(str(tmp_path), n, 20) for n in range(16)])
    assert wrong == [0] * 16
    store = DiskCache(tmp_path)
    assert len(list(store.entries())) == 100
    assert [p.name for p in (tmp_path / "v1").iterdir()] == [SOURCE]


def child(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd(), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


STORE = """
    from warploom.runtime import cache
    store = cache.DiskCache(cache.folder())
    for n in range(3):
        key = f"{n:064x}"
        print(store.store("source", key, {"data": b"x" * 5000}), store.load("source", key))
"""


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path: Path, golden) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    done = child(STORE, WARPLOOM_CACHE=str(file / "cache"))
    assert done.stdout == "False None\n" * 3
    golden(done.stderr.replace(str(tmp_path), "FOLDER"))


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="no users to change on this system")
def test_a_read_only_folder_serves_hits_and_costs_one_warning() -> None:
    folder = Path(tempfile.mkdtemp(prefix="warploom-test-"))
    DiskCache(folder).store(SOURCE, f"{0:064x}", {"data": b"there"})
    for path in [*folder.rglob("*"), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    # The superuser may write anywhere: become somebody else once everything is imported.
    become = """
        import os
        from warploom.runtime import cache
        if os.geteuid() == 0:
            os.setuid(65534)
    """
    done = child(textwrap.dedent(become) + textwrap.dedent(STORE), WARPLOOM_CACHE=str(folder))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(folder)
    assert done.stdout.splitlines()[0] == "True {'data': b'there'}"
    assert done.stdout.splitlines()[1:] == ["False None"] * 2
    assert done.stderr.count("warning[C005]") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_full_disk_costs_one_warning(tmp_path: Path) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
    done = child(limit + textwrap.dedent(STORE), WARPLOOM_CACHE=str(tmp_path))
    assert done.stdout == "False None\n" * 3
    assert done.stderr.count("warning[C008]") == 1
    assert list(DiskCache(tmp_path).entries()) == []
    assert list((tmp_path / "v1").glob(".*")) == []


def test_no_space_is_told_from_no_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], golden
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "rename", refuse)
    store = DiskCache(tmp_path)
    assert not store.store(SOURCE, KEY, FILES)
    assert not store.store(IMAGE, KEY, FILES)
    golden(capsys.readouterr().err.replace(str(tmp_path), "FOLDER"))


def test_without_a_home_there_is_no_folder_and_no_exception() -> None:
    script = """
        from pathlib import Path
        from warploom.runtime import cache
        def homeless(): raise RuntimeError("no home")
        Path.home = homeless
        print(cache.folder())
        store = cache.DiskCache(cache.folder())
        print(store.load("source", "00"), store.store("source", "00", {}), list(store.entries()))
    """
    done = child(script)
    assert done.stdout == "None\nNone False []\n"
    assert done.stderr.count("warning[C005]") == 1


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"WARPLOOM_CACHE": "/a/b"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/warploom/kernels"),
        ({"HOME": "/h"}, "/h/.cache/warploom/kernels"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="folders of Linux")
def test_the_folder(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WARPLOOM_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache.folder() == Path(expected)


def test_off_keeps_kernels_in_memory_without_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE", "off")
    store = DiskCache(cache.folder())
    assert not store.store(SOURCE, KEY, FILES)
    assert store.load(SOURCE, KEY) is None
    assert not store.is_writable()
    assert capsys.readouterr().err == ""


def test_a_process_killed_while_it_stores_leaves_nothing_that_counts(tmp_path: Path) -> None:
    script = """
        import os
        from pathlib import Path
        from warploom.runtime import cache
        def die(*_): os._exit(9)
        os.rename = die
        cache.DiskCache(cache.folder()).store("source", "0" * 64, {"data": b"x"})
    """
    done = child(script, WARPLOOM_CACHE=str(tmp_path))
    assert done.returncode == 9
    store = DiskCache(tmp_path)
    assert store.load(SOURCE, "0" * 64) is None
    assert list(store.entries()) == []
    assert len(list((tmp_path / "v1").glob(".*"))) == 1
    assert store.store(SOURCE, "0" * 64, FILES)
    store.sweep(0.0)
    assert list((tmp_path / "v1").glob(".*")) == []
    assert store.load(SOURCE, "0" * 64) == FILES

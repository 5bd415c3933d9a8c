"""The entry of the command line: verbs, exit codes, and what goes to which stream."""

import argparse
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warploom.base import errors
from warploom.cli import __main__ as entry
from warploom.cli.verbs import VERBS


def pretend(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    """A verb `weave` with an option, that does `run`."""

    def add_parser(commands: Any) -> None:
        parser = commands.add_parser("weave")
        parser.add_argument("--threads", type=int, default=1)

    module = SimpleNamespace(add_parser=add_parser, run=run)
    verb = SimpleNamespace(name="weave", summary="", load=lambda: module)
    monkeypatch.setattr(entry, "find", lambda word: verb if word == "weave" else None)


def raises(error: BaseException) -> Any:
    def run(options: argparse.Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_code_of_a_verb_is_the_exit_code(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    pretend(monkeypatch, lambda options: code)
    assert entry.main(["weave"]) == code


def test_options_reach_the_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda options: options.threads)
    assert entry.main(["weave", "--threads", "7"]) == 7


def test_wrong_usage_is_2_and_help_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, lambda options: 0)
    assert entry.main(["weave", "--threads", "many"]) == 2
    shown = capsys.readouterr()
    assert "--threads" in shown.err
    assert shown.out == ""
    assert entry.main(["weave", "--help"]) == 0
    assert "--threads" in capsys.readouterr().out


def test_an_interruption_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, raises(KeyboardInterrupt()))
    assert entry.main(["weave"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
    ("kind", "code"),
    [(errors.ModelError, 2), (errors.CompileError, 2), (errors.LaunchError, 2)]
    + [(errors.CheckError, 1)],
)
def test_an_error_is_its_report_and_no_traceback(
    kind: type[errors.Error],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = kind()
    monkeypatch.setattr(kind, "__str__", lambda self: "error[E001]: no such model")
    pretend(monkeypatch, raises(error))
    assert entry.main(["weave"]) == code
    shown = capsys.readouterr()
    assert shown.err == "error[E001]: no such model\n"
    assert shown.out == ""


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, raises(ZeroDivisionError("ours")))
    with pytest.raises(ZeroDivisionError):
        entry.main(["weave"])


def test_a_wrong_word_names_the_nearest_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["genrate", "smollm2-135m"]) == 2
    shown = capsys.readouterr().err
    assert "there is no verb `genrate`; did you mean `generate`?" in shown
    assert all(verb.name in shown for verb in VERBS)


def test_without_a_verb_the_help_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "exit codes" in shown.err


def test_a_reader_that_leaves_is_no_traceback() -> None:
    script = (
        "import sys\nfrom types import SimpleNamespace as N\n"
        "from warploom.cli import __main__ as entry\n"
        "def run(options):\n    [print('x' * 100) for _ in range(100000)]\n    return 0\n"
        "verb = N(load=lambda: N(add_parser=lambda c: c.add_parser('weave'), run=run))\n"
        "entry.find = lambda word: verb\nsys.exit(entry.main(['weave']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline().startswith("xxx")
        child.stdout.close()
        assert child.wait(timeout=60) == 141
        assert child.stderr.read() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_stdout_is_no_traceback() -> None:
    script = (
        "import sys\nfrom types import SimpleNamespace as N\n"
        "from warploom.cli import __main__ as entry\n"
        "def run(options):\n    print('x' * 100)\n    return 0\n"
        "module = N(add_parser=lambda c: c.add_parser('weave'), run=run)\n"
        "verb = N(name='weave', load=lambda: module)\n"
        "entry.find = lambda word: verb\nsys.exit(entry.main(['weave']))\n"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr == "warploom weave: [Errno 28] No space left on device\n"

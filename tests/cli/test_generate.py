"""`warploom generate` over a scripted decoder: streams, exit codes, JSON, Ctrl-C."""

import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine import tiny
from tests.engine.fake import Script
from warploom.cli import generate
from warploom.cli.__main__ import main
from warploom.engine.checkpoint import open_checkpoint
from warploom.engine.model import Model
from warploom.engine.place import Place


class Interrupted(Script):
    """Ctrl-C after three tokens."""

    def advance(self, token: int) -> None:
        super().advance(token)
        if len(self.advanced) == 3:
            raise KeyboardInterrupt


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Lets `load` give a model that says a text."""
    checkpoint = open_checkpoint(tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny()))

    def use(text: str, decoder: type[Script] = Script) -> dict:
        tokenizer, asked = checkpoint.tokenizer(), {}

        def load(name: str, **options) -> Model:
            asked.update(name=name, **options)
            made = decoder([*tokenizer.encode(text, special=False), 0])
            return Model(name, checkpoint, tokenizer, made, Place("sim"), "f32", 0.5)

        monkeypatch.setattr(generate, "load", load)
        return asked

    return use


def test_stdout_has_the_answer_and_nothing_else(script, capsys) -> None:
    asked = script("hell no 🙂")
    assert main(["generate", "toy", "hello", "--device", "sim", "--context", "32"]) == 0
    out, err = capsys.readouterr()
    assert out == "hell no 🙂\n"
    assert "[sim, f32, unfused] " in err and "stop" in err
    assert (asked["name"], asked["device"], asked["context"]) == ("toy", "sim", 32)


def test_json_to_stdout_replaces_the_answer(script, capsys, golden) -> None:
    script("hell no")
    assert main(["generate", "toy", "hello", "--max-new-tokens", "2", "--json", "-"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["text"] == "hell "
    assert result["seconds"]["load"] == 0.5
    result["seconds"] = {name: "SECONDS" for name in result["seconds"]}
    golden(json.dumps(result, indent=1))


def test_json_to_a_file_keeps_the_answer(script, capsys, tmp_path: Path) -> None:
    script("hell")
    target = tmp_path / "out.json"
    assert main(["generate", "toy", "hello", "--json", str(target)]) == 0
    assert capsys.readouterr().out == "hell\n"
    assert json.loads(target.read_text("utf-8"))["finish"] == "stop"


def test_json_that_cannot_be_written_is_said_after_the_answer(script, capsys, tmp_path) -> None:
    script("hell")
    assert main(["generate", "toy", "hello", "--json", str(tmp_path / "no" / "out.json")]) == 2
    out, err = capsys.readouterr()
    assert out == "hell\n"
    assert "cannot write" in err


def test_interrupting_ends_the_stream_cleanly(script, capsys, tmp_path: Path) -> None:
    script("hell no", Interrupted)
    target = tmp_path / "out.json"
    assert main(["generate", "toy", "hello", "--json", str(target)]) == 130
    out, err = capsys.readouterr()
    assert out == "hell n\n"
    assert "Traceback" not in err and "interrupt" in err
    result = json.loads(target.read_text("utf-8"))
    assert (result["finish"], result["text"]) == ("interrupt", "hell n")


def test_sampling_options_arrive(script, capsys) -> None:
    script("hell no")
    command = ["generate", "toy", "hello", "--temperature", "2", "--top-k", "9", "--seed", "4"]
    texts = []
    for seed in ("4", "4", "5"):
        assert main([*command[:-1], seed, "--top-p", "0.9", "--max-new-tokens", "9"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_stop_raw_and_system(script, capsys) -> None:
    script("one two three")
    assert main(["generate", "toy", "x", "--stop", " three", "--stop", "zzz"]) == 0
    assert capsys.readouterr().out == "one two\n"
    script("one")
    assert main(["generate", "toy", "x", "--raw", "--json", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)["prompt_ids"]) == 1
    script("one")
    assert main(["generate", "toy", "x", "--system", "s", "--json", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)["prompt_ids"]) == 7


def test_a_prompt_from_stdin(script, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    script("one")
    monkeypatch.setattr("sys.stdin", io.StringIO("abc"))
    assert main(["generate", "toy", "-", "--raw", "--json", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)["prompt_ids"]) == 3


def test_what_cannot_run_is_exit_2(script, capsys) -> None:
    script("one")
    assert main(["generate", "toy", "x", "--temperature", "-1"]) == 2
    assert "error[E303]" in capsys.readouterr().err
    assert main(["generate", "./nothing.gguf"]) == 2
    assert main(["generate"]) == 2


def test_an_unknown_model_is_exit_2(capsys) -> None:
    assert main(["generate", "smollm", "x"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "error[E101]" in err and "smollm2-135m" in err


def obey_interrupts() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize(
    ("device", "sizes"),
    [
        pytest.param("sim", {"context": 4000}, marks=pytest.mark.slow),
        # In one launch a token, of which there are enough for the signal to meet one.
        pytest.param(
            "gpu",
            {"context": 60_000, "hidden": 64, "heads": 2, "kv_heads": 1, "head_dim": 32}
            | {"feed_forward": 64},
            marks=pytest.mark.gpu,
        ),
    ],
    ids=["sim", "gpu"],
)
def test_a_real_interrupt_ends_a_real_run_with_130(
    tmp_path: Path, device: str, sizes: dict[str, int]
) -> None:
    path = tiny.write_gguf(tmp_path / "tiny.gguf", tiny.Tiny(**sizes, seed=1))
    command = [sys.executable, "-m", "warploom", "generate", str(path), "hello", "--device", device]
    command += ["--max-new-tokens", str(sizes["context"] - 100)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        preexec_fn=obey_interrupts,
    )
    assert process.stdout is not None
    first = process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert first, "nothing was said before the interrupt"
    assert "Traceback" not in err
    assert err.rstrip().endswith("interrupt")
    assert out.endswith("\n")

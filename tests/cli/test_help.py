"""Each verb answers --help, and the entry stays light: it loads no verb and no library."""

import re
import subprocess
import sys

import pytest

from warploom.cli.verbs import FIRST_STEPS, INSTEAD, VERBS, find


def warploom(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "warploom", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_every_verb_explains_itself(verb: str) -> None:
    result = warploom(verb, "--help")
    assert result.returncode == 0, result.stderr
    assert f"warploom {verb}" in result.stdout
    assert result.stderr == ""


def test_help_lists_every_verb_on_stdout() -> None:
    result = warploom("--help")
    assert result.returncode == 0
    for verb in VERBS:
        assert f"  {verb.name} " in result.stdout
        assert verb.summary in result.stdout


def test_help_is_a_verb_too_and_shows_first_steps() -> None:
    assert warploom("help").stdout == warploom("--help").stdout
    assert warploom("help", "run").stdout == warploom("run", "--help").stdout
    steps = [line for line in FIRST_STEPS.splitlines() if line.startswith("  warploom ")]
    assert len(steps) >= 3
    for step in steps:
        assert find(step.split()[1]) is not None


def test_words_that_are_tried_for_a_verb_name_what_there_is() -> None:
    for word, text in INSTEAD.items():
        assert find(word) is None, f"{word} is a verb now"
        for verb in re.findall(r"`warploom (\w+)", text):
            assert find(verb) is not None
    result = warploom("profile", "x.py:k")
    assert (result.returncode, result.stdout) == (2, "")
    assert "there is no verb `profile`; `warploom trace KERNEL`" in result.stderr


def test_version() -> None:
    result = warploom("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("warploom ")


def test_help_loads_neither_a_verb_nor_an_extra() -> None:
    script = (
        "import sys\nfrom warploom.cli.__main__ import main\nmain(['--help'])\n"
        "heavy = {'cuda', 'torch', 'tokenizers', 'gguf', 'jinja2', 'warploom.engine'}\n"
        "loaded = heavy & set(sys.modules)\n"
        "loaded |= {m for m in sys.modules if m.startswith('warploom.cli.')}\n"
        "print(sorted(loaded - {'warploom.cli.__main__', 'warploom.cli.verbs'}), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stderr == "[]\n"

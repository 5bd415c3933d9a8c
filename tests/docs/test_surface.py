"""The public surface in one text: a change of a name, a signature, a flag or a code is seen.

`tests/golden/surface.txt` holds it; whoever changes it changes docs/surface.md too.
"""

import argparse
import inspect
import re

import warploom as wl
from tests.docs.blocks import ROOT
from warploom.base.errors import CODES
from warploom.cli.verbs import FINE, INTERRUPTED, NO, UNUSABLE, VERBS
from warploom.engine import load
from warploom.engine.model import Model
from warploom.language.context import VOCABULARY
from warploom.testing.golden import Golden

PACKAGE = ROOT / "warploom"


def signature_of(value: object) -> str:
    """`(x, y=1) -> int`, without addresses and modules, which differ between Pythons."""
    try:
        text = str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    text = re.sub(r" at 0x[0-9a-f]+", "", text).replace("'", "")
    return re.sub(r"\b(?:[a-z_]+\.)+(?=\w)", "", text)


def members_of(kind: type) -> list[str]:
    """The public methods and properties that a class of ours defines."""
    lines: list[str] = []
    for name, value in sorted(vars(kind).items()):
        if name.startswith("_") and name not in ("__call__", "__getitem__"):
            continue
        if isinstance(value, property):
            lines.append(f"    .{name}")
        elif inspect.isfunction(value):
            lines.append(f"    .{name}{signature_of(value)}")
    return lines


def names() -> list[str]:
    lines: list[str] = []
    for name in sorted(wl.__all__):
        value = getattr(wl, name)
        if inspect.isclass(value):
            bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
            lines.append(f"wl.{name}" + (f" ({bases})" if bases else ""))
            lines += members_of(value) if value.__module__.startswith("warploom") else []
        else:
            lines.append(f"wl.{name}{signature_of(value)}")
    lines.append(f"warploom.engine.load{signature_of(load)}")
    return [*lines, "warploom.engine.model.Model", *members_of(Model)]


def options_of(parser: argparse.ArgumentParser, word: str) -> list[str]:
    """A line a verb, and a line a sub-verb."""
    words: list[str] = []
    below: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                below += options_of(inner, f"{word} {name}")
        elif not isinstance(action, argparse._HelpAction):
            words.append("|".join(action.option_strings) or str(action.metavar or action.dest))
    return [" ".join([word, *words]), *below]


def verbs() -> list[str]:
    lines: list[str] = []
    for verb in VERBS:
        commands = argparse.ArgumentParser().add_subparsers()
        verb.load().add_parser(commands)
        lines += options_of(commands.choices[verb.name], verb.name)
    return lines


def variables() -> set[str]:
    """Environment variables that the package reads."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        found |= set(re.findall(r"\b(WARPLOOM_[A-Z]+|NO_COLOR)\b", path.read_text("utf-8")))
    return found


def test_the_surface(golden: Golden) -> None:
    exits = f"{FINE} fine, {NO} no, {UNUSABLE} unusable, {INTERRUPTED} interrupted"
    parts = {
        "names": names(),
        "verbs": verbs(),
        "environment": sorted(variables()),
        "exit codes": [exits],
        "error codes": [" ".join(sorted(CODES))],
    }
    text = "\n\n".join("\n".join([f"# {title}", *lines]) for title, lines in parts.items())
    whole = Golden(ROOT / "tests" / "golden", "surface", golden.update)
    whole(text)
    golden.differences += whole.differences


def test_what_kernels_may_call_is_public() -> None:
    names()  # loads every module of the language
    assert VOCABULARY
    missing = set(VOCABULARY) - set(wl.__all__)
    assert not missing, f"add to warploom/__init__.py: {sorted(missing)}"


def test_every_variable_has_its_line_and_every_line_a_reader() -> None:
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == variables()

"""docs/errors.md, docs/language.md and docs/support.md are made from the code and are up to date.

The part between the marks is written by `pytest tests/docs/test_generated.py --update-golden`.
"""

import enum
import importlib
import inspect
import re
from pathlib import Path

import pytest

import warploom as wl
from tests.docs.blocks import ROOT
from warploom.base.errors import CODES, LETTERS
from warploom.base.target import PRODUCTS, WARP_PRODUCTS
from warploom.language.collective import Scope
from warploom.language.context import Handle
from warploom.testing.golden import difference

GOLDENS = ROOT / "tests" / "golden"


def example_of(code: str, texts: dict[str, str]) -> str:
    """The shortest golden report with a code, or nothing."""
    pattern = re.compile(rf"^\w+\[{code}\]: .*?(?=^\w+\[[A-Z]\d{{3}}\]: |\Z)", re.M | re.S)
    found = [match[0].rstrip() for text in texts.values() for match in pattern.finditer(text)]
    return min(found, key=lambda text: (len(text), text), default="")


def errors_page() -> str:
    """Every code with its paragraph and, where a golden has one, a report."""
    texts = {str(p): p.read_text(encoding="utf-8") for p in sorted(GOLDENS.rglob("*.txt"))}
    lines: list[str] = []
    for letter, (meaning, kind) in LETTERS.items():
        codes = [code for code in CODES.values() if code.code.startswith(letter)]
        if codes:
            lines += [f"## {letter}: {meaning} (`wl.{kind.__name__}`)", ""]
        for code in sorted(codes, key=lambda entry: entry.code):
            lines += [f"### {code.code} {code.title}", "", code.paragraph, ""]
            if example := example_of(code.code, texts):
                lines += ["```", example, "```", ""]
    return "\n".join(lines)


def language_page() -> str:
    """Every public name of `wl` with its signature and docstring, module by module."""
    lines: list[str] = []
    for module, names in wl._MODULES.items():
        loaded = importlib.import_module(f"warploom.{module}")
        first = (loaded.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        lines += [f"### {module.rpartition('.')[2]}", "", first, ""]
        for name in (word.partition("=")[0] for word in names.split()):
            lines += entry_of(name)
    lines += ["### Things of a kernel", "", "What the names above give, and what it can do.", ""]
    for kind in sorted(things_of(Handle), key=lambda cls: cls.__name__):
        text = (inspect.getdoc(kind) or "").replace("\n", " ")
        lines += [f"#### {kind.__name__}", "", text, ""]
        for name in kind.attributes:
            lines += method_of(kind, name)
    return "\n".join(lines)


def things_of(kind: type[Handle]) -> list[type[Handle]]:
    """The kinds of things below this one of which a kernel may ask something."""
    found: list[type[Handle]] = []
    for inner in kind.__subclasses__():
        found += [inner] if inner.attributes else []
        found += things_of(inner)
    return found


def method_of(kind: type[Handle], name: str) -> list[str]:
    """An attribute of a thing of a kernel, with its docstring."""
    held = inspect.getattr_static(kind, name)
    text = inspect.getdoc(held)
    assert text, f"{kind.__name__}.{name} has no docstring"
    call = ""
    if not isinstance(held, property):
        call = arguments_of(held).replace("(self, ", "(").replace("(self)", "()")
    return [f"##### `.{name}{call}`", "", text, ""]


def entry_of(name: str) -> list[str]:
    """One name: its call and its docstring. A dtype is its own explanation."""
    value = getattr(wl, name)
    if isinstance(value, wl.DType):
        return [f"- `wl.{name}`: {value.bytes} bytes, NumPy's `{value.numpy}`", ""]
    if isinstance(value, Scope):
        return [f"- `wl.{name}`: a value of `over=` in a collective", ""]
    if isinstance(value, enum.Enum):
        return [f"- `wl.{name}`: the {value.value}, as the end of a pipe", ""]
    text = inspect.getdoc(value)
    assert text, f"wl.{name} has no docstring"
    call = "" if inspect.isclass(value) else arguments_of(value)
    return [f"#### `wl.{name}{call}`", "", text, ""]


def arguments_of(function: object) -> str:
    """The parameters by name, with their defaults."""
    parts: list[str] = []
    for parameter in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
        plain = parameter.default is parameter.empty or parameter.default is None
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        name = star.get(parameter.kind, "") + parameter.name
        parts.append(name if plain else f"{name}={parameter.default!r}")
    return f"({', '.join(parts)})"


def support_page() -> str:
    """The table of `base/target.py`: what matrix units multiply."""
    lines = [
        "| unit | since | a · b | sums | M | N | K | a operand lies along | a lies in |",
        *["|---|---|---|---|---|---|---|---|---|"],
    ]
    for can in (*PRODUCTS, *WARP_PRODUCTS):
        pairs = ", ".join(f"{a}·{b}" for a, b in can.pairs)
        along = "any axis" if can.turned else "K"
        rows, depth = f"multiples of {can.rows}", f"multiples of {can.depth}"
        columns = runs_of(can.columns)
        cells = (can.unit, can.since, pairs, can.sums, rows, columns, depth, along)
        place = "registers, as B" if can in WARP_PRODUCTS else "shared memory or registers"
        lines.append(f"| {' | '.join(map(str, cells))} | {place} |")
    return "\n".join(lines)


def runs_of(numbers: tuple[int, ...]) -> str:
    """Numbers in words: runs of one step."""
    parts: list[str] = []
    rest = list(numbers)
    while rest:
        step = rest[1] - rest[0] if len(rest) > 1 else 0
        count = 1
        while count < len(rest) and rest[count] - rest[count - 1] == step:
            count += 1
        if count > 2:
            parts.append(f"{rest[0]} to {rest[count - 1]} in steps of {step}")
        else:
            count = 1
            parts.append(str(rest[0]))
        rest = rest[count:]
    return ", ".join(parts)


PAGES = {"support.md": support_page, "errors.md": errors_page, "language.md": language_page}
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str, request: pytest.FixtureRequest) -> None:
    path = Path(ROOT) / "docs" / name
    old = path.read_text(encoding="utf-8")
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = before + BEGIN + PAGES[name]() + "\n" + END + after
    if request.config.getoption("--update-golden"):
        path.write_text(made, encoding="utf-8", newline="\n")
    else:
        assert old == made, difference(old, made, name)


# Their numbers change with the NVRTC in use, so no golden holds them: the test that does.
MEASURED = {"C003": "tests/runtime/test_nvrtc.py"}


def test_every_code_has_a_report_that_a_test_reads() -> None:
    texts = {str(p): p.read_text(encoding="utf-8") for p in GOLDENS.rglob("*.txt")}
    bare = [code for code in CODES if not example_of(code, texts) and code not in MEASURED]
    assert not bare, f"codes without a golden report: {' '.join(sorted(bare))}"
    for code, place in MEASURED.items():
        assert code in (ROOT / place).read_text(encoding="utf-8")


def test_every_code_is_reported_somewhere() -> None:
    sources = [p for p in (ROOT / "warploom").rglob("*.py") if p.name != "errors.py"]
    text = "\n".join(p.read_text(encoding="utf-8") for p in sources)
    idle = [code for code in CODES if f'"{code}"' not in text]
    assert not idle, f"listed and never reported: {' '.join(sorted(idle))}"

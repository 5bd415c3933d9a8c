"""The error codes, and the exceptions that carry reports. `codes.txt` beside this is the only list.

A code's letter says what it concerns. `docs/errors.md` is generated from the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warploom.base.diagnostics import Place, Report, Span, render_all


class Error(Exception):
    """Base of all errors of Warploom. `str()` is the rendered text of `reports`."""

    def __init__(self, *reports: Report) -> None:
        Exception.__init__(self, *reports)
        self.reports: tuple[Report, ...] = reports

    def __str__(self) -> str:
        return render_all(self.reports)

    def __reduce__(self) -> tuple[type[Error], tuple[Report, ...]]:
        return type(self), self.reports

    def render(self, ansi: bool = False) -> str:
        """The rendered text, in colour where `ansi`."""
        return render_all(self.reports, ansi)

    @property
    def code(self) -> str:
        """The code of the first report."""
        return self.reports[0].code if self.reports else ""


class CompileError(Error, SyntaxError):
    """A kernel that cannot be compiled: its source, its protocol, its budgets, or the compiler."""

    def __init__(self, *reports: Report) -> None:
        # SyntaxError takes a text; without line and file of its own, tracebacks print it as it is.
        SyntaxError.__init__(self, render_all(reports))
        Error.__init__(self, *reports)


class ShapeError(Error, TypeError):
    """Arrays of a call whose dtypes or shapes do not fit. (In a kernel's source: CompileError.)"""


class LaunchError(Error, ValueError):
    """A launch whose arguments, grid or options are wrong."""


class CheckError(Error, RuntimeError):
    """A fault of a running kernel, found by a device or by the checker."""


class ModelError(Error, ValueError):
    """A model or a prompt that the engine cannot take."""


for _class in (Error, CompileError, ShapeError, LaunchError, CheckError, ModelError):
    _class.__module__ = "warploom"


LETTERS = {
    "F": ("front end", CompileError),
    "T": ("types and shapes", ShapeError),
    "L": ("layouts", CompileError),
    "P": ("protocol, found statically", CompileError),
    "B": ("budgets", CompileError),
    "M": ("memory", CheckError),
    "U": ("unstable synchronisation", CheckError),
    "R": ("races", CheckError),
    "D": ("deadlock", CheckError),
    "H": ("host and launch", LaunchError),
    "C": ("compiler and cache", CompileError),
    "E": ("engine and models", ModelError),
    "K": ("limits of the checker", CheckError),
}


@dataclass(frozen=True, slots=True)
class Code:
    """One code: a title of a few words and a paragraph that says what it means and what to do."""

    code: str
    title: str
    paragraph: str

    @property
    def error(self) -> type[Error]:
        """The exception that carries it."""
        return LETTERS[self.code[0]][1]


CODES: dict[str, Code] = {}


def _read(text: str) -> Iterator[Code]:
    """Codes of a list: a line `X123 title`, then the paragraph, indented; `#` begins a comment."""
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    for entry in re.split(r"\n(?=[A-Z]\d)", text.strip()):
        first, *rest = entry.splitlines()
        code, title = first.split(" ", 1)
        yield Code(code, title, " ".join(line.strip() for line in rest if line.strip()))


for _code in _read((Path(__file__).parent / "codes.txt").read_text(encoding="utf-8")):
    if _code.code in CODES:
        raise ValueError(f"code {_code.code} is listed twice")
    CODES[_code.code] = _code


def report(
    code: str,
    message: str,
    *places: Place | Span | None,
    label: str = "",
    notes: Iterable[str] = (),
    hint: str = "",
    severity: str = "error",
    **facts: Any,
) -> Report:
    """A report of a listed code. Places are spans or places of the IR; `label` is the first's."""
    if code not in CODES:
        raise ValueError(f"code {code} is not listed in base/codes.txt")
    spans: list[Span] = []
    for place in places:
        if isinstance(place, Span):
            spans.append(place)
        elif place is not None:
            spans.append(Span.at(place, label if not spans else ""))
    return Report(code, message, tuple(spans), tuple(notes), hint, severity, facts)


def error(code: str, message: str, *places: Place | Span | None, **details: Any) -> Error:
    """The exception of a listed code, with one report made from the arguments (see `report`)."""
    return CODES[code].error(report(code, message, *places, **details))


def error_of(reports: Sequence[Report]) -> Error:
    """The exception that carries several reports; the first one decides its class."""
    return CODES[reports[0].code].error(*reports)

"""A report: what is wrong, where, the numbers, what to do. And its one renderer.

Knows no code's meaning (`errors.py`) and no IR: a place is anything with file, line and columns.
"""

from __future__ import annotations

import linecache
import os
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO

_TAB = 4
_BOLD, _RED, _YELLOW, _BLUE, _CYAN, _RESET = (
    "\033[1m",
    "\033[1;31m",
    "\033[1;33m",
    "\033[1;34m",
    "\033[1;36m",
    "\033[0m",
)
# The word in front of a code, where it is not "error".
_WORDS = {"R": "race", "D": "deadlock", "U": "unstable"}


class Place(Protocol):
    """What has a position in source text: columns count from 1, 0 means unknown."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def end_column(self) -> int: ...
    @property
    def chain(self) -> tuple[Any, ...]: ...


@dataclass(frozen=True, slots=True)
class Span:
    """A marked piece of one source line.

    Columns count characters from 1; `end_column` is the first one after the piece, 0 where unknown.
    `label` stands behind the carets, `role` behind the position, `chain` holds the call sites that
    led here, innermost first. `text` is the source line where `linecache` cannot give it.
    """

    file: str
    line: int
    column: int = 0
    end_column: int = 0
    label: str = ""
    role: str = ""
    chain: tuple[Span, ...] = ()
    text: str | None = None

    @classmethod
    def at(cls, place: Place, label: str = "", role: str = "") -> Span:
        """The span of a place of the IR, its call chain included."""
        chain = tuple(Span(p.file, p.line, p.column, p.end_column) for p in place.chain)
        return cls(place.file, place.line, place.column, place.end_column, label, role, chain)

    def source(self) -> str:
        """The source line without its line break, or nothing where it cannot be had."""
        if self.text is not None:
            return self.text
        return linecache.getline(self.file, self.line).rstrip("\r\n")


@dataclass(frozen=True, slots=True)
class Report:
    """One finding. The first span is the place; further ones explain it."""

    code: str
    message: str
    spans: tuple[Span, ...] = ()
    notes: tuple[str, ...] = ()
    hint: str = ""
    severity: str = "error"
    facts: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)

    @property
    def word(self) -> str:
        """The word in front of the code: error, warning, race, deadlock, unstable."""
        if self.severity != "error":
            return self.severity
        return _WORDS.get(self.code[:1], "error")

    def render(self, ansi: bool = False) -> str:
        """The text of this report, without a final line break."""
        return render(self, ansi)


def render(report: Report, ansi: bool = False) -> str:
    """The text of a report, in colour where `ansi`. Every report is shown by this function."""
    paint = _Paint(ansi)
    tone = _YELLOW if report.severity == "warning" else _RED
    head = paint(tone, f"{report.word}[{report.code}]") + paint(_BOLD, f": {report.message}")
    lines = [head]
    shown = [s for s in report.spans if s.line > 0]
    sites = shown[0].chain if shown else ()
    width = max((len(str(s.line)) for s in shown), default=1)
    gap = " " * width
    for index, span in enumerate(shown):
        lines += _snippet(span, "-->" if index == 0 else ":::", width, tone, paint)
    mark = paint(_BLUE, f"{gap} =")
    lines += [f"{mark} {note}" for note in report.notes]
    for site in sites:
        text = site.source().strip()
        called = f"called from {shown_path(site.file)}:{site.line}:{site.column}"
        lines.append(f"{mark} {called}" + (f": {text}" if text else ""))
    if report.hint:
        lines.append(f"{gap} {paint(_CYAN, 'help:')} {report.hint}")
    return "\n".join(lines)


def render_all(reports: tuple[Report, ...], ansi: bool = False) -> str:
    """Several reports, an empty line between them and their number at the end."""
    text = "\n\n".join(render(r, ansi) for r in reports)
    if len(reports) > 1:
        text += f"\n\n{len(reports)} errors"
    return text


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows colours (NO_COLOR and TERM=dumb say no)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def shown_path(file: str) -> str:
    """A file as the reader would type it: relative where it lies below the current directory."""
    if file.startswith("<"):
        return file
    try:
        return Path(file).relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return file


class _Paint:
    """Wraps text in a colour, or leaves it."""

    def __init__(self, ansi: bool) -> None:
        self.ansi = ansi

    def __call__(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_RESET}" if self.ansi else text


def _snippet(span: Span, arrow: str, width: int, tone: str, paint: _Paint) -> list[str]:
    """The position, the source line and the carets of one span."""
    gap = " " * width
    position = f"{shown_path(span.file)}:{span.line}"
    if span.column:
        position += f":{span.column}"
    if span.role:
        position += f", in role `{span.role}`"
    lines = [f"{gap}{paint(_BLUE, arrow)} {position}"]
    text = span.source()
    if not text.strip():
        return lines
    bar = paint(_BLUE, "|")
    lines.append(f"{gap} {bar}")
    lines.append(
        f"{paint(_BLUE, str(span.line).rjust(width))} {bar} {text.expandtabs(_TAB).rstrip()}"
    )
    if span.column:
        carets = _carets(text, span)
        label = f" {span.label}" if span.label else ""
        lines.append(
            f"{gap} {bar} {carets[0]}{paint(tone if arrow == '-->' else _BLUE, carets[1] + label)}"
        )
    return lines


def _carets(text: str, span: Span) -> tuple[str, str]:
    """Spaces up to the marked piece and the carets below it, in terminal columns."""
    end = span.end_column if span.end_column > span.column else len(text.rstrip()) + 1
    before = columns(text[: span.column - 1])
    marked = columns(text[: end - 1]) - before
    return " " * before, "^" * max(marked, 1)


def columns(text: str) -> int:
    """Terminal columns that a text takes: wide characters count two, combining marks none."""
    at = 0
    for letter in text:
        if letter == "\t":
            at += _TAB - at % _TAB
        elif unicodedata.combining(letter):
            continue
        else:
            at += 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1
    return at

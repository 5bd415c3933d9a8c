"""The text under construction: lines, and the source place of each. Knows no operation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from warploom.ir.op import UNKNOWN, Loc

_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Line:
    """One line of C++ and its source place."""

    text: str
    loc: Loc


def comment(text: str) -> str:
    """What stands behind a line to say why, empty for no text."""
    # A backslash at the end would join the next line to the comment.
    plain = " ".join(text.replace("\\", "/").split())
    return f"  // {plain}" if plain else ""


class Lines:
    """Collects lines; `loc` is the place given to what is appended."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.loc: Loc = UNKNOWN
        self._depth = 0

    def add(self, text: str) -> None:
        """Append one line at the present depth."""
        self.lines.append(Line(_INDENT * self._depth + text, self.loc))

    @contextmanager
    def braces(self, head: str, comment: str = "") -> Iterator[None]:
        """A block: `head {  // comment`, what is appended inside, `}` at the place of the head."""
        loc = self.loc
        self.add(f"{head} {{" + (f"  // {comment}" if comment else ""))
        self._depth += 1
        yield
        self._depth -= 1
        self.loc = loc
        self.add("}")

    def with_places(self) -> list[str]:
        """The lines with `#line` wherever the compiler would count on to another place."""
        out: list[str] = []
        expected: tuple[str, int] | None = None
        for line in self.lines:
            here = (line.loc.file, line.loc.line)
            if line.loc.line > 0 and here != expected:
                out.append(f'#line {line.loc.line} "{_escaped(line.loc.file)}"')
                expected = here
            out.append(line.text)
            if expected is not None:
                expected = (expected[0], expected[1] + 1)
        return out


def without_places(text: str) -> str:
    """Emitted text for reading: no `#line`; a comment names the source line where it changes."""
    out: list[str] = []
    said = ""
    note = ""
    for line in text.splitlines():
        if line.startswith("#line "):
            _, number, file = line.split(" ", 2)
            name = file.strip('"').replace("\\\\", "/").rsplit("/", 1)[-1]
            note = f"{name}:{number}"
            continue
        if note and note != said and line.strip(" }"):
            line = f"{line}  // {note}"
            said = note
        note = ""
        out.append(line)
    return "\n".join(out) + "\n"


def _escaped(file: str) -> str:
    return file.replace("\\", "\\\\").replace('"', '\\"')

"""Source lines before which the simulator shall stop: a breakpoint is built in front of the
statement that stands there. Knows no prompt and no command line."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TypeAlias

from warploom.base.diagnostics import Report, Span, shown_path
from warploom.base.errors import report
from warploom.frontend.source import SourceFunction

# A file as the user names it, and a line of it.
Stop: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class Stops:
    """The lines that were asked for, which of them were met, and the functions that were read."""

    wanted: tuple[Stop, ...] = ()
    met: set[Stop] = field(default_factory=set)
    read: dict[SourceFunction, None] = field(default_factory=dict)

    def before(self, source: SourceFunction, node: ast.stmt) -> bool:
        """Whether to stop before a statement of a function."""
        if not self.wanted:
            return False
        self.read[source] = None
        lines = head_of(node)
        shifted = range(lines.start + source.shift, lines.stop + source.shift)
        found = {s for s in self.wanted if s[1] in shifted and is_file(s[0], source.file)}
        self.met |= found
        return bool(found)

    def unmet(self, kernel: str) -> list[Report]:
        """A report for each line at which nothing can stop."""
        return [self._why(kernel, stop) for stop in self.wanted if stop not in self.met]

    def _why(self, kernel: str, stop: Stop) -> Report:
        file, line = stop
        inside = [source for source in self.read if is_file(file, source.file)]
        if not inside:
            files = sorted({shown_path(source.file) for source in self.read})
            message = f"`{kernel}` runs no code of {file}"
            return report("H033", message, notes=[f"its files: {', '.join(files)}"], hint=_HINT)
        place = Span(inside[0].file, line)
        around = [s for s in inside if s.line <= line < s.line + len(s.lines)]
        if not around:
            spread = [f"`{s.name}` lines {s.line} to {s.line + len(s.lines) - 1}" for s in inside]
            message = f"line {line} belongs to no function that `{kernel}` runs"
            return report("H033", message, place, notes=[", ".join(spread)], hint=_HINT)
        heads = [head_of(n) for n in _statements(around[0].tree.body)]
        lines = sorted(head.start + around[0].shift for head in heads if head)
        if any(line - around[0].shift in head for head in heads):
            message = f"line {line} is not part of this variant of `{kernel}`"
            hint = "its constants leave the line out, or no call leads there"
            return report("H033", message, place, hint=hint)
        near = [n for n in (_last(n for n in lines if n < line), _first(lines, line)) if n]
        hint = f"the nearest: {' and '.join(map(str, near))}"
        return report("H033", f"no statement stands on line {line}", place, hint=hint)


_HINT = "name a line of the kernel or of a `wl.function` that it calls"


def head_of(node: ast.stmt) -> range:
    """The lines of a statement, of its head only where it has a body; none for a docstring."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return range(0)
    end = node.lineno
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.withitem):
            inner = inner.optional_vars or inner.context_expr
        if not isinstance(inner, ast.stmt):
            end = max(end, getattr(inner, "end_lineno", None) or end)
    if not hasattr(node, "body"):
        end = node.end_lineno or end
    return range(node.lineno, end + 1)


def is_file(named: str, file: str) -> bool:
    """Whether a file is the one that was named: by its path, or by the last parts of it."""
    if PurePath(named).is_absolute() or Path(named).exists():
        return Path(named).resolve() == Path(file).resolve()
    parts = PurePath(named).parts
    return bool(parts) and PurePath(file).parts[-len(parts) :] == parts


def _statements(body: Iterable[ast.stmt]) -> Iterable[ast.stmt]:
    for node in body:
        yield node
        yield from _statements(n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt))


def _last(lines: Iterable[int]) -> int:
    return max(lines, default=0)


def _first(lines: Iterable[int], after: int) -> int:
    return min((n for n in lines if n > after), default=0)

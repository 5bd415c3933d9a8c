"""Finds and parses the source text of a function. Knows nothing of what the text means.

The text is taken when the function is first read, and kept: a file that is edited later does not
change a kernel that was imported before.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from warploom.base.diagnostics import Span
from warploom.base.errors import CompileError, error
from warploom.ir.op import Loc
from warploom.language.structs import Method

# How the decorators of this language are spelt at the end: others have no effect in a kernel.
_OWN_DECORATORS = ("kernel", "function", "example", "options")

# Where a function keeps its source: both die together.
_KEPT = "__warploom_source__"


@dataclass(eq=False)
class SourceFunction:
    """One function as text and tree. `shift` brings the line numbers of the tree to the file's."""

    # Any, since checkers take a function in a field for a method.
    fn: Any
    file: str
    line: int
    lines: tuple[str, ...]
    tree: ast.FunctionDef
    shift: int
    cache: dict[Any, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.tree.name

    @property
    def text(self) -> str:
        """The source with its decorators, as it stands in the file."""
        return "".join(self.lines)

    def place(self, node: ast.AST, chain: tuple[Loc, ...] = ()) -> Loc:
        """The place of a piece of the tree; what covers several lines ends with the first one."""
        line: int = getattr(node, "lineno", self.line - self.shift) + self.shift
        column: int = getattr(node, "col_offset", 0)
        end_line = getattr(node, "end_lineno", None)
        end: int = getattr(node, "end_col_offset", None) or 0
        text = self.lines[line - self.line] if 0 <= line - self.line < len(self.lines) else ""
        if end_line is None or end_line + self.shift != line:
            end = 0
        if not text.isascii():
            # The tree counts bytes of UTF-8, readers count characters.
            encoded = text.encode()
            column = len(encoded[:column].decode(errors="ignore"))
            end = len(encoded[:end].decode(errors="ignore")) if end else 0
        return Loc(self.file, line, column + 1, end + 1 if end else 0, chain)

    def resolve(self, name: str) -> Any:
        """The value of a name outside the function: closure, module, builtins. Raises KeyError."""
        cells = self.fn.__closure__
        if cells is not None and name in self.fn.__code__.co_freevars:
            try:
                return cells[self.fn.__code__.co_freevars.index(name)].cell_contents
            except ValueError:
                raise KeyError(name) from None
        names: Mapping[str, Any] = self.fn.__globals__
        return names[name] if name in names else vars(builtins)[name]


def read(fn: Callable[..., Any]) -> SourceFunction:
    """The source of a function; raises CompileError F001 to F004 where there is none to read."""
    plain = _plain_function(fn)
    known = plain.__dict__.get(_KEPT)
    if not isinstance(known, SourceFunction):
        known = plain.__dict__[_KEPT] = _read(plain)
    return known


def _plain_function(fn: Any) -> types.FunctionType:
    """The Python function itself; refuses everything that is no module-level kind of function."""
    given: Any = inspect.unwrap(fn, stop=lambda f: isinstance(f, types.FunctionType))
    if isinstance(given, staticmethod | classmethod | types.MethodType):
        raise _method(given.__func__)
    if not isinstance(given, types.FunctionType):
        what = "a class" if isinstance(given, type) else f"a {type(given).__name__} object"
        raise error(
            "F002",
            f"a kernel is a function written with `def`, not {what}",
            hint="decorate the function itself",
        )
    code = given.__code__
    place = Span(code.co_filename, code.co_firstlineno)
    if given.__name__ == "<lambda>":
        raise error(
            "F002",
            "a lambda cannot be a kernel: it has no statements and no annotations",
            place,
            hint="write it with `def`",
        )
    kinds = {
        inspect.CO_COROUTINE: "a coroutine (`async def`)",
        inspect.CO_ASYNC_GENERATOR: "an asynchronous generator",
        inspect.CO_GENERATOR: "a generator (it has `yield`)",
    }
    for flag, what in kinds.items():
        if code.co_flags & flag:
            raise error(
                "F002",
                f"a kernel is a plain function, not {what}",
                place,
                hint="write it with `def`, without `async` and `yield`",
            )
    outer = given.__qualname__.rpartition(".")[0]
    if outer and not outer.endswith("<locals>") and not isinstance(fn, Method):
        raise _method(given)
    return given


def _method(fn: Any) -> CompileError:
    code = fn.__code__
    problem = error(
        "F003",
        f"`{fn.__qualname__}` is a method; a kernel is a function of a module",
        Span(code.co_filename, code.co_firstlineno),
        hint="move it out of the class, and pass what it needs from `self` as arguments",
    )
    assert isinstance(problem, CompileError)
    return problem


def _read(fn: types.FunctionType) -> SourceFunction:
    file, first = fn.__code__.co_filename, fn.__code__.co_firstlineno
    # Without this a module that is edited and loaded again would be read from its old text.
    linecache.checkcache(file)
    lines = linecache.getlines(file, fn.__globals__)
    if not 0 < first <= len(lines):
        raise error(
            "F001",
            f"the source of `{fn.__name__}` is not available",
            notes=[f"Python says that it is in {file}, line {first}"],
            hint="put the kernel into a file or a notebook cell; `python -c` keeps no source",
        )
    found = _parse_block(lines, first - 1)
    if found is None or found[0].name != fn.__code__.co_name:
        raise error(
            "F001",
            f"the source of `{fn.__name__}` is not where Python says",
            Span(file, first),
            notes=["the file was changed after it was imported"],
            hint="import the module again (restart Python)",
        )
    tree, count, shift = found
    block = tuple(lines[first - 1 : first - 1 + count])
    made = SourceFunction(fn, file, first, block, tree, shift)
    _check_decorators(made)
    return made


def _parse_block(lines: list[str], start: int) -> tuple[ast.FunctionDef, int, int] | None:
    """The tree of the function at a line, how many lines it has, and the shift of its numbers.

    The block ends in front of a line that is indented no deeper; where what was found so far does
    not parse (such a line inside brackets or a text), it goes on to the next such line.
    """
    indent = _indent(lines[start])
    # A block in a class or a function is put under `if 1:`, which keeps its columns.
    head = "if 1:\n" if indent else ""
    at, seen_def = start, False
    while at < len(lines):
        stripped = lines[at].lstrip()
        at += 1
        seen_def = seen_def or stripped.startswith(("def ", "async def "))
        if not seen_def:
            continue
        following = lines[at] if at < len(lines) else ""
        blank = not following.strip() or following.lstrip().startswith("#")
        if at < len(lines) and (blank or _indent(following) > indent):
            continue
        try:
            module = ast.parse(head + "".join(lines[start:at]))
        except SyntaxError:
            continue
        held = module.body[0]
        body = held.body[0] if isinstance(held, ast.If) else held
        if not isinstance(body, ast.FunctionDef):
            return None
        shift = start - (1 if head else 0)
        assert body.end_lineno is not None
        return body, body.end_lineno + shift - start, shift
    return None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _check_decorators(source: SourceFunction) -> None:
    for decorator in source.tree.decorator_list:
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        last = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if last not in _OWN_DECORATORS:
            raise error(
                "F004",
                f"the decorator `@{ast.unparse(decorator)}` has no effect on a kernel",
                source.place(decorator),
                notes=["the function is read from its source and never called"],
                hint="remove it, or apply it to what launches the kernel",
            )

"""Whether the values around a kernel are still those it was compiled with: asked at every launch.

Names are compared by identity. What can change in place is compared by its text, which costs more:
plain numbers, texts, tuples and functions do not take that way.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from warploom.base.dtypes import DType
from warploom.frontend.capture import canonical, captured, functions_in
from warploom.frontend.source import SourceFunction, read
from warploom.language.function import Function
from warploom.language.structs import Struct

_MISSING = object()
_FIXED = (type(None), bool, int, float, str, DType, Function, types.FunctionType)


@dataclass(slots=True)
class Watch:
    """Captured names and values of a kernel and of all functions that it reaches.

    `texts`: functions some of whose values can change in place, and what these values were.
    """

    names: list[tuple[dict[str, Any], str, Any]] = field(default_factory=list)
    cells: list[tuple[types.CellType, Any]] = field(default_factory=list)
    texts: list[tuple[SourceFunction, dict[str, str]]] = field(default_factory=list)

    def is_current(self) -> bool:
        """Whether nothing has changed since `watch`."""
        for namespace, name, value in self.names:
            if namespace.get(name, _MISSING) is not value:
                return False
        for cell, value in self.cells:
            if _content(cell) is not value:
                return False
        return all(_texts(source) == texts for source, texts in self.texts)


def watch(function: Callable[..., Any]) -> Watch:
    """Watch what a kernel captures now; raises CompileError where a source is not available."""
    found = Watch()
    todo: list[Callable[..., Any]] = [function]
    seen: set[SourceFunction] = set()
    while todo:
        source = read(todo.pop())
        if source in seen:
            continue
        seen.add(source)
        values = captured(source)
        _watch_names(found, source, {word for spelt in values for word in spelt.split(".")})
        for value in values.values():
            todo += functions_in(value)
        if not all(_is_fixed(v) and _by_names(source, spelt) for spelt, v in values.items()):
            found.texts.append((source, _texts(source)))
    return found


def _texts(source: SourceFunction) -> dict[str, str]:
    return {spelt: canonical(value) for spelt, value in captured(source).items()}


def _by_names(source: SourceFunction, spelt: str) -> bool:
    """Whether a captured value is reached through modules only."""
    root, *attributes = spelt.split(".")
    value = source.resolve(root)
    for attribute in attributes:
        if not isinstance(value, types.ModuleType):
            return False
        value = getattr(value, attribute)
    return True


def _watch_names(found: Watch, source: SourceFunction, words: set[str]) -> None:
    """Note where the words of a function's captured chains come from: cells, globals, modules."""
    function = source.fn
    for cell in function.__closure__ or ():
        found.cells.append((cell, _content(cell)))
    namespaces = [function.__globals__]
    known: set[int] = set()
    while namespaces:
        namespace = namespaces.pop()
        if id(namespace) in known:
            continue
        known.add(id(namespace))
        for name in words & namespace.keys():
            value = namespace[name]
            found.names.append((namespace, name, value))
            if isinstance(value, types.ModuleType) and value.__name__.split(".")[0] != "warploom":
                namespaces.append(vars(value))


def _is_fixed(value: Any) -> bool:
    if type(value) is tuple:
        return all(_is_fixed(v) for v in value)
    if isinstance(value, enum.Enum):
        return _is_fixed(value.value)
    if isinstance(value, Struct):
        held = [f.default for f in value.fields.values() if not f.required]
        return all(_is_fixed(v) for v in (*held, *value.constants.values()))
    return isinstance(value, _FIXED)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING

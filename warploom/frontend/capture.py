"""What a kernel takes from around it: globals and closure as constants, and functions it reaches.

The same rules decide what the front end may read and what the cache key must hold. Knows no launch.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import math
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from warploom.base.dtypes import DType
from warploom.frontend.scopes import assigned
from warploom.frontend.source import SourceFunction, read
from warploom.language.function import Function
from warploom.language.structs import Struct


class NotConstant(Exception):
    """A value that cannot be a constant of a kernel; the message says what it is."""


def is_kernel(value: Any) -> bool:
    """Whether a value is a kernel object of the runtime."""
    return getattr(type(value), "__warploom__", "") == "kernel"


def admit(value: Any) -> Any:
    """A captured value as a constant of the kernel; raises NotConstant.

    NumPy scalars become Python numbers. Containers are admitted whole or not at all.
    """
    if value is None or isinstance(value, bool | int | float | str | DType | Function | Struct):
        return value
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return value.item()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(admit(v) for v in value))
    if isinstance(value, tuple | list):
        return tuple(admit(v) for v in value)
    if isinstance(value, enum.Enum | types.ModuleType | type | types.FunctionType):
        return value
    if dataclasses.is_dataclass(value) and type(value).__hash__ is not None:
        for field in dataclasses.fields(value):
            admit(getattr(value, field.name))
        return value
    if callable(value):
        return value
    raise NotConstant(f"a value of type {type(value).__module__}.{type(value).__qualname__}")


def canonical(value: Any) -> str:
    """A constant as text, equal for equal constants; functions by name (their source is a part)."""
    if isinstance(value, Struct):
        return _canonical_struct(value)
    if isinstance(value, Function):
        fn = value.__wrapped__
        return f"function {fn.__module__}.{fn.__qualname__}"
    if isinstance(value, DType):
        return f"dtype {value.name}"
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name} = {canonical(value.value)}"
    if isinstance(value, tuple | list):
        return f"({', '.join(canonical(v) for v in value)})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        inside = ", ".join(f"{f.name}={canonical(getattr(value, f.name))}" for f in fields)
        return f"{type(value).__qualname__}({inside})"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, type) and value.__module__ != "builtins":
        held = data_of(value).items()
        inside = ", ".join(f"{name}={canonical(v)}" for name, v in held)
        return f"class {value.__module__}.{value.__qualname__}({inside})"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{type(value).__name__} {getattr(value, '__module__', '')}.{name}"


def _canonical_struct(value: Struct) -> str:
    """A struct by name, with its fields and constants; its methods' sources are parts."""
    fields = (
        f"{f.name}: {canonical(f.kind)}" + ("" if f.required else f" = {canonical(f.default)}")
        for f in value.fields.values()
    )
    constants = (f"{name} = {canonical(v)}" for name, v in value.constants.items())
    inside = ", ".join((*fields, *constants))
    return f"struct {value.__module__}.{value.__qualname__}({inside})"


def class_constants(cls: type) -> dict[str, Any]:
    """What a kernel may read of a class: its own numbers, texts, dtypes and tuples of these."""
    plain = (bool, int, float, str, DType, tuple, np.generic, type(None))
    found = {n: v for n, v in vars(cls).items() if n[:1] != "_" and isinstance(v, plain)}
    return dict(sorted(found.items()))


def data_of(value: Any) -> dict[str, Any]:
    """The attributes of a constant that a kernel may read: exactly those that `canonical` shows."""
    if isinstance(value, enum.Enum):
        return {"name": value.name, "value": value.value}
    if isinstance(value, enum.EnumType):
        return dict(value.__members__)
    if isinstance(value, type):
        return class_constants(value)
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return dict(zip(getattr(value, "_fields", ()), value, strict=False))
    return {}


def source_key_parts(
    fn: Callable[..., Any], constants: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    """(name, text) of all that shapes the IR of a kernel besides its arguments' types and options.

    The source of the function and of every function that it reaches, by name, through constants and
    through captured values, with file and line; each captured value and each constant. Raises
    CompileError where a source is not available.
    """
    parts: dict[str, str] = {}
    todo: list[Callable[..., Any]] = [fn]
    seen: set[Any] = set()
    for name, value in sorted(constants.items()):
        parts[f"constant {name}"] = canonical(value)
        todo += functions_in(value)
    while todo:
        source = read(todo.pop(0))
        if source in seen:
            continue
        seen.add(source)
        name = f"{source.fn.__module__}.{source.fn.__qualname__}"
        parts[f"source {name} at {source.file}:{source.line}"] = source.text
        defaults = (source.fn.__defaults__, tuple((source.fn.__kwdefaults__ or {}).items()))
        parts[f"defaults {name}"] = canonical(defaults)
        todo += functions_in(defaults)
        for spelt, value in captured(source).items():
            parts[f"captured {name} {spelt}"] = canonical(value)
            todo += functions_in(value)
    return tuple(parts.items())


def functions_in(value: Any) -> list[Callable[..., Any]]:
    """The `wl.function`s inside a constant, and the methods of structs."""
    if isinstance(value, Function):
        return [value]
    if isinstance(value, Struct):
        inner = [f for field in value.fields.values() for f in functions_in(field.kind)]
        return [*value.methods.values(), *inner]
    if isinstance(value, tuple | list):
        return [f for v in value for f in functions_in(v)]
    return []


def captured(source: SourceFunction) -> dict[str, Any]:
    """The values around a function that its text names, by spelling: `BLOCK`, `config.BLOCK`.

    Names that are not bound yet, builtins, and names of this package are left out; its own source
    is part of every key anyhow.
    """
    chains = source.cache.get("chains")
    if chains is None:
        chains = source.cache["chains"] = _chains(source.tree)
    found: dict[str, Any] = {}
    for chain in chains:
        try:
            value = source.resolve(chain[0])
        except KeyError:
            continue
        spelt = chain[0]
        for attribute in chain[1:]:
            if not hasattr(value, attribute):
                break
            inner = getattr(value, attribute)
            if callable(inner) and not isinstance(value, types.ModuleType):
                # A method: the front end takes constants from objects, nothing else.
                break
            value = inner
            spelt += f".{attribute}"
        if not _is_known(value):
            found[spelt] = value
    return found


def _is_known(value: Any) -> bool:
    """Builtins, modules, and what this package itself defines but for marked functions of users."""
    if isinstance(value, Function | Struct):
        return False
    if isinstance(value, types.ModuleType | types.BuiltinFunctionType):
        return True
    module = getattr(value, "__module__", None) or ""
    if isinstance(value, type | types.FunctionType):
        return module == "builtins" or module.split(".")[0] == "warploom"
    return False


def _chains(tree: ast.FunctionDef) -> tuple[tuple[str, ...], ...]:
    """Every name that is read but never bound in the function, with the attributes behind it."""
    parameters = {a.arg for a in ast.walk(tree.args) if isinstance(a, ast.arg)}
    bound = parameters | assigned(tree.body)
    chains: dict[tuple[str, ...], None] = {}
    inner: set[ast.AST] = set()
    for statement in tree.body:
        # `walk` gives outer nodes first, so the longest chain of attributes is seen first.
        for node in ast.walk(statement):
            if node in inner:
                continue
            chain: list[str] = []
            at: ast.AST = node
            while isinstance(at, ast.Attribute):
                chain.append(at.attr)
                at = at.value
                inner.add(at)
            if isinstance(at, ast.Name) and isinstance(at.ctx, ast.Load) and at.id not in bound:
                chains[(at.id, *reversed(chain))] = None
    return tuple(chains)

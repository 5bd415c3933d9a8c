"""Parameters of a kernel from its annotations. Knows no arguments: binding is the runtime's."""

from __future__ import annotations

import ast
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from warploom.base.diagnostics import Report
from warploom.base.dtypes import DType
from warploom.base.errors import CompileError, report
from warploom.frontend.source import SourceFunction, read
from warploom.ir.op import Loc
from warploom.language.types import SCALARS, Tensor, const


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


# The default of a parameter without one.
MISSING: Final = _Missing()

_HINT = "annotate it: `wl.Tensor`, `wl.i32`, `wl.i64`, `wl.f32`, `wl.f64` or `wl.const`"
_PYTHON_TYPES = {int: "wl.i32", float: "wl.f32"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `dtype` belongs to scalars; only a constant has a default besides None."""

    name: str
    kind: Literal["tensor", "scalar", "const"]
    dtype: DType | None = None
    default: Any = MISSING


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a kernel in order."""

    name: str
    parameters: tuple[Parameter, ...]
    source: SourceFunction

    def __iter__(self) -> typing.Iterator[Parameter]:
        return iter(self.parameters)


def parse_signature(fn: Callable[..., Any]) -> Signature:
    """The parameters of a kernel; raises CompileError F001 to F006 with all that is wrong."""
    source = read(fn)
    reports: list[Report] = []
    nodes = source.tree.args
    for star, mark in ((nodes.vararg, "*"), (nodes.kwarg, "**")):
        if star is not None:
            reports.append(
                report(
                    "F006",
                    f"`{mark}{star.arg}`: a kernel has a fixed list of parameters",
                    source.place(star),
                    hint="name each parameter",
                )
            )
    places = {
        node.arg: source.place(node)
        for node in (*nodes.posonlyargs, *nodes.args, *nodes.kwonlyargs)
    }
    found: list[Parameter] = []
    for name, given in inspect.signature(source.fn).parameters.items():
        if name not in places:
            continue
        parsed = _parameter(source, given, places[name])
        if isinstance(parsed, Report):
            reports.append(parsed)
        else:
            found.append(parsed)
    if reports:
        raise CompileError(*reports)
    return Signature(source.name, tuple(found), source)


def _parameter(source: SourceFunction, given: inspect.Parameter, place: Loc) -> Parameter | Report:
    name = given.name
    default = MISSING if given.default is inspect.Parameter.empty else given.default
    annotation = given.annotation
    if annotation is inspect.Parameter.empty:
        return report("F005", f"the parameter `{name}` has no annotation", place, hint=_HINT)
    if isinstance(annotation, str):
        try:
            annotation = _evaluate(source, annotation)
        except Exception as problem:
            return report(
                "F005",
                f"the annotation of `{name}` cannot be evaluated",
                place,
                notes=[f"{type(problem).__name__}: {problem}"],
                hint=_HINT,
            )
    if annotation is const:
        return Parameter(name, "const", None, default)
    tensor = annotation is Tensor or _is_optional_tensor(annotation)
    scalar = annotation if isinstance(annotation, DType) and annotation in SCALARS else None
    if not tensor and scalar is None:
        shown = annotation.__name__ if isinstance(annotation, type) else repr(annotation)
        better = _PYTHON_TYPES.get(annotation) if isinstance(annotation, type) else None
        return report(
            "F005",
            f"the parameter `{name}` is annotated with `{shown}`, which is no kind of parameter",
            place,
            hint=f"write `{better}` or `wl.const`" if better else _HINT,
        )
    if default is not MISSING and default is not None:
        return report(
            "F006",
            f"the parameter `{name}` has a default other than None, which only `wl.const` "
            "parameters have",
            place,
            hint="remove the default, or make it None",
        )
    if tensor:
        return Parameter(name, "tensor", None, default)
    return Parameter(name, "scalar", scalar, default)


def _is_optional_tensor(annotation: Any) -> bool:
    """`wl.Tensor | None`, or `Optional[wl.Tensor]`."""
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return False
    return set(typing.get_args(annotation)) == {Tensor, type(None)}


def _evaluate(source: SourceFunction, text: str) -> Any:
    """An annotation that `from __future__ import annotations` left as text."""
    node = ast.parse(text, mode="eval").body
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    known: dict[str, Any] = {}
    for name in names:
        try:
            known[name] = source.resolve(name)
        except KeyError:
            raise NameError(f"name {name!r} is not defined") from None
    return eval(compile(ast.Expression(node), "<annotation>", "eval"), known)

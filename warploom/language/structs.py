"""`wl.struct`: named fields with methods, as one value of a kernel. Knows nothing of how a method
is read.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast, dataclass_transform

from warploom.base.diagnostics import Span
from warploom.base.dtypes import DType
from warploom.base.errors import Error, error
from warploom.language import core
from warploom.language.context import Handle, Refused
from warploom.language.function import Function
from warploom.language.types import const
from warploom.language.values import Scalar, Tensor, kind_of

T = TypeVar("T")

_MISSING = object()
# Kinds of field that Python's own types stand for: numbers and scalars of any width.
_NUMBERS = {int: "an integer", float: "a float", bool: "a bool"}
_HINT = (
    "fields are annotated with wl.const, wl.Tensor, a dtype, int, float, bool, another struct, or "
    "object for everything else"
)


class Method(Function):
    """A function of a struct; `self` is its first parameter."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field as declared: its name, its annotation, and its default."""

    name: str
    kind: Any
    default: Any = _MISSING

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is _MISSING


class Struct:
    """A class under `@wl.struct`: what kernels call to make a value of it."""

    def __init__(self, cls: type) -> None:
        self.__name__ = cls.__name__
        self.__qualname__ = cls.__qualname__
        self.__module__ = cls.__module__
        self.__doc__ = cls.__doc__
        self.fields: dict[str, Field] = {}
        self.methods: dict[str, Method] = {}
        self.constants: dict[str, Any] = {}
        _read(self, cls)

    def __repr__(self) -> str:
        return f"<wl.struct {self.__qualname__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: on the host there is nothing to make."""
        raise error(
            "F034",
            f"the struct `{self.__name__}` was made outside a kernel",
            hint="make it in a function under `@wl.kernel`",
        )

    def parameters(self) -> inspect.Signature:
        """The fields as parameters of a call, in the order in which they are declared."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [
                inspect.Parameter(
                    f.name, kind, default=inspect.Parameter.empty if f.required else f.default
                )
                for f in self.fields.values()
            ]
        )


class Instance(Handle):
    """A value of a struct: its fields by name, its methods, and `replace`."""

    attributes = ("replace",)

    def __init__(self, struct: Struct, values: Mapping[str, Any]) -> None:
        self.struct = struct
        self.values = dict(values)

    def __repr__(self) -> str:
        name = self.struct.__name__
        return f"{'an' if name[0] in 'AEIOU' else 'a'} `{name}`"

    def replace(self, **fields: Any) -> Instance:
        """The same with other values in some fields; a struct itself never changes.

        Shapes: any.
        Executes: nothing by itself.
        Since: sm_80.
        """
        unknown = [name for name in fields if name not in self.struct.fields]
        if unknown:
            raise Refused(
                "F026",
                f"`{self.struct.__name__}` has no field `{unknown[0]}`",
                argument=unknown[0],
                notes=(f"its fields: {', '.join(self.struct.fields)}",),
                hint="name a field of its annotations",
            )
        return Instance(self.struct, self.values | fitted(self.struct, fields))


@dataclass(frozen=True, slots=True)
class Bound:
    """A method of a value: `s.next`."""

    method: Method
    owner: Instance


def fitted(struct: Struct, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values as the fields of these names hold them; refuses one that is of another kind."""
    return {name: _fitted(struct, struct.fields[name], value) for name, value in given.items()}


def _fitted(struct: Struct, field: Field, value: Any) -> Any:
    kind = field.kind
    if value is None and field.default is None:
        return None
    if kind is const and isinstance(value, _RUN_TIME):
        raise Refused(
            "F027",
            f"the field `{field.name}` of `{struct.__name__}` must be known at compile time",
            argument=field.name,
            label=kind_of(value),
            hint="annotate it with a dtype or `int` to hold run-time scalars",
        )
    if kind is const or kind is object:
        return value
    if isinstance(kind, DType):
        return _scalar(struct, field, kind, value)
    if kind in _NUMBERS:
        dtype = value.dtype if isinstance(value, Scalar) else _natural(value)
        if dtype is not None and _alike(kind, dtype):
            return value
        raise _unfit(struct, field, _NUMBERS[kind], value)
    if kind is Tensor:
        if isinstance(value, Tensor):
            return value
        raise _unfit(struct, field, "a tensor", value)
    if isinstance(value, Instance) and value.struct is kind:
        return value
    raise _unfit(struct, field, f"a `{kind.__name__}`", value)


_RUN_TIME = (Scalar, Tensor, Handle)


def _natural(value: Any) -> DType | None:
    return core.natural_dtype(value) if isinstance(value, bool | int | float) else None


def _alike(kind: type, dtype: DType) -> bool:
    return {int: dtype.is_int, float: dtype.is_float, bool: dtype.is_bool}[kind]


def _scalar(struct: Struct, field: Field, dtype: DType, value: Any) -> Scalar:
    """A scalar field of one dtype: numbers become it, a narrower integer is widened."""
    if isinstance(value, Scalar):
        if core.joined_dtype(dtype, value.dtype) == dtype:
            return Scalar(core.convert(value.value, dtype))
    elif isinstance(value, bool | int | float):
        natural = core.natural_dtype(value)
        if natural.is_bool == dtype.is_bool and (dtype.is_float or not natural.is_float):
            return Scalar(core.literal(float(value) if dtype.is_float else value, dtype))
    raise _unfit(struct, field, f"{core.with_article(dtype)} scalar", value)


def _unfit(struct: Struct, field: Field, wanted: str, value: Any) -> Refused:
    cast = isinstance(value, Scalar) and isinstance(field.kind, DType)
    return Refused(
        "T015",
        f"the field `{field.name}` of `{struct.__name__}` is {wanted}, not {kind_of(value)}",
        argument=field.name,
        label=kind_of(value),
        hint=f"cast it: `.cast(wl.{field.kind})`" if cast else "",
    )


# --- the class ---------------------------------------------------------------------------------


def _read(struct: Struct, cls: type) -> None:
    """Fields from annotations, methods from functions, constants from the rest."""
    if cls.__bases__ != (object,):
        raise _refused(cls, "has a base class", "structs inherit nothing: hold one in a field")
    for name, annotation in inspect.get_annotations(cls).items():
        if isinstance(annotation, str):
            annotation = _evaluated(cls, name, annotation)
        default = vars(cls).get(name, _MISSING)
        if isinstance(default, types.MemberDescriptorType):
            default = _MISSING
        struct.fields[name] = Field(name, _kind(cls, name, annotation), default)
    for name, value in vars(cls).items():
        if name in struct.fields or (name[:2] == "__" and name != "__init__"):
            continue
        if isinstance(value, types.FunctionType) and name != "__init__":
            struct.methods[name] = Method(value)
        elif callable(value) or isinstance(value, property | staticmethod | classmethod):
            what = f"`{name}`" if callable(value) else f"`{name}`, a {type(value).__name__}"
            raise _refused(cls, f"holds {what}", "a struct has fields, constants and methods")
        else:
            struct.constants[name] = value
    taken = [n for n in (*struct.fields, *struct.methods) if n in Instance.attributes]
    if taken:
        raise _refused(cls, f"names something `{taken[0]}`", "that is a method of every struct")


def _evaluated(cls: type, name: str, text: str) -> Any:
    """An annotation that `from __future__ import annotations` left as text."""
    try:
        return eval(text, vars(sys.modules[cls.__module__]), dict(vars(cls)))
    except Exception as problem:
        what = f"has a field `{name}` whose annotation cannot be evaluated"
        raise _refused(cls, what, _HINT, f"{type(problem).__name__}: {problem}") from None


def _kind(cls: type, name: str, annotation: Any) -> Any:
    """What a field may hold, from its annotation."""
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        others = [a for a in typing.get_args(annotation) if a is not type(None)]
        annotation = others[0] if len(others) == 1 else annotation
    known = (const, Tensor, object, *_NUMBERS)
    if annotation is Any:
        return object
    if isinstance(annotation, DType | Struct) or any(annotation is k for k in known):
        return annotation
    shown = annotation.__name__ if isinstance(annotation, type) else repr(annotation)
    raise _refused(cls, f"has a field `{name}` of an unknown kind, `{shown}`", _HINT)


def _refused(cls: type, what: str, hint: str, note: str = "") -> Error:
    try:
        file, line = inspect.getsourcefile(cls), inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        file, line = None, 0
    places = [Span(file, line)] if file else []
    notes = [note] if note else []
    return error("F043", f"the struct `{cls.__name__}` {what}", *places, notes=notes, hint=hint)


@dataclass_transform(frozen_default=True)
def struct(cls: type[T]) -> type[T]:
    """Make a class a struct: a value of several fields that kernels make, pass on and carry.

    Fields are annotated names, in order, with defaults if you like: `wl.const` for what is known at
    compile time, a dtype for a scalar of this type, `int`, `float` or `bool` for numbers and
    scalars of any width, `wl.Tensor`, another struct, or `object` for tiles, buffers, barriers and
    pipes. Methods are inlined where they are called. A struct never changes: `s.replace(field=…)`
    gives another one. Loops carry it field by field.

    Shapes: any.
    Executes: the caller.
    Since: sm_80.
    """
    if not isinstance(cls, type):
        raise error("F043", "`wl.struct` marks a class", hint="`wl.function` marks a function")
    # To readers and checkers it stays the class that it describes.
    return cast(type[T], Struct(cls))

"""Values that cross the edge of a run-time loop or branch: taken apart into IR values, and rebuilt.

Tiles, scalars and numbers are leaves; tuples, lists and structs of them keep their form;
everything else (texts, None, dtypes, tensors, functions) exists at compile time only and has to be
the same on every way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from warploom.base.dtypes import DType
from warploom.ir import types
from warploom.ir.op import Value
from warploom.language import core
from warploom.language.product import Pending, begun
from warploom.language.structs import Instance, Struct
from warploom.language.types import const
from warploom.language.values import Scalar, Tile, kind_of, wrap


@dataclass(frozen=True, slots=True)
class Leaf:
    """One tile, scalar or number."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Something that exists at compile time only."""

    value: Any


@dataclass(frozen=True, slots=True)
class Many:
    """A tuple or list."""

    kind: type
    parts: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A struct, with the forms of its fields in order."""

    struct: Struct
    parts: tuple[Form, ...]


Form: TypeAlias = Leaf | Fixed | Many | Record
LEAF = Leaf()


class Differs(Exception):
    """Two values that cannot be one; `detail` says what the second is, in words."""

    def __init__(self, first: str, second: str, compile_time: bool = False, path: str = "") -> None:
        super().__init__(f"{first} and {second}")
        self.first = first
        self.second = second
        self.compile_time = compile_time
        self.path = path  # of fields to where they differ


def split(value: Any) -> tuple[Form, list[Any]]:
    """The form of a value, and its leaves in order."""
    if isinstance(value, Tile | Scalar | Pending | bool | int | float):
        return LEAF, [value]
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        parts, leaves = [], []
        for part in value:
            form, inner = split(part)
            parts.append(form)
            leaves += inner
        return Many(type(value), tuple(parts)), leaves
    if isinstance(value, Instance):
        return _split_fields(value)
    return Fixed(value), []


def _split_fields(value: Instance) -> tuple[Form, list[Any]]:
    """Constants of a struct stay constants, whatever they are."""
    parts, leaves = [], []
    for field in value.struct.fields.values():
        held = value.values[field.name]
        form, inner = (Fixed(held), []) if field.kind is const else split(held)
        parts.append(form)
        leaves += inner
    return Record(value.struct, tuple(parts)), leaves


def join(form: Form, leaves: Iterator[Any]) -> Any:
    """A value of a form from leaves in order."""
    if isinstance(form, Leaf):
        return next(leaves)
    if isinstance(form, Fixed):
        return form.value
    parts = [join(part, leaves) for part in form.parts]
    if isinstance(form, Record):
        return Instance(form.struct, dict(zip(form.struct.fields, parts, strict=True)))
    return form.kind(parts)


def same_form(a: Form, b: Form) -> bool:
    """Whether two values differ in leaves only."""
    if isinstance(a, Fixed) and isinstance(b, Fixed):
        return a.value is b.value or (type(a.value) is type(b.value) and bool(a.value == b.value))
    if isinstance(a, Record) and isinstance(b, Record):
        pairs = zip(a.parts, b.parts, strict=False)
        return a.struct is b.struct and all(same_form(x, y) for x, y in pairs)
    if isinstance(a, Many) and isinstance(b, Many):
        return (
            a.kind is b.kind
            and len(a.parts) == len(b.parts)
            and all(same_form(x, y) for x, y in zip(a.parts, b.parts, strict=True))
        )
    return isinstance(a, Leaf) and isinstance(b, Leaf)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two values differ in form: the path of fields to it, what stands there, and whether
    each exists at compile time only."""

    path: str
    first: Any
    second: Any
    fixed: tuple[bool, bool]


def difference(a: Any, b: Any) -> Difference:
    """The first difference of two values of one struct; other values differ as a whole."""
    return _difference("", (a, split(a)[0]), (b, split(b)[0]))


def _difference(path: str, a: tuple[Any, Form], b: tuple[Any, Form]) -> Difference:
    (first, form), (second, other) = a, b
    if isinstance(form, Record) and isinstance(other, Record) and form.struct is other.struct:
        for name, x, y in zip(form.struct.fields, form.parts, other.parts, strict=True):
            if not same_form(x, y):
                inner = (first.values[name], x), (second.values[name], y)
                return _difference(f"{path}.{name}", *inner)
    return Difference(path, first, second, (isinstance(form, Fixed), isinstance(other, Fixed)))


def settled_type(value: Value) -> types.Type:
    """The type of a tile as it is when nothing is in flight."""
    type = value.type
    return replace(type, pending=False) if isinstance(type, types.Tile) else type


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a number of Python, which has no dtype yet."""
    return isinstance(leaf, bool | int | float)


def is_same_number(a: Any, b: Any) -> bool:
    """Whether two leaves are one and the same number of Python; -0.0 is not 0.0, NaN is NaN."""
    return is_number(a) and type(a) is type(b) and repr(a) == repr(b)


def leaf_value(leaf: Any, dtype: DType | None = None) -> Value:
    """The IR value of a leaf; numbers take `dtype` or their natural one."""
    return core.materialise(
        leaf.value if isinstance(leaf, Tile | Scalar | Pending) else leaf, dtype
    )


def leaf_as(leaf: Any, type: types.Type) -> Value:
    """The IR value of a leaf that is carried with this type, which it can have without loss."""
    if isinstance(type, types.Tile) and type.pending:
        return begun(leaf)
    assert isinstance(type, types.Scalar | types.Tile)
    return converted(leaf, type.dtype)


def leaf_text(leaf: Any) -> str:
    """What a leaf is, in words, without its name."""
    if isinstance(leaf, list | tuple):
        return f"{kind_of(leaf)} of length {len(leaf)}"
    return kind_of(leaf)


def _tile_dtype(a: Any, b: Any) -> DType | None:
    """The dtype of two tiles of one shape; an accumulator may be pending on one way only."""
    if not isinstance(a, Tile | Pending) or not isinstance(b, Tile | Pending):
        return None
    if isinstance(a, Pending) or isinstance(b, Pending):
        same = settled_type(a.value) == settled_type(b.value)
        return core.dtype_of(a.value) if same else None
    return core.joined_dtype(a.dtype, b.dtype) if a.shape == b.shape else None


def joint_dtype(a: Any, b: Any) -> DType | None:
    """The dtype that two leaves get, None for two equal numbers, which stay one; raises Differs."""
    if is_number(a) and is_number(b):
        if is_same_number(a, b):
            return None
        first, second = core.natural_dtype(a), core.natural_dtype(b)
        if first.is_bool != second.is_bool:
            raise Differs(leaf_text(a), leaf_text(b))
        return max(first, second, key=lambda t: (t.is_float, t.bits))
    if isinstance(a, Tile | Pending) or isinstance(b, Tile | Pending):
        dtype = _tile_dtype(a, b)
        if dtype is None:
            raise Differs(leaf_text(a), leaf_text(b))
        return dtype
    for known, other in ((a, b), (b, a)):
        if is_number(other):
            dtype = known.dtype
            natural = core.natural_dtype(other)
            if dtype.is_bool != natural.is_bool or (natural.is_float and not dtype.is_float):
                raise Differs(leaf_text(a), leaf_text(b))
            return dtype
    dtype = core.joined_dtype(a.dtype, b.dtype)
    if dtype is None:
        raise Differs(leaf_text(a), leaf_text(b))
    return dtype


def converted(leaf: Any, dtype: DType) -> Value:
    """A leaf as an IR value of a dtype that it can have without loss."""
    return core.convert(leaf_value(leaf, dtype), dtype)


def uniform(value: Value) -> types.Uniformity:
    """The uniformity of a scalar; tiles count as the block's."""
    if isinstance(value.type, types.Scalar):
        return value.type.uniform
    return types.Uniformity.BLOCK


def rewrap(value: Value, name: str) -> Any:
    """The wrapper of an IR value that stands for a name."""
    if not value.name:
        value.name = name
    if isinstance(value.type, types.Tile) and value.type.pending:
        return Pending(value)
    return wrap(value)

"""Structs in a kernel: made by a call of the class, asked for fields and methods."""

from __future__ import annotations

import ast
from typing import Any

from warploom.frontend.frame import Frame, Problem, nearest
from warploom.language.context import Refused
from warploom.language.product import Pending
from warploom.language.structs import Bound, Instance, Struct, fitted
from warploom.language.values import Scalar, Tile


def make(
    frame: Frame,
    struct: Struct,
    positional: list[Any],
    named: dict[str, Any],
    node: ast.Call,
    places: list[ast.AST],
) -> Instance:
    """`Name(…)`: a value with these fields."""
    try:
        bound = struct.parameters().bind(*positional, **named)
    except TypeError as unfit:
        fields = ", ".join(f.name for f in struct.fields.values())
        raise frame.problem(
            "F026",
            f"the call of `{ast.unparse(node.func)}` does not fit: {unfit}",
            node,
            notes=[f"it is `{struct.__name__}({fields})`"],
        ) from None
    bound.apply_defaults()
    given: dict[str, ast.AST] = dict(zip(struct.fields, places, strict=False))
    given |= {k.arg: k.value for k in node.keywords if k.arg}
    try:
        values = fitted(struct, bound.arguments)
    except Refused as refused:
        raise frame.located(refused, node, given) from None
    for name, value in values.items():
        if isinstance(value, Tile | Scalar | Pending) and not value.value.name:
            value.value.name = name
    return Instance(struct, values)


def attribute(frame: Frame, owner: Instance, node: ast.Attribute) -> Any:
    """`s.name`: a field, a constant of the class, or a method."""
    name, struct = node.attr, owner.struct
    if name in owner.values:
        return owner.values[name]
    if name in struct.methods:
        return Bound(struct.methods[name], owner)
    if name in struct.constants:
        return frame.constant(struct.constants[name], node)
    if name in Instance.attributes:
        return getattr(owner, name)
    raise missing(frame, owner, node)


def missing(frame: Frame, owner: Instance, node: ast.Attribute) -> Problem:
    """The refusal of a name that a struct does not have."""
    struct = owner.struct
    known = (*struct.fields, *struct.methods, *struct.constants, *Instance.attributes)
    near = nearest(node.attr, known)
    return frame.problem(
        "F025",
        f"{owner!r} has no `{node.attr}`",
        node,
        notes=[f"it has: {', '.join(known)}"],
        hint=f"did you mean `.{near}`?" if near else "",
    )

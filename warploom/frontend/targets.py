"""The left side of `=`: names, tuples of names, items of lists. And what can be listed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from warploom.frontend.frame import Frame, Problem, evaluate, need_constant
from warploom.language.barrier import Barrier
from warploom.language.control import Unroll
from warploom.language.item import Item
from warploom.language.product import Pending
from warploom.language.roles import Joint
from warploom.language.shared import Shared
from warploom.language.structs import Instance
from warploom.language.values import Extents, Scalar, Tensor, Tile, kind_of

# Kinds of value whose IR value takes the name that it is bound to.
_NAMED = (Tile, Scalar, Pending, Shared, Barrier)


def as_sequence(value: Any) -> Sequence[Any] | None:
    """The items of what can be listed at compile time, or None."""
    if isinstance(value, tuple | list | range):
        return value
    if isinstance(value, Unroll):
        return value.numbers
    if isinstance(value, Extents | Item):
        return list(value)
    return None


def assign(frame: Frame, target: ast.expr, value: Any, source: ast.expr) -> None:
    """Bind a target to a value; `source` is the expression that gave it."""
    if isinstance(target, ast.Name):
        if isinstance(value, list) and isinstance(source, ast.Name):
            raise frame.problem(
                "F041",
                f"`{target.id}` and `{source.id}` would be one list",
                source,
                hint=f"copy it: `{target.id} = list({source.id})`",
            )
        if isinstance(value, _NAMED) and not value.value.name:
            value.value.name = target.id
        if isinstance(value, Joint):
            value.call(target.id)
        frame.bind(target.id, value, target)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target, value, source)
    elif isinstance(target, ast.Subscript):
        _set_item(frame, target, value)
    elif isinstance(target, ast.Attribute) and isinstance(
        owner := evaluate(frame, target.value), Instance
    ):
        raise _field(frame, target, owner)
    else:
        raise frame.problem(
            "F035",
            "only names and items of lists can be assigned",
            target,
            hint="tiles and scalars never change: bind a new name",
        )


def _field(frame: Frame, target: ast.Attribute, owner: Instance) -> Problem:
    spelt = ast.unparse(target.value)
    return frame.problem(
        "F035",
        f"{owner!r} never changes: `{target.attr}` is not assigned",
        target,
        hint=f"bind another one: `{spelt} = {spelt}.replace({target.attr}=…)`",
    )


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Any, source: ast.expr) -> None:
    items = as_sequence(value)
    if items is None:
        raise frame.problem(
            "F032",
            "this cannot be unpacked",
            source,
            label=kind_of(value),
            hint="tuples, lists and structs of known length can be",
        )
    if any(isinstance(t, ast.Starred) for t in target.elts):
        raise frame.problem(
            "F032",
            "`*` on the left of `=` is not supported",
            target,
            hint="take the rest by a slice: `rest = parts[1:]`",
        )
    if len(items) != len(target.elts):
        raise frame.problem(
            "F032",
            f"{len(target.elts)} names for {len(items)} values",
            target,
            notes=[f"the right side is {kind_of(value)} of {len(items)}"],
            hint="write as many names as there are values",
        )
    inner = source.elts if isinstance(source, ast.Tuple | ast.List) else []
    for at, (part, item) in enumerate(zip(target.elts, items, strict=True)):
        assign(frame, part, item, inner[at] if len(inner) == len(items) else source)


def _set_item(frame: Frame, target: ast.Subscript, value: Any) -> None:
    """`parts[i] = t` for a list; everything else never changes."""
    owner = evaluate(frame, target.value)
    if isinstance(owner, Tensor):
        raise frame.problem(
            "F035",
            "a tensor is not written by assignment",
            target,
            hint=f"`wl.store({ast.unparse(target)}, …)`",
        )
    if isinstance(owner, Tile):
        raise frame.problem(
            "F035",
            "a tile never changes: there is no assignment to a part of it",
            target,
            hint="`wl.where(condition, a, b)` chooses element by element, `wl.cat` joins parts",
        )
    if not isinstance(owner, list) or not isinstance(target.value, ast.Name):
        raise frame.problem(
            "F035",
            "only items of a list with a name can be assigned",
            target,
            label=kind_of(owner),
            hint="bind a name to the list first",
        )
    index = evaluate(frame, target.slice)
    if isinstance(index, Scalar | Tile):
        hint = "`wl.unroll(n)` counts with constants"
        need_constant(frame, index, "an index of a list", target.slice, hint)
    if isinstance(index, bool) or not isinstance(index, int):
        raise frame.problem("T015", f"an index is an integer, not {kind_of(index)}", target.slice)
    if not -len(owner) <= index < len(owner):
        raise frame.problem(
            "F037",
            f"index {index} is outside a list of {len(owner)}",
            target.slice,
            hint="a list does not grow by assignment: `parts.append(t)`",
        )
    # The name gets a new list, so that branches and loops see an assignment.
    changed = list(owner)
    changed[index] = value
    frame.bind(target.value.id, changed, target)

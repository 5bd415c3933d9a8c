"""`if` and conditional expressions. A constant condition takes one way; the other is not read."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from warploom.base.diagnostics import Span
from warploom.base.dtypes import boolean
from warploom.frontend.carried import (
    Differs,
    converted,
    difference,
    is_number,
    join,
    joint_dtype,
    rewrap,
    same_form,
    split,
)
from warploom.frontend.frame import (
    POISON,
    Frame,
    Problem,
    Silenced,
    Unbound,
    evaluate,
    execute,
    expression,
    statement,
)
from warploom.frontend.scopes import assigned, assigned_in
from warploom.ir.op import Block, Loc, Value
from warploom.ir.ops import control
from warploom.ir.ops import scalar as scalars
from warploom.language import core
from warploom.language.context import Handle
from warploom.language.product import Pending, begun
from warploom.language.values import Scalar, Tensor, Tile, Window, kind_of


def truth(frame: Frame, value: Any, node: ast.AST) -> bool | Scalar:
    """A condition: a bool where it is known at compile time, else a bool scalar."""
    if isinstance(value, Scalar):
        if value.dtype.is_bool:
            return value
        frame.at(node)
        return Scalar(core.compare("ne", value.value, 0))
    if isinstance(value, Tile):
        hint = "`wl.where(condition, a, b)` chooses element by element"
        if value.shape == ():
            hint = "`wl.scalar(t)` turns a tile of shape () into a scalar"
        elif value.dtype.is_bool:
            hint += "; `wl.any` and `wl.all` reduce a tile of one axis"
        raise frame.problem(
            "F030", "a condition is one value, not a tile", node, label=kind_of(value), hint=hint
        )
    if isinstance(value, Handle):
        raise frame.problem(
            "F030",
            f"a condition is one value, not {value!r}",
            node,
            label=kind_of(value),
            hint="ask for one of its fields",
        )
    if isinstance(value, Tensor | Window):
        raise frame.problem(
            "F030",
            "a condition is one value, not a tensor",
            node,
            label=kind_of(value),
            hint="`x is not None` asks whether an argument was given",
        )
    return bool(value)


@statement(ast.If)
def if_statement(frame: Frame, node: ast.If) -> None:
    """Take one way at compile time, or build both."""
    try:
        condition = truth(frame, evaluate(frame, node.test), node.test)
    except (Problem, Silenced) as problem:
        # Look at both ways for further mistakes, then forget them.
        if isinstance(problem, Problem):
            frame.reports.add(problem.report)
        frame.poison(assigned([node.test]))  # by `:=`, which was refused
        for branch in (node.body, node.orelse):
            _scratch(frame, branch)
        frame.poison(assigned_in(frame.source, node))
        return
    if isinstance(condition, bool):
        execute(frame, node.body if condition else node.orelse)
        return
    before = dict(frame.names)
    then, orelse = Block(), Block()
    _branch(frame, then, node.body)
    after_then, frame.names = frame.names, dict(before)
    bound_in_then = dict(frame.bound_at)
    _branch(frame, orelse, node.orelse)
    after_else, frame.names = frame.names, before
    _merge(frame, node, condition, (then, after_then), (orelse, after_else), bound_in_then)


def _branch(frame: Frame, block: Block, statements: list[ast.stmt]) -> None:
    frame.depth += 1
    frame.names = dict(frame.names)
    try:
        with frame.building.builder.inside(block):
            execute(frame, statements)
    finally:
        frame.depth -= 1


def _scratch(frame: Frame, statements: list[ast.stmt]) -> None:
    before = frame.names
    _branch(frame, Block(), statements)
    frame.names = before


def _merge(
    frame: Frame,
    node: ast.If,
    condition: Scalar,
    then: tuple[Block, dict[str, Any]],
    orelse: tuple[Block, dict[str, Any]],
    bound_in_then: dict[str, Loc],
) -> None:
    """Give each name that a branch has assigned its value behind the `if`."""
    alive = frame.liveness.after[node]
    pairs: list[tuple[str, Any, Any]] = []
    for name in sorted(assigned_in(frame.source, node)):
        a, b = then[1].get(name), orelse[1].get(name)
        if name in then[1] and name in orelse[1] and a is b:
            frame.names[name] = a
        elif a is POISON or b is POISON:
            frame.names[name] = POISON
        elif (
            name not in alive
            or name not in then[1]
            or name not in orelse[1]
            or isinstance(a, Unbound)
            or isinstance(b, Unbound)
        ):
            frame.names[name] = Unbound("branch", frame.bound_at.get(name))
        else:
            pairs.append((name, a, b))
    frame.at(node.test)
    blocks = (then[0], orelse[0])
    merged = join_ways(frame, condition, blocks, pairs, node.test, bound_in_then)
    for (name, _, _), value in zip(pairs, merged, strict=True):
        frame.names[name] = value


def join_ways(
    frame: Frame,
    condition: Scalar,
    blocks: tuple[Block, Block],
    pairs: list[tuple[str, Any, Any]],
    node: ast.AST,
    bound_in_then: dict[str, Loc],
) -> list[Any]:
    """Append the `if` of two blocks; the joined value of each (name, then, else), or POISON."""
    builder = frame.building.builder
    yielded: tuple[list[Value], list[Value]] = ([], [])
    plans: list[tuple[Any, list[Any]] | None] = []
    for name, a, b in pairs:
        try:
            plans.append(_plan(frame, blocks, yielded, a, b))
        except Differs as differs:
            places = (bound_in_then.get(name), frame.bound_at.get(name))
            frame.reports.add(_differs(frame, name, differs, node, places).report)
            plans.append(None)
    for block, values in zip(blocks, yielded, strict=True):
        with builder.inside(block):
            builder.add(control.Yield(values=tuple(values)))
    made = control.If(condition=condition.value, then=blocks[0], orelse=blocks[1])
    builder.add(made)
    results = iter(made.results)
    joined: list[Any] = []
    for (name, _, _), plan in zip(pairs, plans, strict=True):
        if plan is None:
            joined.append(POISON)
            continue
        form, leaves = plan
        leaves = [rewrap(next(results), name) if leaf is None else leaf for leaf in leaves]
        joined.append(join(form, iter(leaves)))
    return joined


def _plan(
    frame: Frame,
    blocks: tuple[Block, Block],
    yielded: tuple[list[Value], list[Value]],
    a: Any,
    b: Any,
) -> tuple[Any, list[Any]]:
    """Yield the leaves of one name from both blocks. A leaf that is equal on both ways stays as it
    is; the others are None and become results."""
    (form, firsts), (other, seconds) = split(a), split(b)
    if not same_form(form, other):
        at = difference(a, b)
        kinds = kind_of(at.first), kind_of(at.second)
        raise Differs(*kinds, compile_time=any(at.fixed), path=at.path)
    pairs = list(zip(firsts, seconds, strict=True))
    dtypes = [joint_dtype(x, y) for x, y in pairs]
    leaves: list[Any] = []
    for pair, dtype in zip(pairs, dtypes, strict=True):
        if dtype is None or pair[0] is pair[1]:
            leaves.append(pair[0])
            continue
        leaves.append(None)
        pending = any(isinstance(leaf, Pending) for leaf in pair)
        for block, values, leaf in zip(blocks, yielded, pair, strict=True):
            with frame.building.builder.inside(block):
                values.append(begun(leaf) if pending else converted(leaf, dtype))
    return form, leaves


def _differs(
    frame: Frame,
    name: str,
    differs: Differs,
    node: ast.AST,
    places: tuple[Loc | None, Loc | None] = (None, None),
) -> Problem:
    what = f"`{name}{differs.path}`" if name else "a conditional expression"
    spans = [
        Span.at(place, label=f"{word}: {found}")
        for place, word, found in zip(
            places, ("then", "else"), (differs.first, differs.second), strict=True
        )
        if place is not None
    ]
    notes = [] if spans else [f"then: {differs.first}", f"else: {differs.second}"]
    if differs.compile_time:
        return frame.problem(
            "F039",
            f"{what} would be chosen at run time, but exists at compile time only",
            node,
            *spans,
            label="known at run time only",
            notes=notes,
            hint="make the condition a constant, or choose among tiles, scalars and numbers",
        )
    return frame.problem(
        "F017",
        f"{what} gets two types from this `if`",
        node,
        *spans,
        notes=notes,
        hint="give both the same dtype and shape, such as with `.cast(dtype)`",
    )


@expression(ast.IfExp)
def conditional(frame: Frame, node: ast.IfExp) -> Any:
    """`a if condition else b`: one way at compile time; a select where both are pure scalars."""
    condition = truth(frame, evaluate(frame, node.test), node.test)
    if isinstance(condition, bool):
        return evaluate(frame, node.body if condition else node.orelse)
    blocks = (Block(), Block())
    ways: list[Any] = []
    for block, way in zip(blocks, (node.body, node.orelse), strict=True):
        frame.depth += 1
        with frame.building.builder.inside(block):
            ways.append(evaluate(frame, way))
        frame.depth -= 1
    frame.at(node)
    a, b = ways
    pure = all(op.is_pure for block in blocks for op in block.ops)
    if pure and all(isinstance(way, Scalar) or is_number(way) for way in ways):
        return _select(frame, condition, blocks, a, b, node)
    merged = join_ways(frame, condition, blocks, [("", a, b)], node, {})
    if merged[0] is POISON:
        raise Silenced
    return merged[0]


def _select(
    frame: Frame, condition: Scalar, blocks: tuple[Block, Block], a: Any, b: Any, node: ast.AST
) -> Any:
    """Both ways in front of a select."""
    builder = frame.building.builder
    for block in blocks:
        builder.block.ops.extend(block.ops)
    try:
        dtype = joint_dtype(a, b)
    except Differs as differs:
        raise _differs(frame, "", differs, node) from None
    if dtype is None:
        return a
    yes, no = converted(a, dtype), converted(b, dtype)
    return Scalar(builder.emit(scalars.Select(condition=condition.value, yes=yes, no=no)))


def negate(frame: Frame, value: Any, node: ast.AST) -> bool | Scalar:
    """`not value`."""
    if isinstance(value, Tile):
        raise frame.problem(
            "F031", "`not` asks for one truth value, and this is a tile", node, hint="write `~t`"
        )
    condition = truth(frame, value, node)
    if isinstance(condition, bool):
        return not condition
    return Scalar(core.unary("not", condition.value))


def chain(
    frame: Frame, node: ast.expr, parts: list[tuple[ast.expr, Callable[[], Any]]], kind: str
) -> Any:
    """`a and b and …` or `a or b or …`: constants decide at compile time, scalars are joined.

    `parts` are evaluated in order and not at all behind a constant that decides.
    """
    joined: Scalar | None = None
    value: Any = None
    for place, make in parts:
        value = make()
        if isinstance(value, Tile):
            sign = "&" if kind == "and" else "|"
            raise frame.problem(
                "F031",
                f"`{kind}` asks for one truth value, and this is a tile",
                place,
                label=kind_of(value),
                hint=f"write `a {sign} b`, with parentheses around comparisons",
            )
        condition = truth(frame, value, place)
        if isinstance(condition, bool):
            if condition == (kind == "or"):
                # This constant decides: what ran before had no effect on the outcome.
                return value if joined is None else condition
            continue
        if joined is None:
            joined = condition
        else:
            frame.at(node)
            joined = Scalar(core.binary(kind, joined.value, condition.value))
    if joined is None:
        return value
    assert joined.dtype == boolean
    return joined

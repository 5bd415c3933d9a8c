"""`with`: roles, items of pipes, and what one thread does."""

from __future__ import annotations

import ast
from typing import Any

from warploom.frontend.carried import split
from warploom.frontend.frame import (
    POISON,
    Frame,
    Problem,
    Unbound,
    evaluate,
    execute,
    statement,
    stop,
)
from warploom.frontend.scopes import assigned
from warploom.frontend.targets import assign
from warploom.language.context import Refused
from warploom.language.product import Pending
from warploom.language.regions import Names, Region
from warploom.language.roles import RoleRegion, Roles
from warploom.language.values import Tile, kind_of


@statement(ast.With)
def with_statement(frame: Frame, node: ast.With) -> None:
    """Open regions from left to right, read the body, close them from right to left."""
    opened: list[Region] = []
    before, found = dict(frame.names), len(frame.reports.found)
    frame.regions += 1
    try:
        for item in node.items:
            opened.append(_open(frame, node, item))
        if any(isinstance(region, RoleRegion) for region in opened):
            stop(frame, node)
        execute(frame, node.body)
    finally:
        frame.regions -= 1
        problem = _close(frame, node, opened, before)
    # What is missing at the end of a region may be in statements that were refused.
    if problem is not None and len(frame.reports.found) == found:
        raise problem


def _open(frame: Frame, node: ast.With, item: ast.withitem) -> Region:
    region = evaluate(frame, item.context_expr)
    if not isinstance(region, Region):
        raise frame.problem(
            "P016",
            "`with` opens a region of a kernel, and this is none",
            item.context_expr,
            label=kind_of(region),
            hint="`wl.roles()`, `wl.role(…)`, `wl.one_thread()`, `ring.put()`, `ring.get()`",
        )
    if isinstance(region, Roles):
        _check_last(frame, node, item)
    frame.at(item.context_expr)
    try:
        given = region.enter()
    except Refused as refused:
        raise frame.located(refused, item.context_expr) from None
    if isinstance(region, RoleRegion):
        _hide_tiles(frame)
    if item.optional_vars is not None:
        assign(frame, item.optional_vars, given, item.context_expr)
    return region


def _check_last(frame: Frame, node: ast.With, item: ast.withitem) -> None:
    """Roles end a kernel, and hold nothing but roles."""
    if frame.chain or frame.depth or frame.regions > 1 or frame.source.tree.body[-1] is not node:
        raise frame.problem(
            "P017",
            "`wl.roles()` is not the last statement of the kernel",
            node,
            hint="loops and branches go inside each role",
        )
    # In `with wl.roles(), wl.role(…):` the body is the role's.
    todo: list[ast.stmt] = list(node.body) if item is node.items[-1] else []
    while todo:
        inner = todo.pop(0)
        if isinstance(inner, ast.If | ast.For):
            todo = [*inner.body, *inner.orelse, *todo]
        elif not isinstance(inner, ast.With | ast.Pass):
            raise frame.problem(
                "P018", "inside `wl.roles()` stand roles only", inner, hint="put it before"
            )


def _hide_tiles(frame: Frame) -> None:
    """Registers from outside a role are not there inside."""
    for name, value in frame.names.items():
        if value is POISON or isinstance(value, Unbound):
            continue
        if any(isinstance(leaf, Tile | Pending) for leaf in split(value)[1]):
            frame.names[name] = Unbound("role", frame.bound_at.get(name))


def _close(
    frame: Frame, node: ast.With, opened: list[Region], before: dict[str, Any]
) -> Problem | None:
    """Close the regions, and settle what becomes of the names that the body has bound."""
    problem: Problem | None = None
    for region, item in zip(reversed(opened), reversed(node.items[: len(opened)]), strict=True):
        frame.at(item.context_expr)
        try:
            region.leave()
        except Refused as refused:
            problem = frame.located(refused, item.context_expr)
    kinds = {region.names for region in opened}
    if kinds <= {Names.KEPT}:
        return problem
    after, frame.names = frame.names, before
    for name in assigned([node]):
        value = after.get(name)
        if value is POISON:
            frame.names[name] = POISON
        elif Names.LOST in kinds and value is not before.get(name, POISON):
            frame.names[name] = Unbound("thread", frame.bound_at.get(name))
    return problem

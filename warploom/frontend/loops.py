"""`for`: run-time loops over a range, and compile-time loops that copy their body."""

from __future__ import annotations

import ast
from typing import Any

from warploom.base.dtypes import i32, i64
from warploom.frontend.carried import uniform
from warploom.frontend.frame import Frame, Problem, Silenced, evaluate, execute, statement
from warploom.frontend.targets import as_sequence, assign
from warploom.frontend.trips import carry, finish, scratch, slots_of
from warploom.frontend.while_loops import over_schedule
from warploom.ir import types
from warploom.ir.op import Value
from warploom.ir.ops import control
from warploom.language import core
from warploom.language.control import Range
from warploom.language.schedule import Tiles
from warploom.language.values import Scalar, Tensor, Tile, index_value, kind_of

# Copies of compile-time loop bodies in one kernel, nested loops multiplied.
_MOST_COPIES = 8192


@statement(ast.For)
def for_statement(frame: Frame, node: ast.For) -> None:
    """Loop at run time over a range, at compile time over everything else that can be listed."""
    if node.orelse:
        raise frame.problem(
            "F010",
            "a loop with `else` has no meaning in a kernel",
            node.orelse[0],
            hint="remove it",
        )
    try:
        over = evaluate(frame, node.iter)
        if isinstance(over, Range):
            return _run_time(frame, node, over)
        if isinstance(over, Tiles):
            return over_schedule(frame, node, over)
        sequence = as_sequence(over)
        if sequence is None:
            raise _not_a_loop(frame, over, node.iter)
    except (Problem, Silenced) as problem:
        if isinstance(problem, Problem):
            frame.reports.add(problem.report)
        scratch(frame, node)
        return
    for item in sequence:
        frame.building.copies += 1
        if frame.building.copies > _MOST_COPIES:
            raise frame.problem(
                "F033",
                f"more than {_MOST_COPIES:,} copies of loop bodies in one kernel",
                node.iter,
                hint="use `wl.range`, which loops at run time",
            )
        assign(frame, node.target, item, node.iter)
        execute(frame, node.body)


def _not_a_loop(frame: Frame, over: Any, node: ast.expr) -> Problem:
    if isinstance(over, Tile | Tensor):
        hint = "a tile is one value: operate on all of it; `wl.range(x.shape[0])` counts the rows"
    elif isinstance(over, Scalar | int):
        hint = "write `wl.range(n)`"
    else:
        hint = "`for` goes over `wl.range(…)`, `wl.unroll(n)` or a tuple"
    return frame.problem("F036", "a loop cannot go over this", node, label=kind_of(over), hint=hint)


def _run_time(frame: Frame, node: ast.For, over: Range) -> None:
    """Build a `control.for`."""
    target = node.target
    if not isinstance(target, ast.Name):
        raise frame.problem(
            "F032",
            "a loop over a range binds one name",
            target,
            hint="write `for i in wl.range(n):`",
        )
    frame.at(node.iter)
    lo, hi, step = _bounds(over)
    spread = max(uniform(v) for v in (lo, hi, step))

    def head() -> tuple[Value, ...]:
        index = Value(types.Scalar(core.dtype_of(lo), spread), target.id, frame.place(target))
        frame.building.facts.note_loop(index, lo, step)
        return (index,)

    def body(own: tuple[Value, ...]) -> None:
        frame.bind(target.id, Scalar(own[0]), target)
        execute(frame, node.body)

    slots = slots_of(frame, node, spread)
    block, after = carry(frame, node, target, slots, head, body)

    def make(inits: tuple[Value, ...]) -> control.For:
        return control.For(lo=lo, hi=hi, step=step, inits=inits, unroll=over.unroll, body=block)

    finish(frame, node, make, slots, after)


def _bounds(over: Range) -> tuple[Value, Value, Value]:
    """Bounds and step as scalars of one integer type."""
    values = [index_value(v) for v in (over.lo, over.hi, over.step)]
    wide = any(core.dtype_of(v) != i32 for v in values)
    lo, hi, step = (core.convert(v, i64 if wide else i32) for v in values)
    return lo, hi, step

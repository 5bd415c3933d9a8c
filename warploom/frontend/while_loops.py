"""`while`, and `for` over a schedule, which is a `while` in other words.

The condition is the first value that such a loop carries: it is read once before the loop, and once
at the end of the body for the next trip.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from warploom.frontend.branches import truth
from warploom.frontend.calls import inline
from warploom.frontend.carried import leaf_value
from warploom.frontend.frame import (
    POISON,
    Frame,
    Problem,
    Silenced,
    evaluate,
    execute,
    statement,
)
from warploom.frontend.targets import assign
from warploom.frontend.trips import (
    CONDITION,
    ITEM,
    LoopNode,
    Slot,
    carry,
    finish,
    scratch,
    slot_of,
    slots_of,
)
from warploom.ir.op import Value
from warploom.ir.ops import control
from warploom.ir.types import Uniformity
from warploom.language.schedule import Tiles
from warploom.language.values import Scalar, kind_of


@statement(ast.While)
def while_statement(frame: Frame, node: ast.While) -> None:
    """Loop as long as a condition holds."""
    if node.orelse:
        raise frame.problem(
            "F010",
            "a loop with `else` has no meaning in a kernel",
            node.orelse[0],
            hint="remove it",
        )

    def test() -> bool | Scalar:
        return truth(frame, evaluate(frame, node.test), node.test)

    try:
        first = test()
    except (Problem, Silenced) as problem:
        if isinstance(problem, Problem):
            frame.reports.add(problem.report)
        scratch(frame, node)
        return
    if first is False:
        return  # decided at compile time, as an `if` would be

    def body() -> bool | Scalar:
        execute(frame, node.body)
        return test()

    _build(frame, node, node.test, first, [], body)


def over_schedule(frame: Frame, node: ast.For, over: Tiles) -> None:
    """`for t in wl.tiles(s)`: `t = s.first(); while s.valid(t): …; t = s.next(t)`."""
    schedule = over.schedule

    def say(name: str, *given: Any) -> Any:
        return inline(frame, schedule.struct.methods[name], [schedule, *given], {}, call)

    def valid(item: Any) -> bool | Scalar:
        found = say("valid", item)
        if not isinstance(found, Scalar | bool):
            raise frame.problem(
                "T015",
                f"`valid` of {schedule!r} gives {kind_of(found)}, not a condition",
                node.iter,
                hint="return a comparison, such as `t < self.count`",
            )
        return truth(frame, found, call)

    call = _as_call(node.iter)
    item = say("first")
    first = valid(item)
    if first is False:
        return

    def body() -> bool | Scalar:
        assign(frame, node.target, frame.names[ITEM], node.iter)
        execute(frame, node.body)
        item = frame.names[ITEM]
        if item is POISON:
            raise Silenced
        frame.names[ITEM] = item = say("next", item)
        return valid(item)

    _build(frame, node, node.target, first, [slot_of(ITEM, item, Uniformity.GRID, None)], body)


def _as_call(node: ast.expr) -> ast.Call:
    """The place at which the methods of a schedule are called: `wl.tiles(…)`, or a name for it."""
    made = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    return ast.copy_location(made, node)


def _build(
    frame: Frame,
    node: LoopNode,
    place: ast.expr,
    first: bool | Scalar,
    items: list[Slot],
    body: Callable[[], bool | Scalar],
) -> None:
    """Append a `control.while` that begins with this condition; `body` reads a trip and gives the
    condition of the next one."""
    start = Scalar(leaf_value(first))
    slots = [
        slot_of(CONDITION, start, Uniformity.GRID, None),
        *items,
        *slots_of(frame, node, Uniformity.GRID),
    ]

    def trip(own: tuple[Value, ...]) -> None:
        frame.names[CONDITION] = POISON
        try:
            again = body()
        except Problem as problem:
            frame.reports.add(problem.report)
            return
        except Silenced:
            return
        if again is True:
            frame.reports.add(_endless(frame, place).report)
            return
        frame.names[CONDITION] = Scalar(leaf_value(again))

    block, after = carry(frame, node, place, slots, lambda: (), trip)

    def make(inits: tuple[Value, ...]) -> control.While:
        return control.While(inits=inits, body=block)

    finish(frame, node, make, slots, after)


def _endless(frame: Frame, place: ast.expr) -> Problem:
    return frame.problem(
        "F042",
        "this loop never ends",
        place,
        label="True after each trip",
        hint="let the condition depend on what the body changes",
    )

"""Checked mode: which function gives an operation its events for the engine of order. Knows no
single operation.

A rule gets the step of its operation and gives the one that runs instead: most book an event and
run the step, those of mbarriers let the book decide. Rules exist where something is ordered or
accessed; others leave their operation alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.op import Op
from warploom.sim.booking import ALL, EACH, FIRST
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.registry import Rules

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

orders = Rules("orders")
"""Rules `(translator, op, step) -> Step`: the step with the events of its operation."""


def order_step(t: Translator, op: Op, step: Step | None) -> Step | None:
    """The step of an operation with its events."""
    rule = orders.find(type(op))
    return step if rule is None else rule(t, op, step)


def who_executes(t: Translator) -> str:
    """Which threads of a role execute what is being translated."""
    if t.acting >= 32 * t.warps:
        return ALL
    return EACH if t.acting == t.warps and t.warps > 1 else FIRST


def after(step: Step | None, then: Step) -> Step:
    """A step and an event after it."""
    if isinstance(step, Resumable):
        resumed = step.start

        def start(s: Slots, m: Batch) -> Run:
            yield from resumed(s, m)
            then(s, m)

        return Resumable(start)

    def run(s: Slots, m: Batch) -> None:
        if step is not None:
            step(s, m)
        then(s, m)

    return run


def before(step: Step | None, event: Step) -> Step:
    """A step and an event before it."""
    if isinstance(step, Resumable):
        resumed = step.start

        def start(s: Slots, m: Batch) -> Run:
            event(s, m)
            yield from resumed(s, m)

        return Resumable(start)

    def run(s: Slots, m: Batch) -> None:
        event(s, m)
        if step is not None:
            step(s, m)

    return run

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
from warploom.sim.machine import Step, sequence
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


def before(step: Step | None, event: Step) -> Step:
    """A step, if there is one, and an event before it."""
    return event if step is None else sequence((event, step))


def after(step: Step | None, event: Step) -> Step:
    """A step, if there is one, and an event after it."""
    return event if step is None else sequence((step, event))

"""What accesses to global and shared memory share: offset to plan, predicate to mask, faults."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from warploom.ir.op import Op
from warploom.sim import faults
from warploom.sim.machine import Batch, Slots
from warploom.sim.memory import Memory, Plan, Span, of_elements
from warploom.sim.values import Fixed, Index


class Place(NamedTuple):
    """One access: `mask` (of single elements) is None where it holds everywhere."""

    memory: Memory
    plan: Plan
    span: Span
    mask: Any


def locate(offset: Any, axis: int, vec: int) -> tuple[Plan, Any]:
    """The plan of an offset tile and the scalar that is added to it."""
    if type(offset) is Index:
        reach = offset.range() if type(offset.shift) is int else True
        if reach is not None:
            return Plan.of(offset.fixed, axis, vec), offset.shift
        offset = offset.dense()
    return Plan(offset.astype(np.int64), axis, vec), 0


def masked(s: Slots, predicate: int, axis: int, vec: int) -> Any:
    """The mask of an access, None where it holds everywhere."""
    if predicate < 0:
        return None
    mask = s[predicate]
    if type(mask) is Fixed:
        if mask.lo:
            return None
    elif mask.all():
        return None
    return of_elements(mask, axis, vec)


def guard(m: Batch, op: Op, memory: Memory, plan: Plan, span: Span, mask: Any) -> Any:
    """Find faults of addresses; gives the mask without what is out of bounds."""
    if plan.vec > 1 and not _aligned(memory, plan, span):
        _find_misaligned(m, op, memory, plan, span, mask)
    if plan.lo + span.lo >= 0 and plan.hi + span.hi < memory.limit:
        return mask
    if type(mask) is Fixed and not mask.hi:
        return mask
    places = plan.elements + span.shift
    outside = (places < 0) | (places >= memory.limit)
    bad = outside if mask is None else _flags(mask) & outside
    if not bad.any():
        return mask
    faults.out_of_bounds(m, op, memory, places, bad)
    return ~outside if mask is None else _flags(mask) & ~outside


def _flags(mask: Any) -> np.ndarray:
    return mask.array if type(mask) is Fixed else mask


def _aligned(memory: Memory, plan: Plan, span: Span) -> bool:
    vec = plan.vec
    if plan.aligned < 0:
        return False
    start = memory.unit + plan.aligned
    if span.digits is None:
        return not ((span.shift + start) % vec).any()
    return (start + span.first) % vec == 0 and not any(step % vec for _, step in span.digits)


def _find_misaligned(m: Batch, op: Op, memory: Memory, plan: Plan, span: Span, mask: Any) -> None:
    places = plan.elements + span.shift
    # Every register is looked at, but only the first of a group has to be aligned.
    ramp = plan.ramp(plan.elements.shape)
    bad = (places - ramp + memory.unit) % plan.vec != 0
    if mask is not None:
        bad = bad & _flags(mask)
    if bad.any():
        faults.misaligned(m, op, memory, plan.vec, places, bad)

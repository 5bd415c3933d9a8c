"""Loops and branches. A bound or condition that is the same for all blocks of the batch never
splits it; one that is not runs each part of the batch by itself and merges what it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.base.dtypes import DType
from warploom.ir.op import Block, Value
from warploom.ir.ops import control
from warploom.ir.types import Regs, Scalar
from warploom.sim.machine import Batch, Slots, Step, move, uniform
from warploom.sim.registry import simulates
from warploom.sim.shadow_values import merge_shadows, take_shadow
from warploom.sim.values import merge_blocks, take_blocks

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


@simulates(control.Yield)
def yield_values(t: Translator, op: control.Yield) -> None:
    """The operation around the region moves the values."""


@simulates(control.Declare)
def declare(t: Translator, op: control.Declare) -> None:
    """A storage has its slot from its name."""


@simulates(control.Assign)
def assign(t: Translator, op: control.Assign) -> Step:
    a, d = t.slot(op.source), t.slot(op.target)
    # A value that ends here gives its array away, so that the next trip may write into it.
    moves = t.dies(op, op.source) and not op.source.storage and a != d

    def step(s: Slots, m: Batch) -> None:
        s[d] = s[a]
        if moves:
            s[a] = None

    return step


@simulates(control.Duplicate)
def duplicate(t: Translator, op: control.Duplicate) -> Step:
    """Arrays with two holders are never written to, so a second name is a copy."""
    a, d = t.slot(op.value), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = s[a]

    return step


class Carried:
    """The slots in which values enter and leave regions, with what merging needs to know."""

    def __init__(self, t: Translator, values: tuple[Value, ...]) -> None:
        self.slots = [t.slot(v) for v in values]
        self.kinds: list[tuple[DType, int | None]] = [_kind(v) for v in values]

    def merge(self, s: Slots, m: Batch, parts: list[tuple[np.ndarray, Slots, Batch]]) -> None:
        """Put what parts of the batch hold together in `s`."""
        for slot, (dtype, rank) in zip(self.slots, self.kinds, strict=True):
            given = [(rows, frame[slot]) for rows, frame, _ in parts]
            s[slot] = merge_blocks(given, m.count, dtype, rank)
            if m.shadow:
                shadows = [(rows, part.shadow[slot]) for rows, _, part in parts]
                m.shadow[slot] = merge_shadows(shadows, m.count, rank)


def _kind(value: Value) -> tuple[DType, int | None]:
    type = value.type
    assert isinstance(type, Regs | Scalar)
    return type.dtype, len(type.extents) if isinstance(type, Regs) else None


def part_of(s: Slots, m: Batch, inputs: tuple[int, ...], places: np.ndarray) -> tuple[Slots, Batch]:
    """Slots and batch for some blocks; only what the region reads is brought along."""
    frame: Slots = [None] * len(s)
    batch = m.of(places)
    if m.shadow:
        batch.shadow = [None] * len(s)
    for slot in inputs:
        frame[slot] = take_blocks(s[slot], places)
        if m.shadow and m.shadow[slot] is not None:
            batch.shadow[slot] = take_shadow(m.shadow[slot], places)
    return frame, batch


# ---- if ----------------------------------------------------------------------------------------


@simulates(control.If)
def if_else(t: Translator, op: control.If) -> Step:
    condition = t.slot(op.condition)
    results = Carried(t, op.results)
    then, orelse = (_branch(t, op, block) for block in (op.then, op.orelse))
    inputs = tuple(sorted(set(t.inputs(op.then, op.orelse)) | _storages(t, op.results)))

    def step(s: Slots, m: Batch) -> None:
        chosen = uniform(s[condition])
        if type(chosen) is not np.ndarray:
            (then if chosen else orelse)(s, m)
            return
        flags = chosen.reshape(-1)
        parts = []
        for places, branch in ((np.nonzero(flags)[0], then), (np.nonzero(~flags)[0], orelse)):
            frame, batch = part_of(s, m, inputs, places)
            branch(frame, batch)
            parts.append((places, frame, batch))
        results.merge(s, m, parts)

    return step


def _storages(t: Translator, values: tuple[Value, ...]) -> set[int]:
    return {t.slot(v) for v in values if v.storage}


def _branch(t: Translator, op: control.If, block: Block) -> Step:
    steps = t.steps(block)
    if any(r.storage for r in op.results):
        return lambda s, m: _run(steps, s, m)
    given, results, spent = t.given(block), [t.slot(r) for r in op.results], t.spent(block)

    def branch(s: Slots, m: Batch) -> None:
        _run(steps, s, m)
        move(s, m, given, results)
        for slot in spent:
            s[slot] = None

    return branch


def _run(steps: list[Step], s: Slots, m: Batch) -> None:
    for f in steps:
        f(s, m)


# ---- for ---------------------------------------------------------------------------------------


@simulates(control.For)
def for_loop(t: Translator, op: control.For) -> Step:
    lo, hi, step_slot = t.slot(op.lo), t.slot(op.hi), t.slot(op.step)
    index, *carried = op.body.args
    args, results = Carried(t, tuple(carried)), [t.slot(r) for r in op.results]
    number, inits = t.slot(index), [t.slot(v) for v in op.inits]
    body = _loop_body(t, op, args.slots)
    by_yield = not any(a.storage for a in carried)
    inputs = tuple(sorted(set(t.inputs(op.body)) | set(args.slots)))
    kind = index.type.dtype.numpy

    def step(s: Slots, m: Batch) -> None:
        if by_yield:
            move(s, m, inits, args.slots)
        bounds = [uniform(s[slot]) for slot in (lo, hi, step_slot)]
        if any(type(b) is np.ndarray for b in bounds):
            _run_apart(s, m, bounds)
        else:
            for i in range(*bounds):
                s[number] = i
                body(s, m)
        if by_yield:
            move(s, m, args.slots, results)

    def _run_apart(s: Slots, m: Batch, bounds: list[Any]) -> None:
        """Blocks with different numbers of trips: those that are done step aside, trip by trip."""
        first, last, by = (np.broadcast_to(np.reshape(b, (-1,)), (m.count,)) for b in bounds)
        first, last, by = (v.astype(np.int64) for v in (first, last, by))
        trips = np.maximum((last - first + by - np.sign(by)) // by, 0)
        frame, batch, alive, done = s, m, np.arange(m.count), 0
        parts: list[tuple[np.ndarray, Slots, Batch]] = []
        for count in np.unique(trips):
            stay = trips[alive] >= count
            if not stay.all():
                ended = np.nonzero(~stay)[0]
                parts.append((alive[ended], *part_of(frame, batch, tuple(args.slots), ended)))
                kept = np.nonzero(stay)[0]
                frame, batch = part_of(frame, batch, inputs, kept)
                alive = alive[kept]
            for trip in range(done, int(count)):
                at = (first + trip * by)[alive].astype(kind).reshape(-1, 1, 1)
                frame[number] = uniform(at)
                body(frame, batch)
            done = int(count)
        parts.append((alive, frame, batch))
        if len(parts) > 1:
            args.merge(s, m, parts)

    return step


def _loop_body(t: Translator, op: control.For, args: list[int]) -> Step:
    steps = t.steps(op.body)
    if any(a.storage for a in op.body.args[1:]) or not args:
        return lambda s, m: _run(steps, s, m)
    given, spent = t.given(op.body), t.spent(op.body)

    def body(s: Slots, m: Batch) -> None:
        _run(steps, s, m)
        move(s, m, given, args)
        for slot in spent:
            s[slot] = None

    return body

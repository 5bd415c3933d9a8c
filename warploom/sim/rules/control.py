"""Loops and branches. A bound or condition that is the same for all blocks of the batch never
splits it; one that is not runs each part of the batch by itself and merges what it leaves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.base.dtypes import DType
from warploom.ir.op import Block, Value
from warploom.ir.ops import control
from warploom.ir.ops.scalar import scalar_of
from warploom.ir.types import Regs, Scalar
from warploom.sim.faults import endless_loop, matters, step_of_zero
from warploom.sim.machine import (
    Batch,
    Endless,
    Resumable,
    Run,
    Slots,
    Step,
    move,
    sequence,
    uniform,
)
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
    if isinstance(then, Resumable) or isinstance(orelse, Resumable):

        def start(s: Slots, m: Batch) -> Run:
            branch = then if uniform(s[condition]) else orelse
            if isinstance(branch, Resumable):
                yield from branch.start(s, m)
            else:
                branch(s, m)

        return Resumable(start)

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
    if not any(r.storage for r in op.results):
        steps.append(_giving(t, block, [t.slot(r) for r in op.results]))
    return sequence(steps)


def _giving(t: Translator, block: Block, targets: list[int]) -> Step:
    """The end of a region: what its yield gives moves to the operation around it."""
    given, spent = t.given(block), t.spent(block)

    def give(s: Slots, m: Batch) -> None:
        move(s, m, given, targets)
        for slot in spent:
            s[slot] = None

    return give


# ---- one thread --------------------------------------------------------------------------------


@simulates(control.OneThread)
def one_thread(t: Translator, op: control.OneThread) -> Step:
    """The body as it is: what depends on the number of threads asks the translator for it."""
    with t.threads_acting(1 if op.per == "role" else t.warps):
        body = sequence(t.steps(op.body))
    if not t.waits:
        return body

    def start(s: Slots, m: Batch) -> Run:
        if m.state.shuffles:
            yield None
        if isinstance(body, Resumable):
            yield from body.start(s, m)
        else:
            body(s, m)

    return Resumable(start)


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
    kind = scalar_of(index).dtype.numpy
    # Who tells of a race says in which trips; only actors that are watched have any.
    name = index.name if t.checked and t.waits else ""
    if isinstance(body, Resumable):
        moves = (inits, args.slots, results) if by_yield else None
        return _resumable_loop(op, (lo, hi, step_slot), number, body, moves, name)

    def step(s: Slots, m: Batch) -> None:
        if by_yield:
            move(s, m, inits, args.slots)
        bounds = _bounds(s, m, op, (lo, hi, step_slot))
        if any(type(b) is np.ndarray for b in bounds):
            _run_apart(s, m, bounds)
        else:
            for i in _trips(m, name, bounds):
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


def _trips(m: Batch, name: str, bounds: Sequence[int]) -> Iterator[int]:
    """The values of an index; its actor is told of each where the index has a name."""
    if not name:
        yield from range(*bounds)
        return
    actor, around = m.actor, m.actor.trips
    for i in range(*bounds):
        actor.trips = (*around, (name, i))
        yield i
    actor.trips = around


def _bounds(s: Slots, m: Batch, op: control.For, slots: tuple[int, ...]) -> list[Any]:
    """First value, end and step of a loop; a step of 0 is a finding."""
    bounds = [uniform(s[slot]) for slot in slots]
    by = bounds[2]
    if (not by.all()) if type(by) is np.ndarray else by == 0:
        step_of_zero(m, op, int(np.argmin(np.abs(by))))
        raise Endless
    return bounds


def _resumable_loop(
    op: control.For,
    slots: tuple[int, ...],
    number: int,
    body: Resumable,
    moves: tuple[list[int], list[int], list[int]] | None,
    name: str,
) -> Step:
    """A loop whose body waits. `moves`: first values, carried ones, results, where yields move
    them."""

    def start(s: Slots, m: Batch) -> Run:
        if moves is not None:
            move(s, m, moves[0], moves[1])
        for i in _trips(m, name, _bounds(s, m, op, slots)):
            s[number] = i
            yield from body.start(s, m)
        if moves is not None:
            move(s, m, moves[1], moves[2])

    return Resumable(start)


# ---- while -------------------------------------------------------------------------------------


@simulates(control.While)
def while_loop(t: Translator, op: control.While) -> Step:
    args, results = Carried(t, op.carried), [t.slot(r) for r in op.results]
    condition, inits = args.slots[0], [t.slot(v) for v in op.inits]
    body = _loop_body(t, op, args.slots)
    by_yield = not any(a.storage for a in op.carried)
    inputs = tuple(sorted(set(t.inputs(op.body)) | set(args.slots)))
    if isinstance(body, Resumable):
        moves = (inits, args.slots, results) if by_yield else None
        return _resumable_while(op, condition, body, moves)

    def step(s: Slots, m: Batch) -> None:
        if by_yield:
            move(s, m, inits, args.slots)
        frame, batch, alive = s, m, np.arange(m.count)
        parts: list[tuple[np.ndarray, Slots, Batch]] = []
        for trip in itertools.count():
            goes_on = _decision(frame, batch, op, condition, trip)
            if type(goes_on) is np.ndarray:
                # Blocks that are done step aside.
                flags = goes_on.reshape(-1)
                ended, kept = np.nonzero(~flags)[0], np.nonzero(flags)[0]
                parts.append((alive[ended], *part_of(frame, batch, tuple(args.slots), ended)))
                frame, batch = part_of(frame, batch, inputs, kept)
                alive = alive[kept]
            elif not goes_on:
                break
            body(frame, batch)
        if parts:
            parts.append((alive, frame, batch))
            args.merge(s, m, parts)
        if by_yield:
            move(s, m, args.slots, results)

    return step


def _decision(s: Slots, m: Batch, op: control.While, condition: int, trip: int) -> Any:
    """The condition before a trip; an unwritten one is a finding, and so is a trip too many."""
    if m.shadow:
        matters(m, op, "decides this loop", condition)
    goes_on = uniform(s[condition])
    if trip >= m.launch.most_trips and np.any(goes_on):
        block = int(np.argmax(np.ravel(goes_on))) if type(goes_on) is np.ndarray else 0
        endless_loop(m, op, block)
        raise Endless
    return goes_on


def _resumable_while(
    op: control.While,
    condition: int,
    body: Resumable,
    moves: tuple[list[int], list[int], list[int]] | None,
) -> Step:
    """The same where the body waits; one block at a time runs it."""

    def start(s: Slots, m: Batch) -> Run:
        if moves is not None:
            move(s, m, moves[0], moves[1])
        trips = itertools.count()
        while _decision(s, m, op, condition, next(trips)):
            yield from body.start(s, m)
        if moves is not None:
            move(s, m, moves[1], moves[2])

    return Resumable(start)


def _loop_body(t: Translator, op: control.Loop, args: list[int]) -> Step:
    steps = t.steps(op.body)
    if args and not any(a.storage for a in op.carried):
        steps.append(_giving(t, op.body, args))
    return sequence(steps)

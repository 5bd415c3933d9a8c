"""What run-time loops carry from trip to trip: the names, their types, and the reading of a body
until these stand. Knows no kind of loop: bounds and conditions are elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from warploom.base.diagnostics import Span
from warploom.base.dtypes import DType
from warploom.frontend.carried import (
    Form,
    difference,
    is_number,
    is_same_number,
    join,
    leaf_as,
    leaf_text,
    rewrap,
    same_form,
    split,
    uniform,
)
from warploom.frontend.frame import POISON, Frame, Problem, Unbound, execute
from warploom.frontend.scopes import assigned_in
from warploom.ir import types
from warploom.ir.op import Block, Loc, Value
from warploom.ir.ops import control
from warploom.language import core
from warploom.language.product import Pending
from warploom.language.values import Scalar, Tile, kind_of

# Keywords of Python, which no name of a kernel can be: the condition of a loop without a count,
# and what a loop over a schedule is at.
CONDITION, ITEM = "while", "for"

LoopNode: TypeAlias = ast.For | ast.While


@dataclass(slots=True)
class Part:
    """One leaf of a carried name: its value on entry, and its type in the loop.

    A Python number has no dtype of its own (`weak`): it takes the one that the body gives it. As
    long as no trip changes it, it stays a constant (`fixed`) and is not carried at all.
    """

    entry: Any
    type: types.Type
    weak: bool
    fixed: bool

    @property
    def dtype(self) -> DType:
        """The element type in the loop."""
        assert isinstance(self.type, types.Scalar | types.Tile)
        return self.type.dtype


@dataclass(slots=True)
class Slot:
    """One name that a loop carries: the form of its value, and its leaves."""

    name: str
    form: Form
    parts: list[Part]
    place: Loc | None

    @property
    def label(self) -> str:
        """What its values are called in the IR."""
        return {CONDITION: "running", ITEM: "item"}.get(self.name, self.name)

    def carried(self) -> list[Part]:
        """The leaves that are more than constants."""
        return [part for part in self.parts if not part.fixed]

    def value(self, given: Iterator[Value]) -> Any:
        """The value of the name, with an IR value for each carried leaf."""
        leaves = [p.entry if p.fixed else rewrap(next(given), self.label) for p in self.parts]
        return join(self.form, iter(leaves))


class Again(Exception):
    """A trip changes a number that was taken for a constant, or gives a weak number another type,
    or a scalar less uniformity: the body is read once more."""


def slots_of(frame: Frame, node: LoopNode, spread: types.Uniformity) -> list[Slot]:
    """The names that are bound before, assigned in the body, and read there or later."""
    names = assigned_in(frame.source, node) & frame.liveness.head[node]
    slots: list[Slot] = []
    for name in sorted(names):
        value = frame.names.get(name, POISON)
        if value is POISON or isinstance(value, Unbound):
            continue
        slots.append(slot_of(name, value, spread, frame.bound_at.get(name)))
    return slots


def slot_of(name: str, value: Any, spread: types.Uniformity, place: Loc | None) -> Slot:
    """A name that enters a loop with a value."""
    form, leaves = split(value)
    return Slot(name, form, [_part(leaf, spread) for leaf in leaves], place)


def _part(leaf: Any, spread: types.Uniformity) -> Part:
    if isinstance(leaf, Tile | Pending):
        return Part(leaf, leaf.value.type, weak=False, fixed=False)
    if isinstance(leaf, Scalar):
        type = types.Scalar(leaf.dtype, max(uniform(leaf.value), spread))
        return Part(leaf, type, weak=False, fixed=False)
    return Part(leaf, types.Scalar(core.natural_dtype(leaf), spread), weak=True, fixed=True)


def carry(
    frame: Frame,
    node: LoopNode,
    place: ast.AST,
    slots: list[Slot],
    head: Callable[[], tuple[Value, ...]],
    body: Callable[[tuple[Value, ...]], None],
) -> tuple[Block, dict[str, Any]]:
    """Read the body of a loop until the types of what it carries stand; gives its block, and the
    names at its end.

    `head` makes the arguments of the block besides the carried values, `body` reads one trip and is
    given them. What is wrong with a carried name is reported at `place`.
    """
    before, reports, copies = frame.names, frame.reports.mark(), frame.building.copies
    # Each reading moves something one way: a constant to a value, a value to less uniformity.
    while True:
        frame.names = dict(before)
        own = head()
        entries = [Value(p.type, slot.label) for slot in slots for p in slot.carried()]
        block = Block((*own, *entries))
        try:
            with frame.building.builder.inside(block):
                _enter(frame, slots, entries)
                frame.depth += 1
                try:
                    body(own)
                finally:
                    frame.depth -= 1
                frame.at(node)
                ends = _leave(frame, place, slots, entries)
                frame.building.builder.add(control.Yield(values=tuple(ends)))
            break
        except Again:
            frame.names = before
            frame.reports.rewind(reports)
            frame.building.copies = copies
    after, frame.names = frame.names, before
    return block, after


def _enter(frame: Frame, slots: list[Slot], entries: list[Value]) -> None:
    given = iter(entries)
    for slot in slots:
        frame.names[slot.name] = slot.value(given)


def _leave(frame: Frame, place: ast.AST, slots: list[Slot], entries: list[Value]) -> list[Value]:
    """The values that a trip gives to the next one; raises `Again` where their types moved."""
    ends: list[Value] = []
    again = False
    for slot in slots:
        end = frame.names.get(slot.name, POISON)
        kept = entries[len(ends) : len(ends) + len(slot.carried())]
        if end is not POISON:
            try:
                found = _ends(frame, place, slot, end)
                again |= found is None
                kept = kept if found is None else found
            except Problem as problem:
                frame.reports.add(problem.report)
                frame.names[slot.name] = POISON
        ends += kept
    if again or _spread(slots):
        raise Again
    return ends


def _spread(slots: list[Slot]) -> bool:
    """Blocks that make different numbers of trips hold different values: make what is carried no
    more uniform than the condition. Whether anything changed."""
    deciding = [slot.parts[0].type for slot in slots if slot.name == CONDITION]
    moved = False
    for least in deciding:
        assert isinstance(least, types.Scalar)
        for part in (part for slot in slots for part in slot.parts):
            if isinstance(part.type, types.Scalar) and part.type.uniform < least.uniform:
                part.type = types.Scalar(part.type.dtype, least.uniform)
                moved |= not part.fixed
    return moved


def _ends(frame: Frame, place: ast.AST, slot: Slot, end: Any) -> list[Value] | None:
    """The carried leaves of a name at the end of the body; None where their types have changed."""
    if isinstance(end, Unbound) and end.reason == "thread":
        raise frame.unbound(slot.name, end, place)
    if isinstance(end, Unbound):
        raise frame.problem(
            "F014",
            f"`{slot.name}` has no value at the end of some trips of this loop",
            place,
            end.place,
            hint=f"bind `{slot.name}` in both branches",
        )
    form, leaves = split(end)
    if not same_form(form, slot.form):
        first = join(slot.form, iter([part.entry for part in slot.parts]))
        raise _changed(frame, place, slot, first, end)
    moved = False
    for part, leaf in zip(slot.parts, leaves, strict=True):
        if part.fixed and is_number(leaf) and is_same_number(part.entry, leaf):
            continue
        wanted = _settled(part, leaf)
        if wanted is None:
            raise _changed(frame, place, slot, part.entry, leaf)
        moved |= part.fixed or wanted != part.type
        part.type, part.fixed = wanted, False
    if moved:
        return None
    return [
        leaf_as(leaf, part.type)
        for part, leaf in zip(slot.parts, leaves, strict=True)
        if not part.fixed
    ]


def _settled(part: Part, leaf: Any) -> types.Type | None:
    """The type that a carried leaf has to have, seeing its end; None where there is none."""
    known = part.type
    if isinstance(known, types.Tile):
        return _settled_tile(known, leaf)
    assert isinstance(known, types.Scalar)
    if isinstance(leaf, Tile | Pending):
        return None
    if is_number(leaf):
        dtype = _number_dtype(known.dtype, core.natural_dtype(leaf), part.weak)
        return None if dtype is None else types.Scalar(dtype, known.uniform)
    dtype = core.joined_dtype(known.dtype, leaf.dtype)
    if dtype is None:
        dtype = leaf.dtype
        kept = part.weak and dtype.is_bool == known.dtype.is_bool
        if not kept or (known.dtype.is_float and not dtype.is_float):
            return None
    return types.Scalar(dtype, max(known.uniform, uniform(leaf.value)))


def _settled_tile(known: types.Tile, leaf: Any) -> types.Type | None:
    """A tile keeps its shape; its dtype may widen, and an accumulator is pending from the first
    product on."""
    if not isinstance(leaf, Tile | Pending) or leaf.shape != known.shape:
        return None
    if known.pending or isinstance(leaf, Pending):
        same = core.dtype_of(leaf.value) == known.dtype
        return types.Tile(known.dtype, known.shape, pending=True) if same else None
    dtype = core.joined_dtype(known.dtype, leaf.dtype)
    return None if dtype is None else types.Tile(dtype, known.shape)


def _number_dtype(known: DType, natural: DType, weak: bool) -> DType | None:
    """The dtype of a carried scalar that a Python number ends."""
    if natural.is_bool != known.is_bool:
        return None
    if natural.is_float and not known.is_float:
        return natural if weak else None
    if natural.is_int and known.is_int and natural.bits > known.bits:
        return natural if weak else None
    return known


def _changed(frame: Frame, place: ast.AST, slot: Slot, first: Any, last: Any) -> Problem:
    where = frame.bound_at.get(slot.name) or frame.place(place)
    before = None if slot.place is None else Span.at(slot.place, label="before the loop")
    at = difference(first, last)
    first, last = at.first, at.second
    name = "what the schedule gives" if slot.name == ITEM else f"`{slot.name}{at.path}`"
    if at.fixed[0]:
        return frame.problem(
            "F039",
            f"{name} changes in a run-time loop, but exists at compile time only",
            where,
            before,
            notes=[f"before the loop: {kind_of(first)}", f"after one trip: {kind_of(last)}"],
            hint="use `wl.unroll`, which runs at compile time",
        )
    hint = f"bind `{slot.name}` before the loop with the type that it has at the end of the body"
    if isinstance(last, Tile) and not isinstance(first, Tile):
        shape = f"({', '.join(map(str, last.shape))}{',' if len(last.shape) == 1 else ''})"
        hint = f"start with a tile: `{slot.name} = wl.zeros({shape}, wl.{last.dtype})`"
    elif isinstance(first, list) and isinstance(last, list):
        hint = "`wl.unroll(n)` copies the body at compile time: there a list may grow"
    elif isinstance(first, Tile) and isinstance(last, Tile) and first.dtype != last.dtype:
        hint = f"cast at the end of the body: `.cast(wl.{first.dtype})`"
    return frame.problem(
        "F016",
        f"{name} changes its type in a loop",
        where,
        before,
        notes=[f"before the loop: {leaf_text(first)}", f"after one trip: {leaf_text(last)}"],
        hint=hint,
    )


def finish(
    frame: Frame,
    node: LoopNode,
    make: Callable[[tuple[Value, ...]], control.Loop],
    slots: list[Slot],
    after: dict[str, Any],
) -> None:
    """Append the loop that `make` makes of its first carried values, and give the names behind it
    their values."""
    frame.at(node)
    inits = tuple(leaf_as(part.entry, part.type) for slot in slots for part in slot.carried())
    loop = make(inits)
    frame.building.builder.add(loop)
    results = iter(loop.results)
    carried: set[str] = set()
    for slot in slots:
        carried.add(slot.name)
        value = slot.value(results)
        if slot.name not in (CONDITION, ITEM):  # these may be those of a loop around
            frame.names[slot.name] = POISON if after.get(slot.name) is POISON else value
    for name in assigned_in(frame.source, node) - carried:
        poisoned = after.get(name) is POISON
        frame.names[name] = POISON if poisoned else Unbound("loop", frame.bound_at.get(name))


def scratch(frame: Frame, node: LoopNode) -> None:
    """Look at the body of a refused loop for further mistakes, then forget it."""
    frame.poison(assigned_in(frame.source, node))
    before = dict(frame.names)
    frame.depth += 1
    with frame.building.builder.inside(Block()):
        execute(frame, node.body)
    frame.depth -= 1
    frame.names = before

"""`for`: run-time loops with the values they carry, and compile-time loops that copy their body."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from warploom.base.diagnostics import Span
from warploom.base.dtypes import DType, i32, i64
from warploom.frontend.carried import (
    Fixed,
    Form,
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
from warploom.frontend.frame import (
    POISON,
    Frame,
    Problem,
    Silenced,
    Unbound,
    evaluate,
    execute,
    statement,
)
from warploom.frontend.scopes import assigned_in
from warploom.frontend.targets import as_sequence, assign
from warploom.ir import types
from warploom.ir.op import Block, Loc, Value
from warploom.ir.ops import control
from warploom.language import core
from warploom.language.control import Range
from warploom.language.product import Pending
from warploom.language.values import Scalar, Tensor, Tile, index_value, kind_of

# Copies of compile-time loop bodies in one kernel, nested loops multiplied.
_MOST_COPIES = 8192


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

    def carried(self) -> list[Part]:
        """The leaves that are more than constants."""
        return [part for part in self.parts if not part.fixed]

    def value(self, given: Iterator[Value]) -> Any:
        """The value of the name, with an IR value for each carried leaf."""
        leaves = [p.entry if p.fixed else rewrap(next(given), self.name) for p in self.parts]
        return join(self.form, iter(leaves))


class Again(Exception):
    """A trip changes a number that was taken for a constant, or gives a weak number another type,
    or a scalar less uniformity: the body is read once more."""


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
        sequence = as_sequence(over)
        if sequence is None:
            raise _not_a_loop(frame, over, node.iter)
    except (Problem, Silenced) as problem:
        if isinstance(problem, Problem):
            frame.reports.add(problem.report)
        _scratch(frame, node)
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


def _scratch(frame: Frame, node: ast.For) -> None:
    """Look at the body of a refused loop for further mistakes, then forget it."""
    frame.poison(assigned_in(frame.source, node))
    before = dict(frame.names)
    frame.depth += 1
    with frame.building.builder.inside(Block()):
        execute(frame, node.body)
    frame.depth -= 1
    frame.names = before


def _run_time(frame: Frame, node: ast.For, over: Range) -> None:
    """Build a `control.for`."""
    if not isinstance(node.target, ast.Name):
        raise frame.problem("F032", "a loop over a range binds one name", node.target)
    frame.at(node.iter)
    lo, hi, step = _bounds(over)
    spread = max(uniform(v) for v in (lo, hi, step))
    slots = _slots(frame, node, spread)
    before, reports, block = frame.names, frame.reports.mark(), Block()
    copies = frame.building.copies
    # Each reading moves something one way: a constant to a value, a value to less uniformity.
    while True:
        frame.names = dict(before)
        index = Value(
            types.Scalar(core.dtype_of(lo), spread), node.target.id, frame.place(node.target)
        )
        frame.building.facts.note_loop(index, lo, step)
        entries = [Value(p.type, slot.name) for slot in slots for p in slot.carried()]
        block = Block((index, *entries))
        try:
            with frame.building.builder.inside(block):
                ends = _body(frame, node, index, slots, entries)
                frame.building.builder.add(control.Yield(values=tuple(ends)))
            break
        except Again:
            frame.names = before
            frame.reports.rewind(reports)
            frame.building.copies = copies
    after, frame.names = frame.names, before
    _finish(frame, node, (lo, hi, step, over.unroll), slots, block, after)


def _bounds(over: Range) -> tuple[Value, Value, Value]:
    """Bounds and step as scalars of one integer type."""
    values = [index_value(v) for v in (over.lo, over.hi, over.step)]
    wide = any(core.dtype_of(v) != i32 for v in values)
    lo, hi, step = (core.convert(v, i64 if wide else i32) for v in values)
    return lo, hi, step


def _slots(frame: Frame, node: ast.For, spread: types.Uniformity) -> list[Slot]:
    """The names that are bound before, assigned in the body, and read there or later."""
    names = assigned_in(frame.source, node) & frame.liveness.head[node]
    slots: list[Slot] = []
    for name in sorted(names):
        value = frame.names.get(name, POISON)
        if value is POISON or isinstance(value, Unbound):
            continue
        form, leaves = split(value)
        parts = [_part(leaf, spread) for leaf in leaves]
        slots.append(Slot(name, form, parts, frame.bound_at.get(name)))
    return slots


def _part(leaf: Any, spread: types.Uniformity) -> Part:
    if isinstance(leaf, Tile | Pending):
        return Part(leaf, leaf.value.type, weak=False, fixed=False)
    if isinstance(leaf, Scalar):
        type = types.Scalar(leaf.dtype, max(uniform(leaf.value), spread))
        return Part(leaf, type, weak=False, fixed=False)
    return Part(leaf, types.Scalar(core.natural_dtype(leaf), spread), weak=True, fixed=True)


def _body(
    frame: Frame, node: ast.For, index: Value, slots: list[Slot], entries: list[Value]
) -> list[Value]:
    """Read the body once; the values that it gives to the next trip."""
    assert isinstance(node.target, ast.Name)
    given = iter(entries)
    for slot in slots:
        frame.names[slot.name] = slot.value(given)
    frame.bind(node.target.id, Scalar(index), node.target)
    frame.depth += 1
    try:
        execute(frame, node.body)
    finally:
        frame.depth -= 1
    frame.at(node)
    ends: list[Value] = []
    again = False
    for slot in slots:
        end = frame.names.get(slot.name, POISON)
        kept = entries[len(ends) : len(ends) + len(slot.carried())]
        if end is not POISON:
            try:
                found = _ends(frame, node, slot, end)
                again |= found is None
                kept = kept if found is None else found
            except Problem as problem:
                frame.reports.add(problem.report)
                frame.names[slot.name] = POISON
        ends += kept
    if again:
        raise Again
    return ends


def _ends(frame: Frame, node: ast.For, slot: Slot, end: Any) -> list[Value] | None:
    """The carried leaves of a name at the end of the body; None where their types have changed."""
    if isinstance(end, Unbound) and end.reason == "thread":
        raise frame.unbound(slot.name, end, node.target)
    if isinstance(end, Unbound):
        raise frame.problem(
            "F014",
            f"`{slot.name}` has no value at the end of some trips of this loop",
            node.target,
            end.place,
            hint=f"bind `{slot.name}` in both branches",
        )
    form, leaves = split(end)
    if not same_form(form, slot.form):
        first = join(slot.form, iter([part.entry for part in slot.parts]))
        raise _changed(frame, node, slot, first, end)
    moved = False
    for part, leaf in zip(slot.parts, leaves, strict=True):
        if part.fixed and is_number(leaf) and is_same_number(part.entry, leaf):
            continue
        wanted = _settled(part, leaf)
        if wanted is None:
            raise _changed(frame, node, slot, part.entry, leaf)
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


def _changed(frame: Frame, node: ast.For, slot: Slot, first: Any, last: Any) -> Problem:
    where = frame.bound_at.get(slot.name) or frame.place(node.target)
    before = None if slot.place is None else Span.at(slot.place, label="before the loop")
    if isinstance(slot.form, Fixed):
        return frame.problem(
            "F039",
            f"`{slot.name}` changes in a run-time loop, but exists at compile time only",
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
        f"`{slot.name}` changes its type in a loop",
        where,
        before,
        notes=[f"before the loop: {leaf_text(first)}", f"after one trip: {leaf_text(last)}"],
        hint=hint,
    )


def _finish(
    frame: Frame,
    node: ast.For,
    bounds: tuple[Value, Value, Value, int],
    slots: list[Slot],
    block: Block,
    after: dict[str, Any],
) -> None:
    """Append the loop, and give the names behind it their values."""
    lo, hi, step, unroll = bounds
    frame.at(node)
    inits = tuple(leaf_as(part.entry, part.type) for slot in slots for part in slot.carried())
    loop = control.For(lo=lo, hi=hi, step=step, inits=inits, unroll=unroll, body=block)
    frame.building.builder.add(loop)
    results = iter(loop.results)
    carried: set[str] = set()
    for slot in slots:
        carried.add(slot.name)
        value = slot.value(results)
        frame.names[slot.name] = POISON if after.get(slot.name) is POISON else value
    for name in assigned_in(frame.source, node) - carried:
        poisoned = after.get(name) is POISON
        frame.names[name] = POISON if poisoned else Unbound("loop", frame.bound_at.get(name))

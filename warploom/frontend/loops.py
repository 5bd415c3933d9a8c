"""`for`: run-time loops with the values they carry, and compile-time loops that copy their body."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

from warploom.base.diagnostics import Span
from warploom.base.dtypes import DType, i32, i64
from warploom.frontend.carried import (
    Fixed,
    Form,
    converted,
    is_number,
    join,
    leaf_as,
    leaf_text,
    leaf_value,
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
from warploom.frontend.scopes import assigned, assigned_by
from warploom.frontend.targets import as_sequence, assign
from warploom.ir import types
from warploom.ir.op import Block, Loc, Value
from warploom.ir.ops import control
from warploom.language import core
from warploom.language.control import Range
from warploom.language.product import Pending
from warploom.language.values import Scalar, Tensor, Tile, index_value, kind_of


@dataclass(slots=True)
class Slot:
    """One name that a loop carries: its form and leaves on entry, and the types of the leaves.

    A Python number has no dtype of its own (`weak`): it takes the one that the body gives it.
    """

    name: str
    form: Form
    leaves: list[Any]
    place: Loc | None = None
    types: list[types.Type] = field(default_factory=list)
    weak: list[bool] = field(default_factory=list)


class Again(Exception):
    """The body gives a weak number another type, or a scalar less uniformity: read it once more."""


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
    frame.poison(assigned([node]))
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
    before, reports, block = frame.names, len(frame.reports.found), Block()
    # Uniformity can sink twice, and a dtype settles at once; what still moves then is a mistake.
    for attempt in range(6):
        frame.names = dict(before)
        index = Value(
            types.Scalar(core.dtype_of(lo), spread), node.target.id, frame.place(node.target)
        )
        frame.building.facts.note_loop(index, lo, step)
        entries = [[Value(t, slot.name) for t in slot.types] for slot in slots]
        block = Block((index, *(v for values in entries for v in values)))
        final = attempt == 5 or len(frame.reports.found) > reports
        try:
            with frame.building.builder.inside(block):
                ends = _body(frame, node, index, slots, entries, final)
                frame.building.builder.add(control.Yield(values=tuple(ends)))
            break
        except Again:
            frame.names = before
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
    names = assigned(node.body) & frame.liveness.head[node]
    slots: list[Slot] = []
    for name in sorted(names):
        value = frame.names.get(name, POISON)
        if value is POISON or isinstance(value, Unbound):
            continue
        form, leaves = split(value)
        slot = Slot(name, form, leaves, frame.bound_at.get(name))
        for leaf in leaves:
            slot.weak.append(is_number(leaf))
            type: types.Type
            if isinstance(leaf, Tile | Pending):
                type = leaf.value.type
            elif isinstance(leaf, Scalar):
                type = types.Scalar(leaf.dtype, max(uniform(leaf.value), spread))
            else:
                type = types.Scalar(core.natural_dtype(leaf), spread)
            slot.types.append(type)
        slots.append(slot)
    return slots


def _body(
    frame: Frame,
    node: ast.For,
    index: Value,
    slots: list[Slot],
    entries: list[list[Value]],
    final: bool,
) -> list[Value]:
    """Read the body once; the values that it gives to the next trip."""
    assert isinstance(node.target, ast.Name)
    for slot, values in zip(slots, entries, strict=True):
        leaves = iter([rewrap(v, slot.name) for v in values])
        frame.names[slot.name] = join(slot.form, leaves)
    frame.bind(node.target.id, Scalar(index), node.target)
    frame.depth += 1
    try:
        execute(frame, node.body)
    finally:
        frame.depth -= 1
    frame.at(node)
    ends: list[Value] = []
    again = False
    for slot, values in zip(slots, entries, strict=True):
        end = frame.names.get(slot.name, POISON)
        if end is POISON:
            ends += values
            continue
        try:
            found, moved = _ends(frame, node, slot, end)
        except Problem as problem:
            frame.reports.add(problem.report)
            frame.names[slot.name] = POISON
            found, moved = values, False
        ends += found
        again |= moved
    if again and not final:
        raise Again
    return ends


def _ends(frame: Frame, node: ast.For, slot: Slot, end: Any) -> tuple[list[Value], bool]:
    """The leaves of one carried name at the end of the body; whether its types have to change."""
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
        raise _changed(frame, node, slot, join(slot.form, iter(slot.leaves)), end)
    values: list[Value] = []
    moved = False
    for at, leaf in enumerate(leaves):
        known = slot.types[at]
        wanted = _settled(slot, at, leaf)
        if wanted is None:
            raise _changed(frame, node, slot, slot.leaves[at], leaf)
        if wanted != known:
            slot.types[at] = wanted
            moved = True
        dtype = known.dtype if isinstance(known, types.Scalar | types.Tile) else i32
        if isinstance(known, types.Scalar):
            values.append(leaf_value(leaf, dtype) if moved else converted(leaf, dtype))
        else:
            values.append(leaf_as(leaf, known))
    return values, moved


def _settled(slot: Slot, at: int, leaf: Any) -> types.Type | None:
    """The type that a carried leaf has to have, seeing its end; None where there is none."""
    known = slot.types[at]
    if not isinstance(known, types.Scalar):
        return _settled_tile(known, leaf)
    if isinstance(leaf, Tile | Pending):
        return None
    if is_number(leaf):
        natural = core.natural_dtype(leaf)
        dtype = _number_dtype(known.dtype, natural, slot.weak[at])
        return None if dtype is None else types.Scalar(dtype, known.uniform)
    dtype = leaf.dtype
    if dtype != known.dtype:
        kept = slot.weak[at] and dtype.is_bool == known.dtype.is_bool
        if not kept or (known.dtype.is_float and not dtype.is_float):
            return None
    return types.Scalar(dtype, max(known.uniform, uniform(leaf.value)))


def _settled_tile(known: types.Type, leaf: Any) -> types.Type | None:
    """A tile keeps its type, but for an accumulator, which is pending from the first product on."""
    if not isinstance(leaf, Tile | Pending) or not isinstance(known, types.Tile):
        return None
    found = leaf.value.type
    assert isinstance(found, types.Tile)
    pending = known.pending or found.pending
    if replace(found, pending=pending) != replace(known, pending=pending):
        return None
    return replace(known, pending=pending)


def _number_dtype(known: DType, natural: DType, weak: bool) -> DType | None:
    """The dtype of a carried scalar that a Python number ends."""
    if natural.is_bool != known.is_bool:
        return None
    if natural.is_float and not known.is_float:
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
    inits = tuple(
        converted(leaf, type.dtype) if isinstance(type, types.Scalar) else leaf_as(leaf, type)
        for slot in slots
        for leaf, type in zip(slot.leaves, slot.types, strict=True)
    )
    loop = control.For(lo=lo, hi=hi, step=step, inits=inits, unroll=unroll, body=block)
    frame.building.builder.add(loop)
    results = iter(loop.results)
    carried: set[str] = set()
    for slot in slots:
        carried.add(slot.name)
        leaves = iter([rewrap(next(results), slot.name) for _ in slot.leaves])
        value = join(slot.form, leaves)
        frame.names[slot.name] = POISON if after.get(slot.name) is POISON else value
    for name in (assigned(node.body) | assigned_by(node.target)) - carried:
        poisoned = after.get(name) is POISON
        frame.names[name] = POISON if poisoned else Unbound("loop", frame.bound_at.get(name))

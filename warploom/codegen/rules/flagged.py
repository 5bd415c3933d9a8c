"""Flagged data: one helper call a word."""

from __future__ import annotations

from warploom.codegen import flagged_helpers
from warploom.codegen.flag_helpers import stop_asked
from warploom.codegen.registry import emits
from warploom.codegen.rules.global_memory import pointer
from warploom.codegen.state import Emitter, dtype_of, extents_of
from warploom.ir.op import Value
from warploom.ir.ops import flagged as ops


@emits(ops.Put)
def put(out: Emitter, op: ops.Put) -> None:
    guarded = op.predicate is not None
    kinds = [dtype_of(v) for v in op.values]
    name = flagged_helpers.put(out.prelude, kinds, op.scope, guarded=guarded)
    header, (where, *given) = _each(out, op, *op.values)
    test = [given.pop()] if guarded else []
    arguments = ", ".join((_at(out, op, where), *given, out.scalar(op.epoch), *test))
    out.lines.add(f"{header}{name}({arguments});")


@emits(ops.Look)
def look(out: Emitter, op: ops.Look) -> None:
    guarded = op.predicate is not None
    name = flagged_helpers.look(out.prelude, op.long, op.scope, guarded=guarded)
    for value in op.results:
        out.declare_only(value, "found")
    header, (where, *given) = _each(out, op, *op.results)
    test = [given.pop()] if guarded else []
    arguments = ", ".join((*(f"&{to}" for to in given), _at(out, op, where), *test))
    out.lines.add(f"{header}{name}({arguments});")


@emits(ops.Take)
def take(out: Emitter, op: ops.Take) -> None:
    """All words that are missing are looked at again together, until none is."""
    guarded = op.predicate is not None
    found = [op.found] if op.behind is None else [op.found, op.behind]
    name = flagged_helpers.look_again(out.prelude, len(found) > 1, op.scope, guarded=guarded)
    header, (where, *given) = _each(out, op, *found)
    test = [given.pop()] if guarded else []
    arguments = (*(f"&{at}" for at in given), _at(out, op, where), out.scalar(op.epoch), *test)
    on, polls = "again", ""
    if op.stop is not None:
        polls = ", polls = 0"
        on = f"again && !{stop_asked(out.prelude)}({out.place(op.stop).root}, ++polls)"
    with out.lines.braces(f"for (int again = 1{polls}; {on};)"):
        out.lines.add("again = 0;")
        out.lines.add(f"{header}again |= {name}({', '.join(arguments)});")
    for value in op.results:
        out.declare_only(value, "received")
    name = flagged_helpers.values(out.prelude, op.kinds)
    header, (_, *given) = _each(out, op, *op.results, *found)
    count = len(op.results)
    places = [f"&{to}" for to in given[:count]] + given[count : count + len(found)]
    out.lines.add(f"{header}{name}({', '.join(places)});")


def _each(
    out: Emitter, op: ops.Put | ops.Look | ops.Take, *values: Value
) -> tuple[str, tuple[str, ...]]:
    """The loops over the words, and the registers inside them: offset, values, predicate."""
    operands = [op.offset, *values] + ([] if op.predicate is None else [op.predicate])
    found = out.walk(extents_of(op.offset), *(out.place(v) for v in operands))
    return found.header, found.registers


def _at(out: Emitter, op: ops.Put | ops.Look | ops.Take, where: str) -> str:
    """The address of a word."""
    return pointer(out, op) if where == "0" else f"{pointer(out, op)} + {where}"

"""Accesses to global memory: one helper call a vector group."""

from __future__ import annotations

from typing import Any

from warploom.codegen import access_helpers, atomic_helpers
from warploom.codegen.places import Place
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, dtype_of, extents_of
from warploom.ir.op import Value
from warploom.ir.ops import global_memory as ops
from warploom.ir.ops.scalar import tensor_of


@emits(ops.Load)
def load(out: Emitter, op: ops.Load) -> None:
    name = access_helpers.load(
        out.prelude,
        "global",
        dtype_of(op.result),
        op.vec,
        guard=guard_of(op.predicate, op.other),
        read_only=op.read_only,
        cache=op.cache,
    )
    load_groups(
        out, op.result, name, op.offset, op.predicate, op.other, op.axis, op.vec, pointer(out, op)
    )


@emits(ops.Store)
def store(out: Emitter, op: ops.Store) -> None:
    name = access_helpers.store(
        out.prelude,
        "global",
        dtype_of(op.value),
        op.vec,
        guard=guard_of(op.predicate, None),
        cache=op.cache,
    )
    store_groups(out, op.value, name, op.offset, op.predicate, op.axis, op.vec, pointer(out, op))


@emits(ops.Prefetch)
def prefetch(out: Emitter, op: ops.Prefetch) -> None:
    guard = op.predicate is not None
    dtype = tensor_of(op.tensor).dtype
    name = access_helpers.prefetch(out.prelude, dtype, op.level, guard=guard)
    places = [out.place(v) for v in (op.offset, op.predicate) if v is not None]
    found = out.walk(extents_of(op.offset), *places)
    where, *test = found.registers
    arguments = ", ".join((_moved(pointer(out, op), " + ", where), *test))
    out.lines.add(f"{found.header}{name}({arguments});")


@emits(ops.Atomic)
def atomic(out: Emitter, op: ops.Atomic) -> None:
    bare = not op.returns and atomic_helpers.has_bare_form(op.kind, op.order)
    name = atomic_helpers.atomic(
        *(out.prelude, dtype_of(op.value), op.kind, op.order, op.scope),
        bare=bare,
        guarded=op.predicate is not None,
    )
    operands = [op.offset, op.expected, op.value, op.predicate]
    places = [out.place(v) for v in operands if v is not None]
    declaration, to = "", ""
    if op.returns:
        place, declaration = out.declare(op.result, "old")
        declaration = declaration if place.array else f"{declaration}{place.root}; "
        places.append(place)
    found = out.walk(extents_of(op.offset), *places)
    where, *given = found.registers
    if op.returns:
        to = f"{given.pop()} = "
    arguments = ", ".join((_moved(pointer(out, op), " + ", where), *given))
    out.lines.add(f"{declaration}{found.header}{to}{name}({arguments});")


@emits(ops.LoadScalar)
def load_scalar(out: Emitter, op: ops.LoadScalar) -> None:
    guard = guard_of(op.predicate, op.other)
    name = access_helpers.load(
        out.prelude, "global", dtype_of(op.result), 1, guard=guard, read_only=op.read_only
    )
    place, declaration = out.declare(op.result, "s")
    arguments = [f"&{place.only}", pointer(out, op)]
    arguments += [out.scalar(v) for v in (op.predicate, op.other) if v is not None]
    out.lines.add(f"{declaration}{place.only}; {name}({', '.join(arguments)});")


def pointer(out: Emitter, op: Any) -> str:
    """Where the window of an access begins."""
    return element_at(out, op.tensor, op.base)


def element_at(out: Emitter, tensor: Value, base: Value) -> str:
    """tensor + base, in pointer arithmetic, so that sums of offsets do not wrap."""
    return _moved(out.place(tensor).root, " + ", out.scalar(base))


def _moved(at: str, separator: str, offset: str) -> str:
    """An address moved by an offset; shared accesses take the two as arguments."""
    return at if separator == " + " and offset in ("0", "0ll") else f"{at}{separator}{offset}"


def guard_of(predicate: Value | None, other: Value | None) -> str:
    """Which form of a helper an access takes."""
    if predicate is None:
        return ""
    return "p" if other is None else "p, other"


def load_groups(
    out: Emitter,
    result: Value,
    name: str,
    offset: Value,
    predicate: Value | None,
    other: Value | None,
    axis: int,
    vec: int,
    at: str,
    separator: str = " + ",
) -> None:
    """Print the loads of a register tile, one call a vector group."""
    place, declaration = out.declare(result)
    if not place.array:
        declaration = f"{declaration}{place.root}; "
    places = [place.groups(axis, vec), out.place(offset)]
    if predicate is not None:
        places.append(out.place(predicate))
    found = out.walk(extents_of(offset), *places)
    to, where, *guard = found.registers
    arguments = [f"&{to}", _moved(at, separator, where), *guard]
    if predicate is not None and other is not None:
        arguments.append(out.scalar(other))
    call = f"{name}{_step(place, axis, vec)}({', '.join(arguments)});"
    out.lines.add(f"{declaration}{found.header}{call}")


def store_groups(
    out: Emitter,
    value: Value,
    name: str,
    offset: Value,
    predicate: Value | None,
    axis: int,
    vec: int,
    at: str,
    separator: str = " + ",
    *more: str,
) -> None:
    """Print the stores of a register tile, one call a vector group. `more` arguments stand behind
    the place."""
    place = out.variable(value)
    places = [place.groups(axis, vec), out.place(offset)]
    if predicate is not None:
        places.append(out.place(predicate))
    found = out.walk(extents_of(offset), *places)
    held, where, *guard = found.registers
    arguments = ", ".join((_moved(at, separator, where), *more, f"&{held}", *guard))
    out.lines.add(f"{found.header}{name}{_step(place, axis, vec)}({arguments});")


def _step(place: Place, axis: int, vec: int) -> str:
    """The template argument: how far apart the registers of one vector stand."""
    if vec == 1 or place.strides[axis] == 1:
        return ""
    return f"<{place.strides[axis]}>"

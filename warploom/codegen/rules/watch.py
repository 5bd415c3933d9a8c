"""Waits that are watched: one call an operation, with the size of the notes before what it says."""

from __future__ import annotations

from warploom.codegen import watch_helpers
from warploom.codegen.registry import emits
from warploom.codegen.rules.global_memory import element_at, pointer
from warploom.codegen.state import Emitter, extents_of
from warploom.ir import watch as words
from warploom.ir.op import Value
from warploom.ir.ops import watch as ops

_SLOT_BYTES = 8
_Noting = ops.Barrier | ops.Flag | ops.Words | ops.Meet | ops.Arrive | ops.At | ops.End


def _notes(out: Emitter, op: _Noting) -> str:
    """The tensor, its extent and the words of a section."""
    size = words.words(op.warps, op.barriers)
    return f"{out.scalar(op.watch)}, {out.extents[(op.watch, 0)]}, {size}"


def _who(op: ops.Barrier | ops.Flag | ops.Words | ops.Meet | ops.At) -> str:
    """Whether whole warps come here, whether products may be under way, and the cluster."""
    sizes = ", ".join(map(str, op.cluster))
    return f"<{_bool(not op.alone)}, {_bool(op.drains)}, {sizes}>"


def _bool(yes: bool) -> str:
    return "true" if yes else "false"


def _number(out: Emitter, first: int, offset: Value | None) -> str:
    return f"{first} + {out.scalar(offset)} / {_SLOT_BYTES}" if offset is not None else str(first)


@emits(ops.Barrier)
def barrier(out: Emitter, op: ops.Barrier) -> None:
    name = watch_helpers.use(out.prelude, "barrier")
    at = out.scalar(op.barrier)
    number = _number(out, op.first, op.offset) if op.first >= 0 else f"-1 - (int)({at})"
    held = f"{_notes(out, op)}, {32 * op.warps}, {op.place}, {at}, {out.scalar(op.parity)}"
    out.lines.add(f"{name}{_who(op)}({held}, {number});")


@emits(ops.Flag)
def flag(out: Emitter, op: ops.Flag) -> None:
    name = watch_helpers.use(out.prelude, "flag")
    element, target = element_at(out, op.tensor, op.base), out.scalar(op.target)
    held = f"{_notes(out, op)}, {32 * op.warps}, {op.place}, {element}, {target}"
    call = f"{name}{_who(op)}({held}, {out.scalar(op.base)});"
    out.lines.add(call if op.predicate is None else f"if ({out.scalar(op.predicate)}) {call}")


@emits(ops.Words)
def wanted(out: Emitter, op: ops.Words) -> None:
    name = watch_helpers.use(out.prelude, "wanted")
    guarded = [] if op.predicate is None else [out.place(op.predicate)]
    found = out.walk(extents_of(op.offset), out.place(op.offset), *guarded)
    where, *wants = found.registers
    element = f"{out.scalar(op.base)} + {where}"
    at = f"{pointer(out, op)} + {where}" + (" + 1" if op.long else "")
    held = f"{_notes(out, op)}, {32 * op.warps}, {op.place}, {at}, {out.scalar(op.epoch)}"
    call = f"{name}{_who(op)}({held}, {element}, {wants[0] if wants else 'true'});"
    out.lines.add(f"{found.header}{call}")


@emits(ops.Meet)
def meet(out: Emitter, op: ops.Meet) -> None:
    name = watch_helpers.use(out.prelude, "meet")
    replica = op.per_replica and out.warps.replicas > 1
    number = f"{op.id} + {out.warps.replica}" if replica else str(op.id)
    held = f"{_notes(out, op)}, {32 * op.warps}, {op.place}, {number}, {op.threads}"
    out.lines.add(f"{name}{_who(op)}({held}, {_bool(op.waits)});")


@emits(ops.Arrive)
def arrive(out: Emitter, op: ops.Arrive) -> None:
    name = watch_helpers.use(out.prelude, "arrive")
    if op.rank is None:
        block = "watch_this_block()"
    else:
        peer = watch_helpers.use(out.prelude, "peer")
        block = f"{peer}({out.scalar(op.rank)}, {', '.join(map(str, op.cluster))})"
    number = _number(out, op.first, op.offset)
    row = f"{words.barrier_rows(op.warps)} + {words.BARRIER_ROW} * ({number})"
    counts = f"{op.count}, {op.arrivals}, {op.bytes}"
    out.lines.add(f"{name}({_notes(out, op)}, {block}, {row}, {counts});")


@emits(ops.At)
def at(out: Emitter, op: ops.At) -> None:
    if op.leaves:
        name = watch_helpers.use(out.prelude, "behind") + _who(op)
        out.lines.add(f"{name}({_notes(out, op)}, {32 * op.warps}, {op.place});")
        return
    name = watch_helpers.use(out.prelude, "at")
    out.lines.add(f"{name}({_notes(out, op)}, {op.place});")


@emits(ops.End)
def end(out: Emitter, op: ops.End) -> None:
    name = watch_helpers.use(out.prelude, "end")
    out.lines.add(f"{name}({_notes(out, op)});")


@emits(ops.Delay)
def delay(out: Emitter, op: ops.Delay) -> None:
    name = watch_helpers.use(out.prelude, "delay")
    out.lines.add(f"{name}({op.seed}u, {op.place}u, {out.assigned(op.at).only}++);")

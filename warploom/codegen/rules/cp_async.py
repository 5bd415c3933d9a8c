"""Copies by threads: one helper call a vector group."""

from __future__ import annotations

from warploom.codegen import async_helpers
from warploom.codegen.registry import emits
from warploom.codegen.rules.global_memory import pointer
from warploom.codegen.state import Emitter, extents_of
from warploom.ir.ops import cp_async as ops
from warploom.ir.ops.scalar import tensor_of


@emits(ops.CopyGroups)
def copy_groups(out: Emitter, op: ops.CopyGroups) -> None:
    inside, guard = op.inside is not None, op.predicate is not None
    dtype = tensor_of(op.tensor).dtype
    name = async_helpers.copy_group(out.prelude, dtype, op.vec, inside=inside, guard=guard)
    optional = [v for v in (op.inside, op.predicate) if v is not None]
    places = [out.place(v) for v in (op.place, op.offset, *optional)]
    found = out.walk(extents_of(op.offset), *places)
    place, offset, *flags = found.registers
    start, buffer = pointer(out, op), out.place(op.buffer).root
    arguments = ", ".join((buffer, place, f"{start} + {offset}", *flags))
    out.lines.add(f"{found.header}{name}({arguments});")


@emits(ops.Commit)
def commit(out: Emitter, op: ops.Commit) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, 'cp_async_commit')}();")


@emits(ops.Wait)
def wait(out: Emitter, op: ops.Wait) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, 'cp_async_wait')}<{op.pending}>();")


@emits(ops.Arrive)
def arrive(out: Emitter, op: ops.Arrive) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, 'cp_async_arrive')}({out.scalar(op.barrier)});")

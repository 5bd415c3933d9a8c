"""Accesses to the shared memory of peers: one helper call a vector group, or one copy."""

from __future__ import annotations

from warploom.codegen import access_helpers, async_helpers
from warploom.codegen.access_helpers import PEER
from warploom.codegen.registry import emits
from warploom.codegen.rules.global_memory import guard_of, load_groups, store_groups
from warploom.codegen.state import Emitter, dtype_of
from warploom.ir.ops import remote as ops


@emits(ops.LoadGroups)
def load(out: Emitter, op: ops.LoadGroups) -> None:
    guard = guard_of(op.predicate, None)
    name = access_helpers.load(out.prelude, PEER, dtype_of(op.result), op.vec, guard=guard)
    at = out.scalar(op.address)
    load_groups(out, op.result, name, op.offset, op.predicate, None, op.axis, op.vec, at, ", ")


@emits(ops.StoreGroups)
def store(out: Emitter, op: ops.StoreGroups) -> None:
    guard = guard_of(op.predicate, None)
    name = access_helpers.store(out.prelude, PEER, dtype_of(op.value), op.vec, guard=guard)
    at = out.scalar(op.address)
    store_groups(out, op.value, name, op.offset, op.predicate, op.axis, op.vec, at, ", ")


@emits(ops.SendGroups)
def send(out: Emitter, op: ops.SendGroups) -> None:
    guard = guard_of(op.predicate, None)
    name = access_helpers.send(out.prelude, dtype_of(op.value), op.vec, guard=guard, alone=op.alone)
    at, barrier = out.scalar(op.address), out.scalar(op.barrier)
    store_groups(
        *(out, op.value, name, op.offset, op.predicate, op.axis, op.vec, at, ", "), barrier
    )


@emits(ops.CopyBytes)
def copy(out: Emitter, op: ops.CopyBytes) -> None:
    name = async_helpers.use(out.prelude, "bulk_copy_to_peer")
    source, target = out.scalar(op.source), out.scalar(op.target)
    out.lines.add(f"{name}({target}, {source}, {op.bytes}, {out.scalar(op.barrier)});")

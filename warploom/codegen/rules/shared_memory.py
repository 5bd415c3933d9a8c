"""Buffers in shared memory and accesses to them: one helper call a vector group."""

from __future__ import annotations

from warploom.codegen import access_helpers
from warploom.codegen.places import Place
from warploom.codegen.registry import emits
from warploom.codegen.rules.global_memory import guard_of, load_groups, store_groups
from warploom.codegen.state import Emitter, Fault, dtype_of
from warploom.ir.ops import shared_memory as ops


@emits(ops.BufferOp)
def buffer(out: Emitter, op: ops.BufferOp) -> None:
    if op.at < 0:
        raise Fault(f"{op.result} has no place in shared memory")
    if op.at + op.size > out.kernel.shared_bytes:
        raise Fault(f"{op.result} ends beyond the {out.kernel.shared_bytes} bytes of the block")
    out.prelude.use("u32")
    name = out.names.take(op.result.name or "buffer")
    out.places[op.result] = Place.expression(name)
    size = f"{op.dtype.name} × {op.elements}"
    own = f" + ({out.warps.replica}) * {op.pitch}" if op.copies > 1 else ""
    out.lines.add(f"const u32 {name} = smem + {op.at}{own};  // {size}")


@emits(ops.Address)
def address(out: Emitter, op: ops.Address) -> None:
    out.alias(op.result, Place.expression(f"(int){out.place(op.buffer).root}"))


@emits(ops.Load)
def load(out: Emitter, op: ops.Load) -> None:
    name = access_helpers.load(
        out.prelude, "shared", dtype_of(op.result), op.vec, guard=guard_of(op.predicate, None)
    )
    at = out.place(op.buffer).root
    load_groups(out, op.result, name, op.offset, op.predicate, None, op.axis, op.vec, at, ", ")


@emits(ops.Store)
def store(out: Emitter, op: ops.Store) -> None:
    name = access_helpers.store(
        out.prelude, "shared", dtype_of(op.value), op.vec, guard=guard_of(op.predicate, None)
    )
    at = out.place(op.buffer).root
    store_groups(out, op.value, name, op.offset, op.predicate, op.axis, op.vec, at, ", ")

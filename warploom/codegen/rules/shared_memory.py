"""Buffers in shared memory and accesses to them: one helper call a vector group."""

from __future__ import annotations

from dataclasses import replace

from warploom.codegen import access_helpers
from warploom.codegen.places import Place
from warploom.codegen.registry import emits
from warploom.codegen.rules.global_memory import guard_of, load_groups, store_groups
from warploom.codegen.state import Emitter, Fault, dtype_of, extents_of
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


@emits(ops.StoreMatrices)
def store_matrices(out: Emitter, op: ops.StoreMatrices) -> None:
    name = access_helpers.matrices(out.prelude, dtype_of(op.value), load=False, turned=op.turned)
    _matrices(out, op, name, out.place(op.value))


@emits(ops.LoadMatrices)
def load_matrices(out: Emitter, op: ops.LoadMatrices) -> None:
    name = access_helpers.matrices(out.prelude, dtype_of(op.result), load=True, turned=op.turned)
    _matrices(out, op, name, out.declare_only(op.result))


def _matrices(
    out: Emitter, op: ops.StoreMatrices | ops.LoadMatrices, name: str, held: Place
) -> None:
    """One call an instruction: upper and lower rows of eight columns, then of the next eight."""
    down, across = held.strides
    steps = (2 * down, 4 * across)
    extents = extents_of(op.offset)
    registers = [
        replace(
            held, extents=extents, strides=steps, offset=held.offset + half * down + column * across
        )
        for column, half in ((0, 0), (0, 1), (2, 0), (2, 1))
    ]
    pairs = [
        replace(first, offset=first.offset + e * across) for first in registers for e in (0, 1)
    ]
    found = out.walk(extents, out.place(op.offset), *pairs)
    where, *texts = found.registers
    at = out.place(op.buffer).root
    out.lines.add(f"{found.header}{name}({at}, {where}, {', '.join(texts)});")

"""Descriptors that a kernel makes: one helper a rank."""

from __future__ import annotations

from warploom.codegen import async_helpers, descriptor_helpers
from warploom.codegen.registry import emits
from warploom.codegen.rules.global_memory import element_at
from warploom.codegen.rules.tma import descriptor_at, made, map_of
from warploom.codegen.state import Emitter
from warploom.ir.ops import descriptor as ops
from warploom.ir.ops.scalar import tensor_of


@emits(ops.Write)
def write(out: Emitter, op: ops.Write) -> None:
    size = tensor_of(op.tensor).dtype.bytes
    name = descriptor_helpers.write(out.prelude, len(op.extents))
    arguments = [
        descriptor_at(out, op.room, op.number),
        out.scalar(op.address),
        map_of(out, op.map),
        element_at(out, op.tensor, op.start),
        *map(out.scalar, op.extents),
        *(f"{size} * {out.scalar(step)}" for step in op.strides),
    ]
    out.lines.add(f"{name}({', '.join(arguments)});")


@emits(ops.Acquire)
def acquire(out: Emitter, op: ops.Acquire) -> None:
    name = descriptor_helpers.acquire(out.prelude)
    out.lines.add(f"{name}({descriptor_at(out, op.room, op.number)});")


@emits(ops.Prefetch)
def prefetch(out: Emitter, op: ops.Prefetch) -> None:
    name = async_helpers.use(out.prelude, "prefetch_map")
    out.lines.add(f"{name}({made(out, op.room, op.number)});")

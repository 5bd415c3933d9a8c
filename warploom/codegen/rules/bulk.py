"""Bulk copies of bytes: one helper a dtype, reduction and cache policy."""

from __future__ import annotations

from warploom.codegen import async_helpers
from warploom.codegen.registry import emits
from warploom.codegen.rules.global_memory import pointer
from warploom.codegen.state import Emitter
from warploom.ir.ops import bulk as ops
from warploom.ir.ops.scalar import tensor_of


@emits(ops.LoadBytes)
def load_bytes(out: Emitter, op: ops.LoadBytes) -> None:
    name = async_helpers.load_bytes(out.prelude, tensor_of(op.tensor).dtype, op.cache)
    at, barrier = out.scalar(op.address), out.scalar(op.barrier)
    out.lines.add(f"{name}({at}, {pointer(out, op)}, {op.bytes}, {barrier});")


@emits(ops.StoreBytes)
def store_bytes(out: Emitter, op: ops.StoreBytes) -> None:
    dtype = tensor_of(op.tensor).dtype
    name = async_helpers.store_bytes(out.prelude, dtype, op.reduce, op.cache)
    out.lines.add(f"{name}({pointer(out, op)}, {out.scalar(op.address)}, {op.bytes});")


@emits(ops.PrefetchBytes)
def prefetch_bytes(out: Emitter, op: ops.PrefetchBytes) -> None:
    name = async_helpers.prefetch_bytes(out.prelude, tensor_of(op.tensor).dtype)
    out.lines.add(f"{name}({pointer(out, op)}, {op.bytes});")

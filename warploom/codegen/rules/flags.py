"""Flags in global memory, by one thread."""

from __future__ import annotations

from warploom.codegen import flag_helpers
from warploom.codegen.registry import emits
from warploom.codegen.rules.global_memory import element_at
from warploom.codegen.state import Emitter
from warploom.ir.op import Value
from warploom.ir.ops import flags as ops


@emits(ops.Post)
def post(out: Emitter, op: ops.Post) -> None:
    name = flag_helpers.post(out.prelude, op.kind, op.scope, op.order)
    _call(out, op, f"{name}({element_at(out, op.tensor, op.base)}, {out.scalar(op.value)});")


@emits(ops.Poll)
def poll(out: Emitter, op: ops.Poll) -> None:
    stops = op.stop is not None
    name = flag_helpers.poll(out.prelude, op.scope, op.order, stops=stops)
    arguments = [element_at(out, op.tensor, op.base), out.scalar(op.target)]
    if op.stop is not None:
        arguments.append(out.place(op.stop).root)
    _call(out, op, f"{name}({', '.join(arguments)});")


def _call(out: Emitter, op: ops.Post | ops.Poll, call: str) -> None:
    test: Value | None = op.predicate
    out.lines.add(call if test is None else f"if ({out.scalar(test)}) {call}")

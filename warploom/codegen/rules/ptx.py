"""Inline PTX of the kernel: one helper a text, called for each register."""

from __future__ import annotations

from warploom.codegen import ptx_helpers
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, dtype_of, extents_of
from warploom.ir.ops import ptx as ops


@emits(ops.ComputeRegisters, ops.ActRegisters)
def run(out: Emitter, op: ops.ComputeRegisters | ops.ActRegisters) -> None:
    inputs = [dtype_of(v) for v in op.inputs]
    acts = isinstance(op, ops.ActRegisters)
    name = ptx_helpers.enter(out.prelude, op.text, op.outputs, inputs, acts=acts)
    targets = [out.declare_only(r) for r in op.results]
    places = [*targets, *(out.place(v) for v in op.inputs)]
    found = out.walk(extents_of(op.inputs[0]), *places)
    out.lines.add(f"{found.header}{name}({', '.join(found.registers)});")

"""Inline PTX: the registers of its tiles, which lie alike."""

from __future__ import annotations

from warploom.ir.ops import ptx
from warploom.passes.lowering.context import Lowering, lowers


@lowers(ptx.Compute, ptx.Act)
def run(lower: Lowering, op: ptx.Compute | ptx.Act) -> None:
    kind = ptx.ComputeRegisters if isinstance(op, ptx.Compute) else ptx.ActRegisters
    inputs = tuple(lower.whole(v) for v in op.inputs)
    made = lower.build.add(kind(inputs=inputs, text=op.text, outputs=op.outputs, model=op.model))
    for value, result in zip(op.results, made.results, strict=True):
        lower.put(value, result)

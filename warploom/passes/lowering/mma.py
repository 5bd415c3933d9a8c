"""Products of single warps: one instruction a step of K, on fragments that lie as the unit wants
them."""

from __future__ import annotations

from warploom.ir.ops import mma
from warploom.ir.ops.registers import regs_of
from warploom.passes.lowering.context import Lowering, lowers


@lowers(mma.Dot)
def dot(lower: Lowering, op: mma.Dot) -> None:
    a, b, acc = lower.whole(op.a), lower.whole(op.b), lower.whole(op.acc)
    for step in range(regs_of(a).extents[0]):
        acc = lower.build.emit(mma.Multiply(a=a, b=b, acc=acc, step=step), op.result.name)
    lower.put(op.result, acc)

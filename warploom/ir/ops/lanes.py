"""Exchange of registers among the 32 lanes of a warp."""

from __future__ import annotations

from warploom.ir.op import Actor, Op, Stage, Value, attribute, check, op, operand
from warploom.ir.ops.registers import regs_of
from warploom.ir.types import Type


@op("lanes.shuffle_xor", stages=Stage.MACHINE, executes=Actor.WARP)
class ShuffleXor(Op):
    """Every register of lane (this lane xor `mask`); all 32 lanes take part. PTX shfl.sync.bfly."""

    value: Value = operand()
    mask: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        check(0 < self.mask < 32, f"mask {self.mask}")
        return (regs_of(self.value),)

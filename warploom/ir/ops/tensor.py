"""Views of global tensors; legal before the machine stage, where they dissolve into addresses."""

from __future__ import annotations

from warploom.ir.op import Actor, Op, Stage, Value, attribute, check, op, operand
from warploom.ir.ops.scalar import scalar_of, tensor_of
from warploom.ir.types import Type


@op("tensor.rows", stages=Stage.TILE | Stage.ROLES, executes=Actor.WARP)
class Rows(Op):
    """The sub-tensor lo ≤ index < min(hi, extent) along an axis. Windows end inside it: what lies
    beyond reads as zero although the parent has data there."""

    tensor: Value = operand()
    lo: Value = operand()
    hi: Value = operand()
    axis: int = attribute(default=0)

    def infer(self) -> tuple[Type, ...]:
        t = tensor_of(self.tensor)
        check(0 <= self.axis < t.rank, f"axis {self.axis} of a tensor of rank {t.rank}")
        check(
            scalar_of(self.lo).dtype.is_int and scalar_of(self.hi).dtype.is_int,
            "bounds are not integers",
        )
        return (t,)

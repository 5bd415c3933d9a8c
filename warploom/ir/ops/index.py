"""Who am I, as integers: the only sources from which coordinates are computed at the machine
stage."""

from __future__ import annotations

from warploom.base.dtypes import i32
from warploom.ir.op import Op, Stage, Value, attribute, check, op, operand
from warploom.ir.ops.registers import regs_of
from warploom.ir.types import Regs, Type


@op("index.lane", stages=Stage.MACHINE)
class Lane(Op):
    """This thread's lane, 0..31: a register value of extents 1 (rank `rank`)."""

    rank: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Regs(i32, (1,) * self.rank),)


@op("index.warp", stages=Stage.MACHINE)
class Warp(Op):
    """This warp's number in its role (rank `rank`, extents 1)."""

    rank: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Regs(i32, (1,) * self.rank),)


@op("index.digit", stages=Stage.MACHINE)
class Digit(Op):
    """value // divisor % extent: the only way from a lane or warp number to a coordinate.
    `extent` 0 leaves the modulus out (the slowest digit)."""

    value: Value = operand()
    divisor: int = attribute()
    extent: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        check(self.divisor >= 1 and self.extent >= 0, f"digit {self.divisor}, {self.extent}")
        return (regs_of(self.value),)


@op("index.constants", stages=Stage.MACHINE)
class Constants(Op):
    """i32 constants that differ along one register axis only: extents 1 but `axis`, where they are
    `numbers` in register order."""

    rank: int = attribute()
    axis: int = attribute()
    numbers: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        check(0 <= self.axis < self.rank, f"axis {self.axis} of rank {self.rank}")
        extents = tuple(len(self.numbers) if a == self.axis else 1 for a in range(self.rank))
        return (Regs(i32, extents),)

"""Instructions that the kernel gives as PTX text, run for each element (each register) by itself.

`text` names its operands `%0`, `%1`, …: outputs first. `model` is the key of a function in `MODELS`
that does the same to arrays, for devices that have no PTX; empty where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warploom.base.dtypes import DType, bf16, f16, f32, f64, i32, i64, u32, u64
from warploom.ir.op import Effect, Op, Stage, Value, attribute, check, op, operands
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.tile import tile_of
from warploom.ir.types import Regs, Tile, Type

_TILE = Stage.TILE | Stage.ROLES
# What an operand of inline PTX can be: a register of 16, 32 or 64 bits.
OPERANDS = (f32, f64, f16, bf16, i32, i64, u32, u64)
MODELS: dict[str, Callable[..., Any]] = {}
_MEMORY = (Effect.READ_GLOBAL, Effect.WRITE_GLOBAL, Effect.READ_SHARED, Effect.WRITE_SHARED)


def _tiles(inputs: tuple[Value, ...], outputs: tuple[DType, ...]) -> tuple[Type, ...]:
    check(bool(inputs), "a tile says for how many elements")
    kinds = [tile_of(v) for v in inputs]
    check(all(k.shape == kinds[0].shape for k in kinds), "tiles of one shape")
    check(all(k.dtype in OPERANDS for k in kinds), "operands of 16, 32 or 64 bits")
    check(all(d in OPERANDS for d in outputs), "results of 16, 32 or 64 bits")
    return tuple(Tile(d, kinds[0].shape) for d in outputs)


def _registers(inputs: tuple[Value, ...], outputs: tuple[DType, ...]) -> tuple[Type, ...]:
    extents = {regs_of(v).extents for v in inputs}
    check(len(extents) == 1, "register tiles of one shape")
    return tuple(Regs(d, next(iter(extents))) for d in outputs)


@op("ptx.compute", stages=_TILE)
class Compute(Op):
    """Results that depend on the inputs only."""

    inputs: tuple[Value, ...] = operands()
    text: str = attribute()
    outputs: tuple[DType, ...] = attribute()
    model: str = attribute(default="")

    def infer(self) -> tuple[Type, ...]:
        return _tiles(self.inputs, self.outputs)


@op("ptx.act", stages=_TILE, effects=(*_MEMORY, Effect.SYNC, Effect.OUTSIDE))
class Act(Op):
    """The same with effects: never merged, moved or dropped."""

    inputs: tuple[Value, ...] = operands()
    text: str = attribute()
    outputs: tuple[DType, ...] = attribute()
    model: str = attribute(default="")

    def infer(self) -> tuple[Type, ...]:
        return _tiles(self.inputs, self.outputs)


@op("ptx.compute_registers", stages=Stage.MACHINE)
class ComputeRegisters(Op):
    """`ptx.compute` register by register."""

    inputs: tuple[Value, ...] = operands()
    text: str = attribute()
    outputs: tuple[DType, ...] = attribute()
    model: str = attribute(default="")

    def infer(self) -> tuple[Type, ...]:
        return _registers(self.inputs, self.outputs)


@op("ptx.act_registers", stages=Stage.MACHINE, effects=(*_MEMORY, Effect.SYNC, Effect.OUTSIDE))
class ActRegisters(Op):
    """`ptx.act` register by register."""

    inputs: tuple[Value, ...] = operands()
    text: str = attribute()
    outputs: tuple[DType, ...] = attribute()
    model: str = attribute(default="")

    def infer(self) -> tuple[Type, ...]:
        return _registers(self.inputs, self.outputs)

"""Observation at the machine stage."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.ir.op import (
    Actor,
    Effect,
    Op,
    Stage,
    Value,
    attribute,
    check,
    op,
    operand,
    operands,
    optional,
)
from warploom.ir.ops.registers import regs_of
from warploom.ir.types import Regs, Scalar


def print_line(text: str, shown: Sequence[str]) -> str:
    """What a print shows: the text with a value in the place of each `{}`; where these are not as
    many as the values, the values follow the text."""
    parts = text.split("{}")
    if len(parts) == len(shown) + 1 and shown:
        return "".join(part + value for part, value in zip(parts, (*shown, ""), strict=True))
    return " ".join([*([text] if text else []), *shown])


@op("debug.print", stages=Stage.MACHINE, effects=(Effect.OUTSIDE,), executes=Actor.BLOCK)
class Print(Op):
    """Print `text` and scalars once a block or replica of a role (its first thread, or the one
    thread that comes here), as `print_line` puts them."""

    values: tuple[Value, ...] = operands()
    text: str = attribute()

    def verify(self) -> None:
        check(all(isinstance(v.type, Scalar) for v in self.values), "scalars only")


@op("debug.print_tile", stages=Stage.MACHINE, effects=(Effect.OUTSIDE,))
class PrintTile(Op):
    """Print a tile: every element with its coordinates where the predicate holds. `coordinates` has
    one i32 register tile an axis, broadcasting to the value."""

    value: Value = operand()
    coordinates: tuple[Value, ...] = operands()
    predicate: Value | None = optional()
    text: str = attribute()
    shape: tuple[int, ...] = attribute()


@op("debug.assert", stages=Stage.MACHINE, effects=(Effect.OUTSIDE,))
class Assert(Op):
    """Stop the launch with `text` and the source place where the condition (bool scalar or
    registers) is false and the predicate, if any, holds. PTX trap after a message."""

    condition: Value = operand()
    predicate: Value | None = optional()
    text: str = attribute()

    def verify(self) -> None:
        t = self.condition.type
        ok = isinstance(t, Scalar | Regs) and t.dtype.is_bool
        check(ok, "condition is not bool")
        if self.predicate is not None:
            regs_of(self.predicate)


@op("debug.breakpoint", effects=(Effect.OUTSIDE,), executes=Actor.BLOCK)
class Breakpoint(Op):
    """Stop the simulated block and open a prompt; on a GPU nothing. `values` are the scalars and
    tiles that `names` name there, `constants` lines `NAME = value` of what is known at compile
    time; `layouts` (machine stage) are the texts of the tiles' layouts, empty for scalars."""

    values: tuple[Value, ...] = operands()
    names: tuple[str, ...] = attribute(default=())
    constants: tuple[str, ...] = attribute(default=())
    layouts: tuple[str, ...] = attribute(default=())

    def verify(self) -> None:
        check(len(self.names) == len(self.values), "one name a value")

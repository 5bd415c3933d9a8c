"""Observation at the machine stage."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.base.dtypes import i32, i64
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
from warploom.ir.types import Regs, Scalar, Tensor, Type, Uniformity

CLOCKS = ("cycles", "ns")
# What a trace tells: a role or the block begins and ends, it waits for `what` and goes on, it
# arrives at the barrier `what`, a loop makes a turn.
EVENTS = ("begin", "end", "wait", "go", "arrive", "turn")


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


@op("debug.clock", effects=(Effect.OUTSIDE,), executes=Actor.WARP)
class Clock(Op):
    """The time now (i64): cycles of this SM ("cycles", PTX %clock64), or nanoseconds that all SMs
    count alike ("ns", %globaltimer). The simulator counts the operations of the block for both."""

    unit: str = attribute(default="cycles")

    def infer(self) -> tuple[Type, ...]:
        check(self.unit in CLOCKS, f"clock in {self.unit!r}")
        return (Scalar(i64, Uniformity.WARP),)


@op(
    "debug.record",
    stages=Stage.MACHINE,
    effects=(Effect.OUTSIDE, Effect.STORAGE),
    executes=Actor.ROLE,
)
class Record(Op):
    """Note an event in `trace`, an i64 tensor of rows of `entries` pairs, `rows` of them a block in
    the order of the grid. This one goes to row `row` + replica of the block, to the pair at place
    `at` (a storage, which is counted up by whom notes it): the clock in cycles, then event number
    `event` in the upper and `value` in the lower 32 bits. Where the tensor has no such pair nothing
    is written. By the one thread that comes here, else by the first of the block; with
    `first_warp` only by that of the role's first warp. `kind` and `what` say what the event is,
    `unit` in which steps `value` counts."""

    trace: Value = operand()
    at: Value = operand()
    value: Value | None = optional()
    row: int = attribute()
    rows: int = attribute()
    entries: int = attribute()
    event: int = attribute()
    kind: str = attribute()
    what: str = attribute(default="")
    unit: int = attribute(default=1)
    first_warp: bool = attribute(default=False)

    def verify(self) -> None:
        t = self.trace.type
        fits = isinstance(t, Tensor) and t.dtype == i64 and t.cls.strides == "1"
        check(fits, f"{self.trace} is no trace")
        for count in (self.at, *((self.value,) if self.value is not None else ())):
            held = count.type
            check(isinstance(held, Scalar) and held.dtype == i32, f"{count} is not an i32")
        check(0 <= self.row < self.rows, f"row {self.row} of {self.rows}")
        check(self.kind in EVENTS, f"event {self.kind!r}")


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

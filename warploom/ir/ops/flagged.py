"""Flagged data: words of global memory that hold values and the number of their round, its epoch,
in one access that is never torn. Who reads polls the data itself, until the epoch is there.

A word is one i64 element with one 32-bit value below the epoch, or two (the last axis of the
tensor) with up to three values in front of it. Accesses are relaxed: a word brings its own values,
and nothing else that its sender did.
"""

from __future__ import annotations

from warploom.base.dtypes import DType, f32, i32, i64
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
from warploom.ir.ops.flags import check_stop
from warploom.ir.ops.global_memory import check_access
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.scalar import scalar_of, tensor_of
from warploom.ir.ops.sync import SCOPES
from warploom.ir.ops.tile import tile_of
from warploom.ir.types import Regs, Tile, Type

_TILE = Stage.TILE | Stage.ROLES
DTYPES = (f32, i32)
MOST = 3  # values of a word
WORD = 16  # bytes of the longer one


def _check(op: Send | Receive | Put | Look | Take, epoch: Value | None) -> None:
    t = tensor_of(op.tensor)
    check(t.dtype == i64, f"flagged data in a tensor of {t.dtype}")
    check(op.scope in SCOPES, f"scope {op.scope!r}")
    if epoch is not None:
        check(scalar_of(epoch).dtype == i32, f"the epoch {epoch} is an i32")


def _check_window(op: Send | Receive, shape: tuple[int, ...], count: int) -> None:
    check(1 <= count <= MOST, f"{count} values in a word")
    rank = tensor_of(op.tensor).rank
    check(len(op.starts) == len(op.sizes) == rank, f"window of {len(op.sizes)} axes, rank {rank}")
    window = tuple(n for n in op.sizes if n is not None)
    check(shape == window, f"values of shape {shape} for a window {window}")
    check(count == 1 or op.sizes[-1] is None, "a word is the last axis")


@op(
    "flagged.send", stages=_TILE, effects=(Effect.WRITE_GLOBAL,), executes=Actor.ROLE, dtypes=DTYPES
)
class Send(Op):
    """Write values and an epoch to the words of a window (as in `tile.load`); `second` and `third`
    share a word of 16 bytes with `value`. Words outside the tensor are dropped."""

    tensor: Value = operand()
    epoch: Value = operand()
    value: Value = operand()
    second: Value | None = optional()
    third: Value | None = optional()
    starts: tuple[Value, ...] = operands()
    sizes: tuple[int | None, ...] = attribute()
    scope: str = attribute(default="gpu")

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of a word in order."""
        return tuple(v for v in (self.value, self.second, self.third) if v is not None)

    def verify(self) -> None:
        _check(self, self.epoch)
        shapes = {tile_of(v).shape for v in self.values}
        check(len(shapes) == 1, f"values of shapes {shapes}")
        check(all(tile_of(v).dtype in DTYPES for v in self.values), "values of 32 bits")
        _check_window(self, tile_of(self.value).shape, len(self.values))


@op(
    "flagged.receive",
    stages=_TILE,
    effects=(Effect.READ_GLOBAL, Effect.SYNC),
    executes=Actor.ROLE,
    dtypes=DTYPES,
)
class Receive(Op):
    """Poll the words of a window until each has the epoch, and give their values, one tile for each
    of `kinds`. Words outside the tensor are not waited for, and give zero. `stop`: as in
    `flags.wait`; what has not come by then is anything."""

    tensor: Value = operand()
    epoch: Value = operand()
    stop: Value | None = optional()
    starts: tuple[Value, ...] = operands()
    sizes: tuple[int | None, ...] = attribute()
    kinds: tuple[DType, ...] = attribute()
    scope: str = attribute(default="gpu")

    def infer(self) -> tuple[Type, ...]:
        _check(self, self.epoch)
        shape = tuple(n for n in self.sizes if n is not None)
        _check_window(self, shape, len(self.kinds))
        check(all(kind in DTYPES for kind in self.kinds), "values of 32 bits")
        return tuple(Tile(kind, shape) for kind in self.kinds)


class _Words:
    """One word an offset: what accesses of whole elements look like to those that execute them."""

    axis = 0
    vec = 1


@op("flagged.put", stages=Stage.MACHINE, effects=(Effect.WRITE_GLOBAL,))
class Put(_Words, Op):
    """`flagged.send` by the threads that hold the values. PTX st.relaxed of .b64 or .b128."""

    tensor: Value = operand()
    base: Value = operand()
    offset: Value = operand()
    epoch: Value = operand()
    value: Value = operand()
    second: Value | None = optional()
    third: Value | None = optional()
    predicate: Value | None = optional()
    scope: str = attribute(default="gpu")

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of a word in order."""
        return tuple(v for v in (self.value, self.second, self.third) if v is not None)

    def verify(self) -> None:
        _check(self, self.epoch)
        for held in self.values:
            check(regs_of(held).dtype in DTYPES, f"{held} has no 32 bits")
            check_access(self.offset, self.predicate, regs_of(held).extents, 0, 1)


@op("flagged.look", stages=Stage.MACHINE, effects=(Effect.READ_GLOBAL,))
class Look(_Words, Op):
    """What the words hold now, all loads under way at once: one i64 register a word, or two
    (`long`). Zero where the predicate is false. PTX ld.relaxed of .b64 or .b128."""

    tensor: Value = operand()
    base: Value = operand()
    offset: Value = operand()
    predicate: Value | None = optional()
    long: bool = attribute(default=False)
    scope: str = attribute(default="gpu")

    def infer(self) -> tuple[Type, ...]:
        return (Regs(i64, regs_of(self.offset).extents),) * (2 if self.long else 1)

    def verify(self) -> None:
        _check(self, None)
        check_access(self.offset, self.predicate, regs_of(self.offset).extents, 0, 1)


@op("flagged.take", stages=Stage.MACHINE, effects=(Effect.READ_GLOBAL, Effect.SYNC))
class Take(_Words, Op):
    """`flagged.receive` by the threads that want the values: words that `flagged.look` has found
    without the epoch are polled. Zero where the predicate is false. PTX ld.relaxed, in a loop."""

    tensor: Value = operand()
    base: Value = operand()
    offset: Value = operand()
    epoch: Value = operand()
    found: Value = operand()
    behind: Value | None = optional()
    predicate: Value | None = optional()
    stop: Value | None = optional()
    kinds: tuple[DType, ...] = attribute()
    scope: str = attribute(default="gpu")

    def infer(self) -> tuple[Type, ...]:
        _check(self, self.epoch)
        extents = regs_of(self.offset).extents
        check_stop(self.stop)
        check((self.behind is not None) == (len(self.kinds) > 1), "one register a word, or two")
        return tuple(Regs(kind, extents) for kind in self.kinds)

    def verify(self) -> None:
        for held in (self.found, *([] if self.behind is None else [self.behind])):
            check(regs_of(held).dtype == i64, f"{held} is no word")
        check_access(self.offset, self.predicate, regs_of(self.offset).extents, 0, 1)

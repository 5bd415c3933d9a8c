"""Threads of a role by number, and exchange of registers among the 32 lanes of a warp.

Before the machine stage a value of this family is a tile with one element a thread: element i
belongs to thread i of the role (`ir.layout.fragments.one_a_thread`).
"""

from __future__ import annotations

from warploom.base.dtypes import bf16, boolean, f16, f32, i32, i64
from warploom.ir.op import Actor, Op, Stage, Value, attribute, check, op, operand
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.tile import tile_of
from warploom.ir.types import Regs, Tile, Type

_TILE = Stage.TILE | Stage.ROLES
_DTYPES = (f32, f16, bf16, i32, i64, boolean)
NUMBERS = ("thread", "lane", "warp")


def _one_a_thread(value: Value) -> Tile:
    """The type of a tile that must have one element a thread."""
    t = tile_of(value)
    check(len(t.shape) == 1 and t.shape[0] % 32 == 0, f"{value} has not one element a thread")
    return t


@op("lanes.number", stages=_TILE, executes=Actor.ROLE)
class Number(Op):
    """The number of each of `threads` threads: in its role ("thread"), in its warp ("lane"), or
    that of its warp in the role ("warp")."""

    kind: str = attribute()
    threads: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        check(self.kind in NUMBERS, f"number {self.kind!r}")
        check(self.threads > 0 and self.threads % 32 == 0, f"{self.threads} threads")
        return (Tile(i32, (self.threads,)),)


@op("lanes.read", stages=_TILE, executes=Actor.WARP, dtypes=_DTYPES)
class Read(Op):
    """What lane `lane` (modulo 32) of each thread's own warp holds of `value`."""

    value: Value = operand()
    lane: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        t, lane = _one_a_thread(self.value), _one_a_thread(self.lane)
        check(lane.dtype == i32 and lane.shape == t.shape, f"lanes {lane} for {t}")
        return (Tile(t.dtype, t.shape),)


@op("lanes.vote", stages=_TILE, executes=Actor.WARP)
class Vote(Op):
    """In each thread, bit i: whether `value` holds in lane i of its warp."""

    value: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        t = _one_a_thread(self.value)
        check(t.dtype == boolean, f"{t} is not bool")
        return (Tile(i32, t.shape),)


@op("lanes.shuffle_xor", stages=Stage.MACHINE, executes=Actor.WARP)
class ShuffleXor(Op):
    """Every register of lane (this lane xor `mask`); all 32 lanes take part. PTX shfl.sync.bfly."""

    value: Value = operand()
    mask: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        check(0 < self.mask < 32, f"mask {self.mask}")
        return (regs_of(self.value),)


@op("lanes.shuffle", stages=Stage.MACHINE, executes=Actor.WARP)
class Shuffle(Op):
    """Every register of lane `lane` (modulo 32), an i32 register tile of the same extents; all 32
    lanes take part. PTX shfl.sync.idx."""

    value: Value = operand()
    lane: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        r, lane = regs_of(self.value), regs_of(self.lane)
        check(lane.dtype == i32 and lane.extents == r.extents, f"lanes {lane} for {r}")
        return (Regs(r.dtype, r.extents),)


@op("lanes.ballot", stages=Stage.MACHINE, executes=Actor.WARP)
class Ballot(Op):
    """Register by register, the mask of the lanes whose bool holds. PTX vote.sync.ballot."""

    value: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        r = regs_of(self.value)
        check(r.dtype == boolean, f"{r} is not bool")
        return (Regs(i32, r.extents),)

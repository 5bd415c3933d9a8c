"""Waits that are watched: what stands ahead of each synchronisation of a debug build.

`watch` is the tensor that `ir.watch` describes; `warps` and `barriers` (mbarriers of a block) give
the size of its sections. An operation that waits comes before the wait proper: it notes where the
warp is (`place`), and goes on when the wait proper would not have to wait. When the limit of the
launch is over, or some warp has left, each thread notes what it waited for and leaves the kernel
(PTX exit). It orders nothing. `drains`: products may be under way, which the warp waits for before
it leaves. `alone`: one thread comes here; else warps do, which go on and leave as one. In a
`cluster` no warp leaves before all of it do.

Where a block cannot be left because some of its threads wait elsewhere, one thread stops the launch
after as long again: it copies the block's section to host memory first (PTX trap).
"""

from __future__ import annotations

from warploom.base.dtypes import i32, i64
from warploom.ir.op import Actor, Effect, Op, Stage, Value, attribute, check, op, operand, optional
from warploom.ir.ops.global_memory import check_access
from warploom.ir.ops.mbarrier import barrier_of
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.scalar import scalar_of, tensor_of
from warploom.ir.types import Tensor

_NOTES = (Effect.OUTSIDE, Effect.SYNC)


def _watch_of(value: Value, warps: int, barriers: int) -> None:
    t = value.type
    fits = isinstance(t, Tensor) and t.dtype == i64 and t.cls.strides == "1"
    check(fits, f"{value} is no place for notes")
    check(warps >= 1 and barriers >= 0, f"{warps} warps, {barriers} barriers")


def _i32(*values: Value | None) -> None:
    for value in values:
        if value is not None:
            check(scalar_of(value).dtype == i32, f"{value} is not an i32")


@op("watch.barrier", stages=Stage.MACHINE, effects=_NOTES, executes=Actor.ROLE, since="sm_90")
class Barrier(Op):
    """Until the phase of this parity has completed, without order. The barrier lies `offset` bytes
    behind mbarrier `first` of the block (−1: it is not told which)."""

    watch: Value = operand()
    barrier: Value = operand()
    parity: Value = operand()
    offset: Value | None = optional()
    warps: int = attribute()
    barriers: int = attribute()
    place: int = attribute()
    first: int = attribute(default=-1)
    drains: bool = attribute(default=False)
    alone: bool = attribute(default=False)
    cluster: tuple[int, ...] = attribute(default=(1, 1, 1))

    def verify(self) -> None:
        _watch_of(self.watch, self.warps, self.barriers)
        barrier_of(self.barrier)
        _i32(self.parity, self.offset)
        check(self.first < self.barriers, f"mbarrier {self.first} of {self.barriers}")


@op("watch.flag", stages=Stage.MACHINE, effects=_NOTES, executes=Actor.THREAD)
class Flag(Op):
    """Until the element of a `flags.poll` is at least `target`, without order."""

    watch: Value = operand()
    tensor: Value = operand()
    base: Value = operand()
    target: Value = operand()
    predicate: Value | None = optional()
    warps: int = attribute()
    barriers: int = attribute()
    place: int = attribute()
    drains: bool = attribute(default=False)
    alone: bool = attribute(default=False)
    cluster: tuple[int, ...] = attribute(default=(1, 1, 1))

    def verify(self) -> None:
        _watch_of(self.watch, self.warps, self.barriers)
        check(tensor_of(self.tensor).dtype == i32, "flags are i32")
        _i32(self.target)


@op("watch.words", stages=Stage.MACHINE, effects=_NOTES)
class Words(Op):
    """Until each of the words that a `flagged.take` wants has the epoch, without order. `long`:
    the epoch stands in the second element of a word."""

    axis = 0
    vec = 1

    watch: Value = operand()
    tensor: Value = operand()
    base: Value = operand()
    offset: Value = operand()
    epoch: Value = operand()
    predicate: Value | None = optional()
    warps: int = attribute()
    barriers: int = attribute()
    place: int = attribute()
    long: bool = attribute(default=False)
    drains: bool = attribute(default=False)
    alone: bool = attribute(default=False)
    cluster: tuple[int, ...] = attribute(default=(1, 1, 1))

    def verify(self) -> None:
        _watch_of(self.watch, self.warps, self.barriers)
        check(tensor_of(self.tensor).dtype == i64, "words are i64")
        _i32(self.epoch)
        check_access(self.offset, self.predicate, regs_of(self.offset).extents, 0, 1)


@op("watch.meet", stages=Stage.MACHINE, effects=_NOTES, executes=Actor.ROLE)
class Meet(Op):
    """Each thread is counted at barrier `id` of `threads` threads, and where it `waits` goes on
    when all of them have been. `per_replica` as in `sync.barrier`."""

    watch: Value = operand()
    warps: int = attribute()
    barriers: int = attribute()
    place: int = attribute()
    id: int = attribute()
    threads: int = attribute()
    per_replica: bool = attribute(default=False)
    waits: bool = attribute(default=True)
    drains: bool = attribute(default=False)
    alone: bool = attribute(default=False)
    cluster: tuple[int, ...] = attribute(default=(1, 1, 1))

    def verify(self) -> None:
        _watch_of(self.watch, self.warps, self.barriers)
        check(0 <= self.id <= 15 and self.threads > 0, f"barrier {self.id} of {self.threads}")


@op("watch.arrive", stages=Stage.MACHINE, effects=_NOTES)
class Arrive(Op):
    """Each thread that comes here is counted as `count` arrivals, which announce `bytes`, at the
    mbarrier `offset` bytes behind number `first`, whose phases take `arrivals`. With `rank` it is
    that of another block, in a cluster of `cluster` blocks."""

    watch: Value = operand()
    offset: Value | None = optional()
    rank: Value | None = optional()
    warps: int = attribute()
    barriers: int = attribute()
    first: int = attribute()
    arrivals: int = attribute()
    count: int = attribute(default=1)
    bytes: int = attribute(default=0)
    cluster: tuple[int, ...] = attribute(default=(1, 1, 1))

    def verify(self) -> None:
        _watch_of(self.watch, self.warps, self.barriers)
        _i32(self.offset, self.rank)
        check(0 <= self.first < self.barriers, f"mbarrier {self.first} of {self.barriers}")
        check(self.arrivals >= 1, f"{self.arrivals} arrivals")


@op("watch.at", stages=Stage.MACHINE, effects=_NOTES, executes=Actor.ROLE)
class At(Op):
    """Note that the warp is here, ahead of a wait that cannot be asked whether it is over. With
    `leaves` it stands behind that wait: where some warp has left, so that perhaps nothing else
    ended the wait, this one leaves too."""

    watch: Value = operand()
    warps: int = attribute()
    barriers: int = attribute()
    place: int = attribute()
    leaves: bool = attribute(default=False)
    drains: bool = attribute(default=False)
    alone: bool = attribute(default=False)
    cluster: tuple[int, ...] = attribute(default=(1, 1, 1))

    def verify(self) -> None:
        _watch_of(self.watch, self.warps, self.barriers)


@op("watch.end", stages=Stage.MACHINE, effects=_NOTES, executes=Actor.ROLE)
class End(Op):
    """Note that the role has ended."""

    watch: Value = operand()
    warps: int = attribute()
    barriers: int = attribute()

    def verify(self) -> None:
        _watch_of(self.watch, self.warps, self.barriers)


@op(
    "watch.delay",
    stages=Stage.MACHINE,
    effects=(Effect.OUTSIDE, Effect.STORAGE),
    executes=Actor.ROLE,
)
class Delay(Op):
    """Let the warp sleep for up to some microseconds, or not at all, as `ir.watch.delay` draws it;
    `at` (a storage) counts the draws. In the simulator others go on. PTX nanosleep."""

    at: Value = operand()
    place: int = attribute()
    seed: int = attribute()

    def verify(self) -> None:
        _i32(self.at)
        check(0 <= self.seed < 1 << 31, f"seed {self.seed}")

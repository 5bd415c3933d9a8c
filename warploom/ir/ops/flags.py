"""Flags and counters in global memory: what a block says to others, and waiting for it."""

from __future__ import annotations

from warploom.base.dtypes import i32
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
from warploom.ir.ops.scalar import scalar_of, tensor_of
from warploom.ir.ops.sync import SCOPES

_TILE = Stage.TILE | Stage.ROLES
_SAYS = (Effect.WRITE_GLOBAL, Effect.SYNC)
_HEARS = (Effect.READ_GLOBAL, Effect.SYNC)
KINDS = ("set", "add")
SAYING, HEARING = ("release", "relaxed"), ("acquire", "relaxed")


def _check(op: Signal | Wait | Post | Poll, number: Value) -> None:
    held = tensor_of(op.tensor).dtype
    check(held == i32, f"a flag in a tensor of {held}")
    check(scalar_of(number).dtype == i32, f"{number} for a flag of i32")
    check(op.scope in SCOPES, f"scope {op.scope!r}")
    check_stop(getattr(op, "stop", None))
    orders = SAYING if isinstance(op, Signal | Post) else HEARING
    check(op.order in orders, f"order {op.order!r}")


def check_stop(stop: Value | None) -> None:
    """A word that ends waits is the first of a tensor of i32."""
    if stop is not None:
        held = tensor_of(stop)
        check(held.dtype == i32 and held.rank == 1, f"{stop} holds no word that ends waits")


def _check_element(tensor: Value, indices: tuple[Value, ...]) -> None:
    rank = tensor_of(tensor).rank
    check(len(indices) == rank, f"{len(indices)} indices for rank {rank}")


@op("flags.signal", stages=_TILE, effects=_SAYS, executes=Actor.ROLE)
class Signal(Op):
    """Publish what the role has done ("relaxed": nothing of it), and `set` an element to a value or
    `add` it, wrapping. An element outside the tensor is left alone. `alone`: by the one thread that
    is here, for it."""

    tensor: Value = operand()
    indices: tuple[Value, ...] = operands()
    value: Value = operand()
    kind: str = attribute()
    scope: str = attribute(default="gpu")
    order: str = attribute(default="release")
    alone: bool = attribute(default=False)

    def verify(self) -> None:
        _check(self, self.value)
        _check_element(self.tensor, self.indices)
        check(self.kind in KINDS, f"kind {self.kind!r}")


@op("flags.wait", stages=_TILE, effects=_HEARS, executes=Actor.ROLE)
class Wait(Op):
    """Wait until an element is at least `target`, as numbers that wrap: until the i32 difference is
    not negative. What those did who signalled is seen by the role (not where "relaxed"). An element
    outside the tensor is not waited for. `alone`: by the one thread that is here, for it. `stop`: a
    tensor of i32; once its first element is not 0 the wait gives up."""

    tensor: Value = operand()
    indices: tuple[Value, ...] = operands()
    target: Value = operand()
    stop: Value | None = optional()
    scope: str = attribute(default="gpu")
    order: str = attribute(default="acquire")
    alone: bool = attribute(default=False)

    def verify(self) -> None:
        _check(self, self.target)
        _check_element(self.tensor, self.indices)


@op("flags.post", stages=Stage.MACHINE, effects=_SAYS, executes=Actor.THREAD)
class Post(Op):
    """`flags.signal` by one thread. PTX st.release, red.release.add, or .relaxed."""

    tensor: Value = operand()
    base: Value = operand()
    value: Value = operand()
    predicate: Value | None = optional()
    kind: str = attribute()
    scope: str = attribute(default="gpu")
    order: str = attribute(default="release")

    def verify(self) -> None:
        _check(self, self.value)
        check(self.kind in KINDS, f"kind {self.kind!r}")


@op("flags.poll", stages=Stage.MACHINE, effects=_HEARS, executes=Actor.THREAD)
class Poll(Op):
    """`flags.wait` by one thread. `for_all`: the warps of its role meet behind it
    (insert_role_barriers sees to it). PTX ld.acquire or ld.relaxed, in a loop."""

    tensor: Value = operand()
    base: Value = operand()
    target: Value = operand()
    predicate: Value | None = optional()
    stop: Value | None = optional()
    scope: str = attribute(default="gpu")
    order: str = attribute(default="acquire")
    for_all: bool = attribute(default=True)

    def verify(self) -> None:
        _check(self, self.target)

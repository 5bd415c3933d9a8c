"""mbarriers: phases that complete when all arrivals and all announced bytes are in. PTX mbarrier.

Before the machine stage a barrier is a value of type `Barriers`, at the machine stage its byte
address in shared memory (i32).
"""

from __future__ import annotations

from warploom.base.dtypes import boolean, i32
from warploom.ir.op import Actor, Effect, Op, Stage, Value, attribute, check, op, operand
from warploom.ir.ops.scalar import scalar_of
from warploom.ir.types import Barriers, Scalar, Type, Uniformity

_TILE = Stage.TILE | Stage.ROLES
_SYNC = (Effect.SYNC,)
SCOPES = ("block", "cluster")


def barrier_of(value: Value) -> None:
    """Check that a value is one barrier: a `Barriers` of count 1 or a byte address."""
    t = value.type
    single = isinstance(t, Barriers) and t.count == 1
    check(single or (isinstance(t, Scalar) and t.dtype == i32), f"{value} is not one barrier")


@op("mbarrier.alloc", stages=_TILE, effects=(Effect.ALLOCATE,), executes=Actor.BLOCK, since="sm_90")
class Alloc(Op):
    """`count` barriers whose phases take `arrivals` arrivals each, made before any role runs."""

    count: int = attribute()
    arrivals: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        check(self.count >= 1 and self.arrivals >= 1, f"{self.count} barriers of {self.arrivals}")
        return (Barriers(self.count),)


@op("mbarrier.at", stages=_TILE, executes=Actor.WARP, since="sm_90")
class At(Op):
    """Barrier number `index` of several."""

    barriers: Value = operand()
    index: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        check(isinstance(self.barriers.type, Barriers), f"{self.barriers} are not barriers")
        check(scalar_of(self.index).dtype == i32, "the index is an i32")
        return (Barriers(1),)


@op("mbarrier.init", stages=Stage.MACHINE, effects=_SYNC, since="sm_90")
class Init(Op):
    """Make a barrier whose phases take `arrivals` arrivals; phase 0 begins. By one thread; others
    see it after `sync.fence_barrier_init` and a block barrier."""

    barrier: Value = operand()
    arrivals: int = attribute()

    def verify(self) -> None:
        barrier_of(self.barrier)
        check(1 <= self.arrivals < 1 << 20, f"{self.arrivals} arrivals")


@op("mbarrier.arrive", effects=_SYNC, since="sm_90")
class Arrive(Op):
    """`count` arrivals by every thread that executes this: stand it in `control.one_thread`.
    Release at block scope."""

    barrier: Value = operand()
    count: int = attribute(default=1)

    def verify(self) -> None:
        barrier_of(self.barrier)
        check(self.count >= 1, f"{self.count} arrivals")


@op("mbarrier.expect", effects=_SYNC, since="sm_90")
class Expect(Op):
    """Announce `bytes` for the current phase and arrive once. Stand it in `control.one_thread`."""

    barrier: Value = operand()
    bytes: int = attribute()

    def verify(self) -> None:
        barrier_of(self.barrier)
        check(0 <= self.bytes < 1 << 20, f"{self.bytes} bytes")


@op("mbarrier.wait", effects=_SYNC, executes=Actor.ROLE, since="sm_90")
class Wait(Op):
    """Wait until the phase with this parity (0 or 1) has completed. Every thread waits for itself;
    acquire at block scope, or at that of the cluster where peers arrive in order. `takes`: the item
    of this phase belongs to who waits here, and to nobody else, which the checker holds it to."""

    barrier: Value = operand()
    parity: Value = operand()
    scope: str = attribute(default="block")
    takes: bool = attribute(default=False)

    def verify(self) -> None:
        barrier_of(self.barrier)
        check(self.scope in SCOPES, f"scope {self.scope!r}")
        check(scalar_of(self.parity).dtype == i32, "the parity is an i32")


@op("mbarrier.test", effects=_SYNC, executes=Actor.ROLE, since="sm_90")
class Test(Op):
    """Whether the phase with this parity has completed, without waiting; the warps of a role may
    see different answers."""

    barrier: Value = operand()
    parity: Value = operand()
    scope: str = attribute(default="block")

    def infer(self) -> tuple[Type, ...]:
        return (Scalar(boolean, Uniformity.WARP),)

    def verify(self) -> None:
        barrier_of(self.barrier)
        check(self.scope in SCOPES, f"scope {self.scope!r}")

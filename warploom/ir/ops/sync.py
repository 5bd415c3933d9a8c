"""Synchronisation of warps through barriers. `why` names the hazard that the barrier settles."""

from __future__ import annotations

from warploom.base.dtypes import boolean
from warploom.ir.op import Actor, Effect, Op, Stage, Value, attribute, check, op, operand
from warploom.ir.types import Scalar, Type, Uniformity

_TILE = Stage.TILE | Stage.ROLES
SPACES = ("shared", "global", "all")
SCOPES = ("block", "cluster", "gpu", "system")


@op("sync.barrier", effects=(Effect.SYNC,), executes=Actor.ROLE)
class Barrier(Op):
    """All `threads` threads arrive and wait; what they wrote to shared and global memory before is
    seen by all of them after. `per_replica`: the barrier's number is `id` + the replica's. Without
    `threads` it is the role's, which insert_role_barriers gives its number. PTX bar.sync."""

    threads: int = attribute()
    id: int = attribute(default=0)
    why: str = attribute(default="")
    per_replica: bool = attribute(default=False)

    def verify(self) -> None:
        check(0 <= self.id <= 15, f"barrier {self.id}")
        check(self.threads % 32 == 0, f"{self.threads} threads are not whole warps")


@op("sync.agree", effects=(Effect.SYNC,), executes=Actor.ROLE)
class Agree(Op):
    """Whether `condition` holds in all threads of the role, which meet for it as at a barrier;
    `threads`, `id` and `per_replica` as there, given by insert_role_barriers. PTX barrier.cta.red,
    vote.sync in a role of one warp."""

    condition: Value = operand()
    threads: int = attribute(default=0)
    id: int = attribute(default=0)
    per_replica: bool = attribute(default=False)

    def infer(self) -> tuple[Type, ...]:
        t = self.condition.type
        check(isinstance(t, Scalar) and t.dtype == boolean, f"{self.condition} is not a bool")
        return (Scalar(boolean, Uniformity.ROLE),)

    def verify(self) -> None:
        check(0 <= self.id <= 15 and self.threads % 32 == 0, f"barrier {self.id}, {self.threads}")


@op("sync.arrive", stages=Stage.MACHINE, effects=(Effect.SYNC,), executes=Actor.ROLE)
class Arrive(Op):
    """All threads of the role arrive at barrier `id` of `threads` threads and go on; what they
    wrote before is seen by those that wait there. PTX bar.arrive."""

    threads: int = attribute()
    id: int = attribute()

    def verify(self) -> None:
        check(1 <= self.id <= 15, f"barrier {self.id}")
        check(self.threads % 32 == 0 and self.threads > 0, f"{self.threads} threads")


@op("sync.meet", stages=_TILE, effects=(Effect.SYNC,), executes=Actor.ROLE)
class Meet(Op):
    """Named barrier number `number` of the kernel, of `threads` threads of one role or several: all
    threads of the role arrive there, and wait where `waits`. place_roles gives it its `id`."""

    number: int = attribute()
    threads: int = attribute()
    waits: bool = attribute()
    id: int = attribute(default=-1)

    def verify(self) -> None:
        check(self.number >= 0 and -1 <= self.id <= 15, f"barrier {self.number}, {self.id}")
        check(
            self.threads % 32 == 0 and self.threads > 0,
            f"{self.threads} threads are not whole warps",
        )


@op("sync.warp", effects=(Effect.SYNC,), executes=Actor.WARP)
class WarpSync(Op):
    """The lanes of a warp meet; orders their shared-memory accesses. PTX bar.warp.sync."""

    why: str = attribute(default="")


@op("sync.fence_async", effects=(Effect.SYNC,), since="sm_90")
class FenceAsync(Op):
    """Earlier generic accesses of this thread to `space` (the block's "shared" memory, "global", or
    "all") are ordered before later asynchronous ones (copy engine, matrix unit). PTX
    fence.proxy.async."""

    why: str = attribute(default="")
    space: str = attribute(default="shared")

    def verify(self) -> None:
        check(self.space in SPACES, f"space {self.space!r}")


@op("sync.fence", effects=(Effect.SYNC,))
class Fence(Op):
    """This thread's earlier accesses to memory are seen before its later ones by all threads of
    `scope`. PTX fence.acq_rel."""

    scope: str = attribute()

    def verify(self) -> None:
        check(self.scope in SCOPES, f"scope {self.scope!r}")


@op("sync.fence_barrier_init", stages=Stage.MACHINE, effects=(Effect.SYNC,), since="sm_90")
class FenceBarrierInit(Op):
    """Initialised mbarriers are seen by the copy engine and the cluster. PTX
    fence.mbarrier_init.release.cluster."""

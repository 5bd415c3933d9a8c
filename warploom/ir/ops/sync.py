"""Synchronisation of warps through barriers. `why` names the hazard that the barrier settles."""

from __future__ import annotations

from warploom.ir.op import Actor, Effect, Op, Stage, attribute, check, op


@op("sync.barrier", effects=(Effect.SYNC,), executes=Actor.ROLE)
class Barrier(Op):
    """All `threads` threads arrive and wait; what they wrote to shared and global memory before is
    seen by all of them after. `per_replica`: the barrier's number is `id` + the replica's. PTX
    bar.sync."""

    threads: int = attribute()
    id: int = attribute(default=0)
    why: str = attribute(default="")
    per_replica: bool = attribute(default=False)

    def verify(self) -> None:
        check(0 <= self.id <= 15, f"barrier {self.id}")
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
    """Earlier generic accesses of this thread to the block's shared memory are ordered before later
    asynchronous ones (copy engine, matrix unit). PTX fence.proxy.async.shared::cta."""

    why: str = attribute(default="")


@op("sync.fence_barrier_init", stages=Stage.MACHINE, effects=(Effect.SYNC,), since="sm_90")
class FenceBarrierInit(Op):
    """Initialised mbarriers are seen by the copy engine and the cluster. PTX
    fence.mbarrier_init.release.cluster."""

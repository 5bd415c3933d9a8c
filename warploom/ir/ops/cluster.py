"""Clusters: blocks that run at the same time and reach each other's shared memory. PTX cluster
special registers, mapa, mbarrier.arrive on shared::cluster, barrier.cluster.

Blocks of a cluster are numbered along x first, then y, then z (`rank`). What a peer's barrier is
before the machine stage has a type of its own, `RemoteBarrier`; at the machine stage it is an
address that every block of the cluster understands (i32), made by `cluster.address`.
"""

from __future__ import annotations

from warploom.base.dtypes import i32
from warploom.ir.op import Actor, Effect, Op, Stage, Value, attribute, check, op, operand
from warploom.ir.ops.mbarrier import barrier_of
from warploom.ir.ops.scalar import least_uniform, scalar_of
from warploom.ir.types import RemoteBarrier, Scalar, Type, Uniformity

_TILE = Stage.TILE | Stage.ROLES


@op("cluster.rank", executes=Actor.BLOCK, since="sm_90")
class Rank(Op):
    """Number of this block in its cluster. PTX %cluster_ctarank."""

    def infer(self) -> tuple[Type, ...]:
        return (Scalar(i32, Uniformity.BLOCK),)


@op("cluster.mask", stages=_TILE, executes=Actor.BLOCK, since="sm_90")
class Mask(Op):
    """The blocks that differ from this one along `axes` of the cluster only, itself among them: one
    bit a rank, as a multicast takes them."""

    axes: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Scalar(i32, Uniformity.BLOCK),)

    def verify(self) -> None:
        check(set(self.axes) <= {0, 1, 2}, f"cluster axes {self.axes}")


@op("cluster.sync", effects=(Effect.SYNC,), executes=Actor.ROLE, since="sm_90")
class Sync(Op):
    """Wait until every warp of the cluster that has not ended has come here. `ordered`: what they
    wrote to shared and global memory before is seen by all of them after; without it only what a
    fence has published. PTX barrier.cluster.arrive, barrier.cluster.wait."""

    ordered: bool = attribute(default=True)
    why: str = attribute(default="")


@op("cluster.barrier_on", stages=_TILE, executes=Actor.WARP, since="sm_90")
class BarrierOn(Op):
    """The barrier at the same place of block `rank` of the cluster."""

    barrier: Value = operand()
    rank: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        barrier_of(self.barrier)
        check(scalar_of(self.rank).dtype == i32, "the rank is an i32")
        return (RemoteBarrier(),)


@op("cluster.address", stages=Stage.MACHINE, executes=Actor.WARP, since="sm_90")
class Address(Op):
    """The address in the cluster of what lies at `address` of this block, in block `rank`: bytes
    further on lie at sums. PTX mapa."""

    address: Value = operand()
    rank: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        both = (self.address, self.rank)
        check(all(scalar_of(v).dtype == i32 for v in both), "address and rank are i32")
        return (Scalar(i32, least_uniform(*both)),)


@op("cluster.arrive", effects=(Effect.SYNC,), since="sm_90")
class Arrive(Op):
    """`count` arrivals at a barrier of the cluster by every thread that executes this. `ordered`:
    what the thread wrote or read before comes before what the waiting block does next (a fence of
    the whole GPU); without it nothing but the arrival is promised."""

    barrier: Value = operand()
    count: int = attribute(default=1)
    ordered: bool = attribute(default=True)

    def verify(self) -> None:
        t = self.barrier.type
        remote = isinstance(t, RemoteBarrier) or (isinstance(t, Scalar) and t.dtype == i32)
        check(remote, f"{self.barrier} is no barrier of the cluster")
        check(self.count >= 1, f"{self.count} arrivals")


@op("cluster.arrive_peers", stages=_TILE, effects=(Effect.SYNC,), since="sm_90")
class ArrivePeers(Op):
    """One arrival, by every thread that executes this, at the barrier at this place of each block
    whose rank lies one of `steps` on from this block's: a step is x + X·(y + Y·z) in a cluster of
    X x Y x Z, and each coordinate wraps around by itself."""

    barrier: Value = operand()
    steps: tuple[int, ...] = attribute()
    ordered: bool = attribute(default=True)

    def verify(self) -> None:
        barrier_of(self.barrier)
        check(len(self.steps) == len(set(self.steps)) >= 1, f"steps {self.steps}")

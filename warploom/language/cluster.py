"""Clusters: where a block stands among those that run with it, and how they wait for each other."""

from __future__ import annotations

from typing import Any

from warploom.base.dtypes import i32
from warploom.ir import cluster as shape
from warploom.ir.op import Value
from warploom.ir.ops import cluster as cluster_ops
from warploom.language import core
from warploom.language.context import Refused, builder, current, vocabulary
from warploom.language.values import Scalar, core_axis, index_value


@vocabulary
def cluster_rank(axis: int | None = None) -> Scalar:
    """The number of this block in its cluster, along axis 0, 1 or 2 or, without one, of all its
    blocks, x first, then y, then z: an i32 scalar from 0 up.

    Shapes: a scalar, one for the block.
    Executes: every warp.
    Since: sm_90.
    PTX: %cluster_ctarank.
    """
    of = current().cluster
    along = None if axis is None else _axis(axis)
    if (shape.size(of) if along is None else of[along]) == 1:
        return Scalar(builder().const(0))
    rank = Scalar(builder().emit(cluster_ops.Rank()))
    if along is None or of[along] == shape.size(of):
        return rank
    return rank // shape.pitch(of, along) % of[along]


@vocabulary
def cluster_size(axis: int | None = None) -> int:
    """The number of blocks of a cluster, along axis 0, 1 or 2 or of all of it: a constant, 1 where
    the launch has no clusters.

    Shapes: a constant.
    Executes: nothing by itself.
    Since: sm_80.
    """
    of = current().cluster
    return shape.size(of) if axis is None else of[_axis(axis)]


@vocabulary
def cluster_mask(*axes: int) -> Scalar:
    """The blocks of the cluster that differ from this one along these axes only, itself among them,
    as `multicast=` takes them: one bit a rank. Without axes it is this block alone.

    Shapes: a scalar, one for the block.
    Executes: every warp.
    Since: sm_90.
    """
    along = tuple(sorted({_axis(axis) for axis in axes}))
    return Scalar(builder().emit(cluster_ops.Mask(axes=along)))


@vocabulary
def cluster_sync() -> None:
    """Wait until all warps of the cluster have come here; what they wrote before is seen after.

    A role may call it if every role does, the same number of times. What pipes, multicasts and
    arrivals at peers need at the beginning and the end of a kernel stands there without it.

    Shapes: none.
    Executes: every warp of every block of the cluster.
    Since: sm_90.
    PTX: barrier.cluster.arrive, barrier.cluster.wait.
    """
    if current().alone:
        raise Refused(
            "P021",
            "`wl.cluster_sync()` stands where one thread acts, and waits for all of them",
            hint="put it outside of `wl.one_thread()`",
        )
    builder().add(cluster_ops.Sync(why="written in the kernel"))


def rank_value(rank: Any, name: str) -> Value:
    """The rank of a peer as an i32 scalar; refuses a constant that the cluster does not have."""
    value = core.convert(index_value(rank, name), i32)
    number, count = current().facts.constant(value), shape.size(current().cluster)
    if number is not None and not 0 <= number < count:
        raise Refused(
            "P034",
            f"there is no block {number} in a cluster of {count}",
            argument=name,
            notes=(f"the launch has clusters of {' x '.join(map(str, current().cluster))}",),
            hint=f"ranks are 0 to {count - 1}, and `wl.cluster_size()` counts them"
            if count > 1
            else "launch it with `cluster=(2, 1, 1)`",
        )
    return value


def mask_value(mask: Any) -> Value | None:
    """Whom a copy goes to as an i32 scalar, None where that is this block alone; refuses constants
    that name blocks the cluster does not have."""
    value = core.convert(index_value(mask, "multicast"), i32)
    count = shape.size(current().cluster)
    axes = axes_of(value)
    if axes is not None:
        return value if len(shape.steps(current().cluster, axes)) > 1 else None
    number = current().facts.constant(value)
    if number is not None and not 0 < number < 1 << count:
        raise Refused(
            "P034",
            f"the mask {number:#b} does not name blocks of a cluster of {count}",
            argument="multicast",
            notes=(f"the launch has clusters of {' x '.join(map(str, current().cluster))}",),
            hint="one bit a rank; `wl.cluster_mask(axis)` names the blocks along an axis",
        )
    if count == 1 and number is not None:
        return None
    return value


def axes_of(mask: Value) -> tuple[int, ...] | None:
    """The axes that a mask was made from, if it was made by `wl.cluster_mask`."""
    return mask.owner.axes if isinstance(mask.owner, cluster_ops.Mask) else None


def _axis(axis: Any) -> int:
    if isinstance(axis, int) and axis < 0:
        raise Refused("T012", f"a cluster has the axes 0, 1 and 2, not {axis}", argument="axis")
    return core_axis(axis, 3, "a cluster")

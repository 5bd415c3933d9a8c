"""Windows of tensors copied to shared memory by threads, each its elements, without registers."""

from __future__ import annotations

from warploom.base.dtypes import boolean
from warploom.ir.ops import cp_async
from warploom.language import core
from warploom.language.barrier import Barrier
from warploom.language.context import builder, need_all_threads, need_count, vocabulary
from warploom.language.copy import check_fits, no_copy, one_barrier
from warploom.language.shared import Shared
from warploom.language.values import Window


@vocabulary
def copy_by_threads(window: Window, tile: Shared) -> None:
    """Begin to copy a window of a tensor to a tile in shared memory, each thread its elements,
    without registers. What lies outside the tensor becomes zero.

    A thread waits for its own copies: `wl.threads_commit()` closes a group, `wl.threads_wait(n)`
    waits until at most n are open. A matrix unit of another role sees them after its own
    `wl.fence_async()`.

    Shapes: equal; 4, 8 or 16 bytes lie together in both.
    Executes: the role, each thread its elements.
    Since: sm_80.
    PTX: cp.async.
    """
    need_all_threads("all threads copy their part; `wl.copy_async` is for one")
    if not isinstance(window, Window) or not isinstance(tile, Shared):
        raise no_copy(window, tile, "wl.copy_by_threads(x[wl.ds(m, BM), wl.ds(k, BK)], tile)")
    check_fits(window, tile)
    yes = core.spread(builder().const(True, boolean), tile.shape)
    builder().add(
        cp_async.Copy(
            tensor=window.tensor.value,
            starts=window.starts,
            sizes=window.sizes,
            target=tile.value,
            shape=yes,
        )
    )


@vocabulary
def threads_commit() -> None:
    """Each thread closes the group of copies that it has begun with `wl.copy_by_threads`.

    Shapes: none.
    Executes: every thread of the role.
    Since: sm_80.
    PTX: cp.async.commit_group.
    """
    need_all_threads("each closes a group of its own")
    builder().add(cp_async.Commit())


@vocabulary
def threads_wait(pending: int = 0) -> None:
    """Each thread waits until at most `pending` of its groups are open; the role meets before
    another thread's elements are read.

    Shapes: none.
    Executes: every thread of the role.
    Since: sm_80.
    PTX: cp.async.wait_group.
    """
    need_all_threads("each waits for its own")
    need_count("pending", pending, 0)
    builder().add(cp_async.Wait(pending=pending))


@vocabulary
def threads_arrive(barrier: Barrier) -> None:
    """Each thread arrives once at an mbarrier, as soon as all copies that it has begun with
    `wl.copy_by_threads` are done: `wl.barrier(arrivals=128)` for a role of 4 warps.

    Shapes: none.
    Executes: every thread of the role.
    Since: sm_90.
    PTX: cp.async.mbarrier.arrive.noinc.
    """
    need_all_threads("each arrives for its own copies")
    builder().add(cp_async.Arrive(barrier=one_barrier(barrier)))

"""Barriers by hand: mbarriers with arrivals, announced bytes and waits by parity, named barriers,
fences."""

from __future__ import annotations

from typing import Any

from warploom.ir.op import Value
from warploom.ir.ops import cluster as cluster_ops
from warploom.ir.ops import mbarrier, sync
from warploom.language.cluster import rank_value
from warploom.language.context import (
    Handle,
    Refused,
    builder,
    current,
    need_all_threads,
    need_count,
    need_one_thread,
    need_top,
    vocabulary,
)
from warploom.language.shared import slot_number
from warploom.language.values import Scalar, index_value


class Barrier(Handle):
    """One mbarrier, or several to choose from with `bars[i]`."""

    attributes = ("arrive", "expect", "wait", "test", "on")

    def __init__(self, value: Value, count: int) -> None:
        self.value = value
        self.count = count

    def __repr__(self) -> str:
        return "an mbarrier" if self.count == 1 else f"{self.count} mbarriers"

    def __getitem__(self, index: Any) -> Barrier:
        """One of several."""
        at = slot_number(index, self.count, repr(self))
        return Barrier(builder().emit(mbarrier.At(barriers=self.value, index=at)), 1)

    def one(self) -> Value:
        """The value of a single barrier."""
        if self.count != 1:
            raise Refused(
                "P005",
                f"{self!r}: choose one, `bars[i]`",
                hint="write `bars[i]` with the number of the barrier",
            )
        return self.value

    def arrive(self, count: int = 1, per: str = "role") -> None:
        """`count` arrivals: of the role, once all its warps have come here; with `per="warp"` of
        each warp, with `per="thread"` of each thread. Under `wl.one_thread()` that thread arrives.

        Executes: as `per` says.
        Since: sm_90.
        PTX: mbarrier.arrive.
        """
        need_count("count", count, 1)
        _arrive(mbarrier.Arrive(barrier=self.one(), count=count), per)

    def expect(self, bytes: int) -> None:
        """Announce bytes for the current phase, and arrive once; in `wl.one_thread()`.

        Executes: every thread that reaches it.
        Since: sm_90.
        PTX: mbarrier.arrive.expect_tx.
        """
        need_count("bytes", bytes, 0)
        need_one_thread("announce these bytes")
        builder().add(mbarrier.Expect(barrier=self.one(), bytes=bytes))

    def wait(self, parity: Scalar | int) -> None:
        """Wait until the phase of this parity (0 or 1) has completed.

        Executes: every thread of the role.
        Since: sm_90.
        PTX: mbarrier.try_wait.parity.
        """
        builder().add(mbarrier.Wait(barrier=self.one(), parity=index_value(parity, "parity")))

    def test(self, parity: Scalar | int) -> Scalar:
        """Whether the phase of this parity has completed, without waiting.

        Executes: every thread of the role.
        Since: sm_90.
        PTX: mbarrier.test_wait.parity.
        """
        at = index_value(parity, "parity")
        return Scalar(builder().emit(mbarrier.Test(barrier=self.one(), parity=at)))

    def on(self, rank: Scalar | int) -> RemoteBarrier:
        """The barrier at the same place of block `rank` of the cluster, to arrive at.

        Shapes: none.
        Executes: every thread of the role.
        Since: sm_90.
        PTX: mapa.
        """
        at = rank_value(rank, "rank")
        return RemoteBarrier(
            builder().emit(cluster_ops.BarrierOn(barrier=self.one(), rank=at)), self
        )


class RemoteBarrier(Handle):
    """An mbarrier of a block of the cluster: it can be arrived at, and nothing else."""

    attributes = ("arrive",)
    absent = "a block makes, announces and waits for its own barriers; peers arrive at them"

    def __init__(self, value: Value, own: Barrier) -> None:
        self.value = value
        self.own = own

    def __repr__(self) -> str:
        return "an mbarrier of another block"

    def arrive(self, count: int = 1, per: str = "role") -> None:
        """`count` arrivals at the peer's barrier, as `arrive` of one's own; what was written before
        is seen there after the wait. It costs a fence of the whole GPU.

        Executes: as `per` says.
        Since: sm_90.
        PTX: mbarrier.arrive.release.cluster.shared::cluster.
        """
        need_count("count", count, 1)
        _arrive(cluster_ops.Arrive(barrier=self.value, count=count), per)


def _arrive(made: mbarrier.Arrive | cluster_ops.Arrive, per: str) -> None:
    """Let the threads arrive that `per` names."""
    if per not in ("role", "warp", "thread"):
        raise Refused("T015", '`per` is "role", "warp" or "thread"', argument="per")
    if current().alone or per == "thread":
        builder().add(made)
        return
    with builder().one_thread(per, meet=per == "role"):
        builder().add(made)


@vocabulary
def barrier(count: int = 1, arrivals: int = 1) -> Barrier:
    """`count` mbarriers in shared memory whose phases take `arrivals` arrivals each.

    They are made before the roles of the block begin.

    Shapes: none.
    Executes: the block, before its roles split.
    Since: sm_90.
    PTX: mbarrier.init.
    """
    need_count("count", count, 1)
    need_count("arrivals", arrivals, 1)
    need_top("a barrier")
    made = mbarrier.Alloc(count=count, arrivals=arrivals)
    return Barrier(builder().emit(made), count)


class NamedBarrier(Handle):
    """A barrier of the hardware for a fixed number of threads, of one role or of several."""

    attributes = ("sync", "arrive")

    def __init__(self, number: int, threads: int) -> None:
        self.number, self.threads = number, threads

    def __repr__(self) -> str:
        return f"a named barrier of {self.threads} threads"

    def sync(self) -> None:
        """Arrive, and wait until as many threads have arrived as the barrier counts; what they
        wrote before is seen after.

        Executes: all threads of the role.
        Since: sm_80.
        PTX: bar.sync.
        """
        self._meet(waits=True)

    def arrive(self) -> None:
        """Arrive and go on; others wait for it with `sync`.

        Executes: all threads of the role.
        Since: sm_80.
        PTX: bar.arrive.
        """
        self._meet(waits=False)

    def _meet(self, *, waits: bool) -> None:
        need_all_threads("a named barrier counts whole warps")
        builder().add(sync.Meet(number=self.number, threads=self.threads, waits=waits))


@vocabulary
def named_barrier(threads: int) -> NamedBarrier:
    """A barrier of the hardware at which `threads` threads meet: those of every role that comes
    there, whether it waits or only arrives. Its number comes from the block's 16.

    Shapes: none; `threads` is a constant, whole warps.
    Executes: the block, before its roles split.
    Since: sm_80.
    PTX: bar.sync, bar.arrive.
    """
    need_count("threads", threads, 32)
    if threads % 32:
        raise Refused(
            "P028",
            f"{threads} threads are not whole warps",
            argument="threads",
            hint=f"the nearest: {threads // 32 * 32}",
        )
    need_top("a named barrier")
    held = current()
    held.named += 1
    return NamedBarrier(held.named - 1, threads)


@vocabulary
def fence_async(space: str = "shared") -> None:
    """Order this thread's earlier ordinary accesses before later asynchronous ones (copy engine,
    matrix unit): in the block's "shared" memory, in "global" memory, or in "all".

    Shapes: none.
    Executes: every thread that reaches it.
    Since: sm_90.
    PTX: fence.proxy.async.
    """
    if space not in sync.SPACES:
        raise Refused("T015", '`space` is "shared", "global" or "all"', argument="space")
    builder().add(sync.FenceAsync(why="written in the kernel", space=space))


@vocabulary
def fence(scope: str = "gpu") -> None:
    """Order this thread's earlier accesses to memory before its later ones, as all threads of
    `scope` see them: "block", "cluster", "gpu" or "system".

    Shapes: none.
    Executes: every thread that reaches it.
    Since: sm_80 ("cluster": sm_90).
    PTX: fence.acq_rel.
    """
    if scope not in sync.SCOPES:
        words = ", ".join(f'"{s}"' for s in sync.SCOPES)
        raise Refused("T015", f"`scope` is one of {words}", argument="scope")
    builder().add(sync.Fence(scope=scope))

"""All blocks of a launch: how they wait for each other, and how a launch begins while the one
before it ends (programmatic dependent launch)."""

from __future__ import annotations

from warploom.base.dtypes import i32
from warploom.ir.ops import grid
from warploom.language.context import Refused, builder, current, need_top, vocabulary
from warploom.language.gathering import gathering
from warploom.language.values import Tensor


@vocabulary
def stop_at(word: Tensor) -> None:
    """Let waits for other blocks give up once the first element of a tensor of i32 is not 0: from
    here on `wl.wait`, `wl.grid_sync`, `receive`, and collectives over the grid.

    Nobody is stopped in the middle of anything: all roles run on to their ends, with numbers that
    mean nothing, and no wait for another block holds them up. The word is that of a `wl.Stop`, in
    memory that the host can write while the kernel runs; who polls looks at it now and then.

    Shapes: a tensor of one axis.
    Executes: nothing by itself.
    Since: sm_80.
    PTX: ld.relaxed.sys.
    """
    need_top("a word that ends waits")
    if not isinstance(word, Tensor) or word.dtype != i32 or word.rank != 1:
        raise Refused(
            "T004",
            "the word that ends waits is in a tensor of i32",
            argument="word",
            hint="give a tensor of i32",
        )
    current().stop = word.root


@vocabulary
def grid_sync() -> None:
    """Wait until all blocks of the launch have come here; what they wrote before is seen after.

    In a role it is that role of every block, without its other roles. All blocks come here equally
    often, and run at the same time: the launch is `cooperative=True` (H040). What the copy engine
    reads after this needs `wl.fence_async(space="global")`. The counter behind it belongs to the
    kernel and is never reset: launches of one stream hand it on, a graph has its own.

    Shapes: none.
    Executes: all warps of the role meet, one thread signals and polls, all warps meet.
    Since: sm_80.
    PTX: bar.sync, red.release.add, ld.acquire in a loop, bar.sync.
    """
    gathering("wl.grid_sync()").meet()


@vocabulary
def wait_for_previous() -> None:
    """Wait until the launch before this one has ended; what it wrote is seen from here on.

    A launch with `pdl=True` may begin before its predecessor has ended: what stands above this
    line, such as barriers and pipes being made, overlaps with it. It stands at the top level of the
    kernel, above every access to a tensor (P031). Without `pdl=True` it costs next to nothing.

    Shapes: none.
    Executes: every warp.
    Since: sm_80; before sm_90 launches do not overlap, and it does nothing.
    PTX: griddepcontrol.wait.
    """
    builder().add(grid.WaitForPrevious())


@vocabulary
def launch_dependents() -> None:
    """Let the next launch of the stream begin, if that was made with `pdl=True`.

    It begins when every block has come here or ended, and room is free on an SM. Nothing needs to
    be finished: the next launch waits for the end of this one in `wl.wait_for_previous()`.

    Shapes: none.
    Executes: any warp; once a block is enough.
    Since: sm_80; before sm_90 launches do not overlap, and it does nothing.
    PTX: griddepcontrol.launch_dependents.
    """
    builder().add(grid.LaunchDependents())

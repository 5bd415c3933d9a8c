"""A launch that begins while the one before it ends (programmatic dependent launch)."""

from __future__ import annotations

from warploom.ir.ops import grid
from warploom.language.context import builder, vocabulary


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

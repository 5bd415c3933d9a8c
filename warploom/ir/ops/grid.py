"""The launch among others: what a kernel says to the launches before and after it.

Before sm_90 launches do not overlap and there is nothing to say: `check_previous` drops both there.
"""

from __future__ import annotations

from warploom.ir.op import Effect, Op, op


@op("grid.launch_dependents", effects=(Effect.SYNC,))
class LaunchDependents(Op):
    """From this block's side the launch behind this one may begin; it begins once every block has
    said so or ended. PTX griddepcontrol.launch_dependents."""


@op("grid.wait_for_previous", effects=(Effect.SYNC,))
class WaitForPrevious(Op):
    """Wait until the launches ahead of this one have ended and their writes are seen. PTX
    griddepcontrol.wait."""

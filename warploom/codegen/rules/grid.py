"""What a launch says to its neighbours in the stream."""

from __future__ import annotations

from warploom.codegen import async_helpers
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter
from warploom.ir.ops import grid as ops


@emits(ops.LaunchDependents)
def launch_dependents(out: Emitter, op: ops.LaunchDependents) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, 'launch_dependents')}();")


@emits(ops.WaitForPrevious)
def wait_for_previous(out: Emitter, op: ops.WaitForPrevious) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, 'wait_for_previous')}();")

"""Holds `wl.wait_for_previous()` against the accesses around it, and drops it where launches do not
overlap. Knows no launch."""

from __future__ import annotations

from warploom.base.errors import error
from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Effect, Op
from warploom.ir.ops.grid import LaunchDependents, WaitForPrevious

_ACCESS = {Effect.READ_GLOBAL, Effect.WRITE_GLOBAL}


def check_previous(kernel: Kernel, target: Target) -> None:
    """Refuse accesses to tensors that may run ahead of the wait for the launch before.

    Needs: the tile stage. Gives: `kernel.dependent`; before sm_90 neither operation of the family
    is left. Raises CompileError P031.
    """
    _check(kernel)
    kernel.dependent = any(isinstance(op, WaitForPrevious) for op in kernel.body.ops)
    if not target.has("sm_90"):
        _drop(kernel.body)


def _drop(block: Block) -> None:
    block.ops[:] = [
        op for op in block.ops if not isinstance(op, WaitForPrevious | LaunchDependents)
    ]
    for op in block.ops:
        for inner in op.regions():
            _drop(inner)


def _check(kernel: Kernel) -> None:
    waits = [op for op in walk(kernel.body) if isinstance(op, WaitForPrevious)]
    for inner in waits:
        if not any(op is inner for op in kernel.body.ops):
            raise _refused("`wl.wait_for_previous()` stands at the top level of a kernel", inner)
    if not waits:
        return
    for outer in kernel.body.ops:
        if outer is waits[0]:
            return
        for op in (outer, *(o for region in outer.regions() for o in walk(region))):
            if _ACCESS & set(op.EFFECTS):
                text = "a tensor is accessed before the launch that may still write it has ended"
                raise _refused(text, op, waits[0])


def _refused(text: str, *ops: Op) -> Exception:
    hint = "put `wl.wait_for_previous()` first, behind barriers and pipes only"
    return error("P031", text, *(op.loc for op in ops), hint=hint)

"""Holds `wl.wait_for_previous()` against the accesses around it. Knows no launch."""

from __future__ import annotations

from warploom.base.errors import error
from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Effect, Op
from warploom.ir.ops.grid import WaitForPrevious

_ACCESS = {Effect.READ_GLOBAL, Effect.WRITE_GLOBAL}


def check_previous(kernel: Kernel, target: Target) -> None:
    """Refuse accesses to tensors that may run ahead of the wait for the launch before.

    Needs: the tile stage. Gives: nothing new. Raises CompileError P031.
    """
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

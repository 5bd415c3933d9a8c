"""Refuses a kernel that uses what its target does not have. Knows no operation by name."""

from __future__ import annotations

from warploom.base.errors import error
from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk


def check_target(kernel: Kernel, target: Target) -> None:
    """Hold every operation against the target.

    Needs: any stage. Gives: nothing new. Raises CompileError C009 at the first operation that needs
    another architecture.
    """
    for op in walk(kernel.body):
        if not target.has(op.SINCE):
            raise error(
                "C009",
                f"`{op.OPCODE}` needs {op.SINCE}, and this is compiled for {target}",
                op.loc,
                hint="level 1 (`wl.load`, `wl.store` and arithmetic) runs on sm_80 and later",
            )

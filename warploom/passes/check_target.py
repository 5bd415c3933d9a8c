"""Refuses a kernel that uses what its target does not have. Knows no operation by name."""

from __future__ import annotations

from warploom.base.errors import error
from warploom.base.target import F8_SINCE, Target
from warploom.ir.cluster import ALONE
from warploom.ir.kernel import Kernel, walk
from warploom.ir.types import Regs, Scalar, Tile

CLUSTERS_SINCE = "sm_90"


def check_target(kernel: Kernel, target: Target) -> None:
    """Hold every operation against the target.

    Needs: any stage. Gives: nothing new. Raises CompileError C009 at the first operation that needs
    another architecture, by itself or by the element type of a value, and for clusters.
    """
    if kernel.cluster != ALONE and not target.has(CLUSTERS_SINCE):
        raise error(
            "C009",
            f"clusters need {CLUSTERS_SINCE}, and this is compiled for {target}",
            kernel.loc,
            hint="launch it without `cluster=`",
        )
    for op in walk(kernel.body):
        if not target.has(op.SINCE):
            raise error(
                "C009",
                f"`{op.OPCODE}` needs {op.SINCE}, and this is compiled for {target}",
                op.loc,
                hint="level 1 (`wl.load`, `wl.store` and arithmetic) runs on sm_80 and later",
            )
        for value in (*op.results, *op.operand_values()):
            kind = value.type
            if isinstance(kind, Tile | Regs | Scalar) and not target.has_dtype(kind.dtype):
                raise error(
                    "C009",
                    f"values of {kind.dtype} need {F8_SINCE}, and this is compiled for {target}",
                    op.loc,
                    hint="pass the data as f16 or bf16",
                )

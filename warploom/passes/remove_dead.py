"""Drops operations whose results nobody uses: pure ones, loads, and loops or maps left empty of
use."""

from __future__ import annotations

from warploom.base.target import Target
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Effect, Op, Value

_KEPT = {
    Effect.WRITE_GLOBAL,
    Effect.WRITE_SHARED,
    Effect.SYNC,
    Effect.OUTSIDE,
    Effect.CONTROL,
    Effect.STORAGE,
}


def remove_dead(kernel: Kernel, target: Target) -> None:
    """Remove unused operations.

    Needs: nothing. Gives: every result of a pure operation, load or buffer has a user.
    """
    live: set[Value] = set()
    _sweep(kernel.body, live)


def _sweep(block: Block, live: set[Value]) -> None:
    kept: list[Op] = []
    for op in reversed(block.ops):
        removable = not op.EFFECTS & _KEPT and not op.regions()
        if removable and not any(v in live for v in op.results):
            continue
        # Inner uses count before this operation's own operands: blocks are walked backwards.
        for inner in reversed(op.regions()):
            _sweep(inner, live)
        live.update(op.operand_values())
        kept.append(op)
    block.ops = kept[::-1]

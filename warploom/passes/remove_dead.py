"""Drops operations whose results nobody uses: pure ones, loads, buffers, and loops, branches or
maps that do nothing else. Carried values of a loop that stays are kept."""

from __future__ import annotations

from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Effect, Op, Value

_KEPT = {
    Effect.WRITE_GLOBAL,
    Effect.WRITE_SHARED,
    Effect.SYNC,
    Effect.OUTSIDE,
    Effect.STORAGE,
}


def remove_dead(kernel: Kernel, target: Target) -> None:
    """Remove unused operations.

    Needs: nothing. Gives: every operation without an effect that stays has a result with a user.
    """
    _sweep(kernel.body, set())


def _sweep(block: Block, live: set[Value]) -> None:
    kept: list[Op] = []
    for op in reversed(block.ops):
        if _has_no_effect(op) and not any(v in live for v in op.results):
            continue
        # Inner uses count before this operation's own operands: blocks are walked backwards.
        for inner in reversed(op.regions()):
            _sweep(inner, live)
        live.update(op.operand_values())
        kept.append(op)
    block.ops = kept[::-1]


def _has_no_effect(op: Op) -> bool:
    if op.TERMINATOR or op.EFFECTS & _KEPT:
        return False
    return not any(inner.EFFECTS & _KEPT for region in op.regions() for inner in walk(region))

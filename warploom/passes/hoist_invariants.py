"""Moves pure operations out of loops when all they use comes from outside. They are total, so a
loop that makes no trip does not matter; loads are not pure and stay. The simulator would run them
at each trip, and so would a GPU where the compiler below does not see it."""

from __future__ import annotations

from warploom.base.target import Target
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops.control import Loop


def hoist_invariants(kernel: Kernel, target: Target) -> None:
    """Hoist loop invariants.

    Needs: nothing. Gives: each pure operation of a loop body depends on something of that body.
    """
    _hoist(kernel.body)


def _hoist(block: Block) -> None:
    ops: list[Op] = []
    for op in block.ops:
        for inner in op.regions():
            _hoist(inner)
        if isinstance(op, Loop):
            ops += _split_invariants(op.body)
        ops.append(op)
    block.ops = ops


def _split_invariants(body: Block) -> list[Op]:
    bound: set[Value] = set(body.args)
    moved: list[Op] = []
    kept: list[Op] = []
    for op in body.ops:
        if op.is_pure and not any(v in bound for v in op.operand_values()):
            moved.append(op)
        else:
            bound.update(op.results)
            kept.append(op)
    body.ops = kept
    return moved

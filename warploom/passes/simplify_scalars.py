"""Folds integer scalars that are known before launch, so that later passes see constants."""

from __future__ import annotations

from warploom.base.target import Target
from warploom.ir.affine import ScalarFacts
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops.scalar import Binary, Cast, Const
from warploom.ir.types import Scalar


def simplify_scalars(kernel: Kernel, target: Target) -> None:
    """Replace integer arithmetic of constants by constants.

    Needs: nothing. Gives: an integer that is always the same number is a literal.
    """
    _simplify(kernel.body, ScalarFacts.of(kernel.body), {})


def _simplify(block: Block, facts: ScalarFacts, swap: dict[Value, Value]) -> None:
    ops: list[Op] = []
    for op in block.ops:
        op.replace_operands(lambda v: swap.get(v, v))
        if isinstance(op, Binary | Cast):
            literal = _literal(op, facts)
            if literal is not None:
                swap[op.results[0]] = literal.result
                op = literal
        for inner in op.regions():
            _simplify(inner, facts, swap)
        ops.append(op)
    block.ops = ops


def _literal(op: Binary | Cast, facts: ScalarFacts) -> Const | None:
    type = op.result.type
    assert isinstance(type, Scalar)
    if not type.dtype.is_int:
        return None
    number = facts.constant(op.result)
    if number is None:
        return None
    literal = Const(number=number, dtype=type.dtype, loc=op.loc)
    # One number everywhere, whatever it was made from: it may stand for any equal literal.
    literal.results = (Value(Scalar(type.dtype), op.result.name, op.loc),)
    literal.result.owner = literal
    return literal

"""Common subexpressions: of two equal pure operations the later one takes the results of the
earlier."""

from __future__ import annotations

from collections.abc import Hashable

from warploom.base.target import Target
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, FieldKind, Op, Value
from warploom.ir.ops.registers import Map, ToScalar
from warploom.ir.ops.roles import Split
from warploom.ir.types import Regs, Scalar


def merge_equal(kernel: Kernel, target: Target) -> None:
    """Merge equal pure operations of a block and of the blocks around it.

    Needs: nothing. Gives: no two visible pure operations compute the same from the same values.
    """
    _merge(kernel.body, {}, {})


def _merge(block: Block, known: dict[Hashable, Op], swap: dict[Value, Value]) -> None:
    kept: list[Op] = []
    for op in block.ops:
        op.replace_operands(lambda v: swap.get(v, v))
        if op.is_pure and op.results:
            key = _key(op)
            first = known.setdefault(key, op)
            if first is not op:
                for old, new in zip(op.results, first.results, strict=True):
                    swap[old] = new
                    new.name = new.name or old.name
                continue
        for inner in op.regions():
            if isinstance(op, Split):
                # A warp's number counts within its role: only scalars mean the same inside.
                _merge(inner, {k: o for k, o in known.items() if _is_scalar(o)}, swap)
            elif not isinstance(op, Map):
                _merge(inner, dict(known), swap)
        kept.append(op)
    block.ops = kept


def _is_scalar(op: Op) -> bool:
    return all(isinstance(v.type, Scalar) for v in op.results) and not isinstance(op, ToScalar)


def _key(op: Op) -> Hashable:
    operands = tuple(
        getattr(op, i.name)
        for i in op.FIELDS
        if i.kind in (FieldKind.OPERAND, FieldKind.OPERANDS, FieldKind.OPTIONAL)
    )
    # A literal's −0.0 and 0.0 are equal in Python and differ here.
    attributes = tuple((type(v), repr(v)) for v in op.attributes().values())
    layouts = tuple(v.type.layout if isinstance(v.type, Regs) else None for v in op.results)
    return op.OPCODE, operands, attributes, layouts

"""A copy of a kernel that may be changed while the original stays. Knows no single operation."""

from __future__ import annotations

from dataclasses import replace

from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, FieldKind, Op, Value


def clone(kernel: Kernel) -> Kernel:
    """The same kernel of new operations and values, which stand in the same order."""
    known: dict[Value, Value] = {}
    params = tuple(_value(p, known) for p in kernel.params)
    return replace(kernel, params=params, body=_block(kernel.body, known))


def _value(old: Value, known: dict[Value, Value]) -> Value:
    new = Value(old.type, old.name, old.loc)
    new.storage = old.storage
    known[old] = new
    return new


def _block(old: Block, known: dict[Value, Value]) -> Block:
    args = tuple(_value(a, known) for a in old.args)
    return Block(args, [_op(op, known) for op in old.ops])


def _op(old: Op, known: dict[Value, Value]) -> Op:
    held = {}
    for info in old.FIELDS:
        value = getattr(old, info.name)
        if info.kind is FieldKind.OPERANDS:
            value = tuple(known[v] for v in value)
        elif info.kind is FieldKind.REGIONS:
            value = tuple(_block(b, known) for b in value)
        elif info.kind is FieldKind.REGION:
            value = _block(value, known)
        elif info.kind is not FieldKind.ATTRIBUTE and value is not None:
            value = known[value]
        held[info.name] = value
    new = type(old)(**held, loc=old.loc)
    new.results = tuple(_value(r, known) for r in old.results)
    for result in new.results:
        result.owner = new
    return new

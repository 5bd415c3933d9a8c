"""Where the synchronisation of a kernel depends on what its run computed: on atomic operations, on
polls, and on memory that the launch itself writes. A verdict holds for the choices of that run.

Knows what operations read and where it goes, not what they compute.
"""

from __future__ import annotations

from collections.abc import Hashable

from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Effect, Op, Value
from warploom.ir.ops import control, flags, global_memory, mbarrier
from warploom.ir.types import Scalar, Tensor
from warploom.sim.loose_values import flows

_PLACES = ("offset", "place", "predicate", "inside")  # operands that say which elements
_WRITES = (Effect.WRITE_GLOBAL,)


def choices(kernel: Kernel) -> list[Op]:
    """Operations that go by such values: branches, loops, and places or numbers of others."""
    ops = list(walk(kernel.body))
    written = _written(ops)
    loose = {_key(result) for op in ops if _chooses(op, written) for result in op.results}
    edges = [({_key(v) for v in a}, {_key(v) for v in b}) for op in ops for a, b in flows(op)]
    size = -1
    while len(loose) != size:
        size = len(loose)
        for given, made in edges:
            if not loose.isdisjoint(given):
                loose |= made
    return [op for op in ops if any(_key(v) in loose for v in _deciding(op))]


def orders_atomics(kernel: Kernel) -> bool:
    """Whether somebody asks what an atomic operation found: their order is then a choice."""
    return any(isinstance(op, global_memory.Atomic) and op.returns for op in walk(kernel.body))


def _key(value: Value) -> Hashable:
    return value.storage or value


def _written(ops: list[Op]) -> set[Value]:
    """Tensors that the launch writes."""
    found: set[Value] = set()
    for op in ops:
        if op.EFFECTS.intersection(_WRITES):
            found |= {v for v in op.operand_values() if isinstance(v.type, Tensor)}
    return found


def _chooses(op: Op, written: set[Value]) -> bool:
    """Whether the results of an operation may depend on when it takes place."""
    if isinstance(op, mbarrier.Test) or Effect.READ_SHARED in op.EFFECTS:
        return True
    if isinstance(op, global_memory.Atomic):
        return op.returns
    return Effect.READ_GLOBAL in op.EFFECTS and not written.isdisjoint(op.operand_values())


def _deciding(op: Op) -> list[Value]:
    """Operands that decide what is done, not with which data."""
    if isinstance(op, control.If):
        return [op.condition]
    if isinstance(op, control.For):
        return [op.lo, op.hi, op.step]
    if isinstance(op, control.While):
        return [op.carried[0]]
    if isinstance(op, flags.Post | flags.Poll):
        return list(op.operand_values())
    if not op.EFFECTS or isinstance(op, control.Assign):
        return []
    places = [getattr(op, name, None) for name in _PLACES]
    scalars = [v for v in op.operand_values() if isinstance(v.type, Scalar)]
    return [*scalars, *(v for v in places if v is not None)]

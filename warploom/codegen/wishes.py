"""Source names for values that passes left without one, so that the text stays readable. Knows no
C++."""

from __future__ import annotations

from collections.abc import Iterable

from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Op, Value
from warploom.ir.ops import control, global_memory, lanes, registers

_SAME_THING = (registers.Splat, registers.Spread, registers.View, registers.ToScalar)
_STEPS = (*_SAME_THING, lanes.ShuffleXor)


def wishes(kernel: Kernel) -> dict[Value, str]:
    """Names for unnamed values.

    A value takes the name of its view, of the reduction that it is a step of, of the result that a
    map yields it as; addresses and predicates that of the tensor.
    """
    found: dict[Value, str] = {}
    for op in reversed(list(walk(kernel.body))):
        if isinstance(op, global_memory.Load | global_memory.Store | global_memory.Atomic):
            tensor = op.tensor.name or "x"
            parts = (op.base, "base"), (op.offset, "at"), (op.predicate, "in")
            for value, part in parts:
                if value is not None and not value.name:
                    found.setdefault(value, f"{tensor}_{part}")
        elif isinstance(op, registers.Map):
            _pass_on(op.body.ops[-1].operand_values(), op.results, found)
        elif len(op.results) == 1:
            name = op.result.name or found.get(op.result, "")
            if name and _hands_down(op):
                _pass_on(op.operand_values(), [op.result] * 2, found)
    return found


def _hands_down(op: Op) -> bool:
    if isinstance(op, (control.Duplicate, *_STEPS)):
        return True
    # One step of a butterfly: op(x, shuffle(x)).
    return isinstance(op, registers.Binary) and isinstance(op.rhs.owner, lanes.ShuffleXor)


def _pass_on(to: Iterable[Value], given: Iterable[Value], found: dict[Value, str]) -> None:
    for value, source in zip(to, given, strict=False):
        name = source.name or found.get(source, "")
        if name and not value.name:
            found.setdefault(value, name)

"""Which values of a kernel may be unwritten at all: those that were read from memory, and what is
computed from them. Operations on others do without what checked mode does to written-ness.

Knows what operations read, not what they compute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.kernel import walk
from warploom.ir.op import Op, Value
from warploom.ir.ops import control, global_memory, remote, shared_memory

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_READS = (
    global_memory.Load,
    global_memory.LoadScalar,
    global_memory.Atomic,
    shared_memory.Load,
    shared_memory.LoadMatrices,
    remote.LoadGroups,
)
# They change what memory is.
_MARKS = (shared_memory.Store, shared_memory.StoreMatrices, remote.StoreGroups)


def loose_slots(t: Translator) -> frozenset[int]:
    """The slots of values that may be unwritten."""
    every = [flow for op in walk(t.kernel.body) for flow in flows(op)]
    edges = [({t.slot(v) for v in given}, {t.slot(v) for v in made}) for given, made in every]
    reads = [op for op in walk(t.kernel.body) if isinstance(op, _READS)]
    loose = {t.slot(result) for op in reads for result in op.results}
    size = -1
    while len(loose) != size:
        size = len(loose)
        for given, made in edges:
            if not loose.isdisjoint(given):
                loose |= made
    return frozenset(loose)


def flows(op: Op) -> list[tuple[tuple[Value, ...], tuple[Value, ...]]]:
    """From which values an operation hands something on, and to which."""
    given, made = tuple(op.operand_values()), op.results
    if isinstance(op, control.Assign):
        return [((op.source,), (op.target,))]
    regions = op.regions()
    if not regions:
        return [(given, made)]
    carried = op.carried if isinstance(op, control.Loop) else made
    if any(v.storage for v in carried):
        return []  # assignments move them
    ends = [region.ops[-1] for region in regions if region.ops]
    yielded = [v for end in ends if isinstance(end, control.Yield) for v in end.operand_values()]
    args = [arg for region in regions for arg in region.args]
    return [((*given, *yielded), (*made, *args))]


def may_matter(t: Translator, op: Op) -> bool:
    """Whether what an operation does to written-ness can be anything at all."""
    if isinstance(op, (*_READS, *_MARKS)):
        return True
    return any(t.slot(v) in t.loose for v in (*op.operand_values(), *op.results))

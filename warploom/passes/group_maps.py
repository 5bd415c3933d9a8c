"""Groups neighbouring register-wise operations of one register shape into one loop over registers.

One statement an operation would keep whole tiles alive between statements: 128 registers a tile
spilled 9.9 KB that way and nothing when grouped.
"""

from __future__ import annotations

from math import prod

from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops.control import Yield
from warploom.ir.ops.registers import Binary, Cast, Compare, Fma, Map, Select, Unary
from warploom.ir.types import Regs

_GROUPED = (Binary, Unary, Fma, Compare, Select, Cast)


def group_maps(kernel: Kernel, target: Target) -> None:
    """Form `registers.map`.

    Needs: stage machine, nothing left to merge or hoist. Gives: runs of two or more register-wise
    operations of one shape (more than one register) inside a map.
    """
    uses: dict[Value, set[Op]] = {}
    for op in walk(kernel.body):
        for value in op.operand_values():
            uses.setdefault(value, set()).add(op)
    _group_block(kernel.body, uses)


def _group_block(block: Block, uses: dict[Value, set[Op]]) -> None:
    out: list[Op] = []
    group: list[Op] = []
    made: set[Value] = set()  # results of the open group

    def flush() -> None:
        if len(group) > 1:
            out.append(_map_of(group, uses))
        else:
            out.extend(group)
        group.clear()
        made.clear()

    for op in block.ops:
        for inner in () if isinstance(op, Map) else op.regions():
            _group_block(inner, uses)
        if _fits(op, group):
            group.append(op)
            made.update(op.results)
            continue
        if op.is_pure and not any(v in made for v in op.operand_values()):
            out.append(op)  # may stand before the open group
            continue
        flush()
        if _fits(op, group):
            group.append(op)
            made.update(op.results)
        else:
            out.append(op)
    flush()
    block.ops = out


def _extents(op: Op) -> tuple[int, ...] | None:
    if isinstance(op, _GROUPED):
        type = op.result.type
        assert isinstance(type, Regs)
        if prod(type.extents) > 1:
            return type.extents
    return None


def _fits(op: Op, group: list[Op]) -> bool:
    extents = _extents(op)
    return extents is not None and (not group or _extents(group[0]) == extents)


def _map_of(group: list[Op], uses: dict[Value, set[Op]]) -> Map:
    inside = set(group)
    swap: dict[Value, Value] = {}
    outputs: list[Value] = []
    results: list[Value] = []
    for op in group:
        if any(user not in inside for user in uses.get(op.result, ())):
            # The value keeps its identity outside; inside a twin of it is made.
            twin = Value(op.result.type, op.result.name, op.result.loc)
            twin.owner = op
            swap[op.result] = twin
            outputs.append(twin)
            results.append(op.result)
            op.results = (twin,)
    for op in group:
        op.replace_operands(lambda v: swap.get(v, v))
    extents = _extents(group[0])
    assert extents is not None
    body = Block((), [*group, Yield(values=tuple(outputs), loc=group[-1].loc)])
    made = Map(extents=extents, body=body, loc=group[0].loc, results=tuple(results))
    for value in results:
        value.owner = made
    return made

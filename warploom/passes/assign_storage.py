"""Gives carried values one variable each and writes the copies that loops and branches need. A
yield that permutes its values (`a, b = b, a`) is a parallel copy: cycles are broken by a
duplicate."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.base.target import Target
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops.control import Assign, Declare, Duplicate, For, If


def assign_storage(kernel: Kernel, target: Target) -> None:
    """Declare storages of carried values and assign them.

    Needs: stage machine, last change of control flow done. Gives: arguments and results of loops
    and results of branches name a storage; `control.assign` moves every carried value.
    """
    _Storages().block(kernel.body)


class _Storages:
    def __init__(self) -> None:
        self.count: dict[str, int] = {}

    def name(self, value: Value) -> str:
        base = value.name or "carried"
        number = self.count.get(base, 0)
        self.count[base] = number + 1
        return f"{base}_s{number}"

    def block(self, block: Block) -> None:
        ops: list[Op] = []
        for op in block.ops:
            for inner in op.regions():
                self.block(inner)
            if isinstance(op, For | If) and op.results:
                ops += self.carry(op)
            ops.append(op)
        block.ops = ops

    def carry(self, op: For | If) -> list[Op]:
        """What stands before the operation; its regions get their assignments."""
        targets = []
        before: list[Op] = []
        for result in op.results:
            storage = self.name(result)
            declare = Declare(type=result.type, loc=op.loc)
            declare.results = (Value(result.type, result.name, result.loc),)
            declare.result.owner = declare
            declare.result.storage = result.storage = storage
            targets.append(declare.result)
            before.append(declare)
        current: dict[Value, Value] = {}
        if isinstance(op, For):
            for init, arg, place in zip(op.inits, op.body.args[1:], targets, strict=True):
                arg.storage = place.storage
                current[arg] = place
                before.append(Assign(source=init, target=place, loc=op.loc))
        for inner in op.regions():
            last = inner.ops[-1]
            moves = list(zip(last.operand_values(), targets, strict=True))
            inner.ops[-1:] = [*parallel_copy(moves, current, last), last]
        return before


def parallel_copy(
    moves: list[tuple[Value, Value]], current: dict[Value, Value], last: Op
) -> Iterator[Op]:
    """Assignments that have the effect of all `moves` (source, storage) at once.

    `current` says which storage a loop argument lives in. A storage may be overwritten once no move
    still reads it.
    """
    waiting = [(s, t) for s, t in moves if current.get(s) is not t]
    while waiting:
        reads = [current.get(s) for s, _ in waiting]
        free = next((m for m in waiting if m[1] not in reads), None)
        if free is not None:
            waiting.remove(free)
            yield Assign(source=free[0], target=free[1], loc=last.loc)
            continue
        # Only cycles are left: save one value, and let the move that wanted it read the copy.
        source, target = waiting[0]
        saved = Duplicate(value=source, loc=last.loc)
        saved.results = (Value(source.type, source.name, source.loc),)
        saved.result.owner = saved
        yield saved
        waiting[0] = (saved.result, target)

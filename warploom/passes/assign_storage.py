"""Gives carried values one variable each and writes the copies that loops and branches need. A
yield that permutes its values (`a, b = b, a`) is a parallel copy: cycles are broken by a
duplicate."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.base.target import Target
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops.control import Assign, Declare, Duplicate, For, If
from warploom.ir.ops.wgmma import Mma, WaitGroup


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
            if isinstance(op, For | If) and op.results:
                # Arguments have their storages before the body is looked at: an accumulator that is
                # updated in place stays in the one it came in.
                targets, before = self.enter(op)
                ops += before
                for inner in op.regions():
                    self.block(inner)
                    last = inner.ops[-1]
                    moves = list(zip(last.operand_values(), targets, strict=True))
                    inner.ops[-1:] = [*parallel_copy(moves, last), last]
            else:
                for inner in op.regions():
                    self.block(inner)
                if isinstance(op, Mma | WaitGroup):
                    ops += self.in_place(op)
            ops.append(op)
        block.ops = ops

    def in_place(self, op: Mma | WaitGroup) -> list[Op]:
        """Accumulator and result are one storage; an accumulator without one gets a copy in it."""
        before: list[Op] = []
        if not op.acc.storage:
            declare = self.declare(op.result, op)
            before = [declare, Assign(source=op.acc, target=declare.result, loc=op.loc)]
            op.acc = declare.result
        op.result.storage = op.acc.storage
        return before

    def declare(self, like: Value, op: Op) -> Declare:
        """A new storage for values like this one."""
        declare = Declare(type=like.type, loc=op.loc)
        declare.results = (Value(like.type, like.name, like.loc),)
        declare.result.owner = declare
        declare.result.storage = self.name(like)
        return declare

    def enter(self, op: For | If) -> tuple[list[Value], list[Op]]:
        """Storages of the carried values, and what stands before the operation."""
        targets: list[Value] = []
        before: list[Op] = []
        for result in op.results:
            declare = self.declare(result, op)
            result.storage = declare.result.storage
            targets.append(declare.result)
            before.append(declare)
        if isinstance(op, For):
            for init, arg, place in zip(op.inits, op.body.args[1:], targets, strict=True):
                arg.storage = place.storage
                before.append(Assign(source=init, target=place, loc=op.loc))
        return targets, before


def parallel_copy(moves: list[tuple[Value, Value]], last: Op) -> Iterator[Op]:
    """Assignments that have the effect of all `moves` (source, storage) at once.

    A storage may be overwritten once no move still reads it.
    """
    waiting = [(s, t) for s, t in moves if s.storage != t.storage]
    while waiting:
        reads = {s.storage for s, _ in waiting}
        free = next((m for m in waiting if m[1].storage not in reads), None)
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

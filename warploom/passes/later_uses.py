"""Whether a value is read after an operation, over loops and branches: what may be overwritten.
Knows blocks and views of registers, no storages."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops.control import Loop
from warploom.ir.ops.registers import Slice, Spread, View

_VIEWS = (Slice, Spread, View)  # no instruction: they read their operand when they are read


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an operation stands: its number in program order, and the regions around it."""

    number: int
    regions: tuple[tuple[Op, int], ...]


class LaterUses:
    """The uses of all values of a kernel, as it was when this was made."""

    def __init__(self, kernel: Kernel) -> None:
        self._places: dict[Op, _Place] = {}
        self._uses: dict[Value, list[Op]] = {}
        self._depth: dict[Value, int] = {}  # of the regions around its definition
        self._scan(kernel.body, ())

    def _scan(self, block: Block, around: tuple[tuple[Op, int], ...]) -> None:
        for arg in block.args:
            self._depth[arg] = len(around)
        for op in block.ops:
            self._places[op] = _Place(len(self._places), around)
            for value in op.operand_values():
                self._uses.setdefault(value, []).append(op)
            for result in op.results:
                self._depth[result] = len(around)
            for number, inner in enumerate(op.regions()):
                self._scan(inner, (*around, (op, number)))

    def of(self, value: Value) -> list[Op]:
        """What reads a value or a view of it."""
        found: list[Op] = []
        todo = [value]
        while todo:
            for op in self._uses.get(todo.pop(), []):
                found.append(op)
                if isinstance(op, _VIEWS):
                    todo += op.results
        return found

    def after(self, value: Value, op: Op, *, inside: bool = True) -> bool:
        """Whether anything may read `value` once `op` has read it; `inside`: what stands in the
        regions of `op` counts."""
        here = self._places[op]
        loops = [
            around
            for around, _ in here.regions[self._depth.get(value, 0) :]
            if isinstance(around, Loop)
        ]
        for use in self.of(value):
            there = self._places[use].regions
            if loops and any(around is loops[0] for around, _ in there):
                return True  # the next trip reads it again
            if not inside and any(around is op for around, _ in there):
                continue
            if use is not op and self._follows(use, here):
                return True
        return False

    def _follows(self, use: Op, here: _Place) -> bool:
        there = self._places[use]
        for (a, region), (b, other) in zip(there.regions, here.regions, strict=False):
            if a is not b:
                break
            if region != other:
                return False  # the other way of a branch
        return there.number > here.number

"""Checked mode of kernels whose blocks nothing orders: which blocks wrote, read and added to each
cell of a tensor. Two blocks at one cell, one of them writing, race, whatever they write.

Many blocks are looked at together, as they run. Within a block the compiler orders what its warps
do. Kernels that order blocks have the engine (`sim/order`) instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from warploom.ir.op import Op
from warploom.ir.ops import global_memory
from warploom.sim import order_faults
from warploom.sim.booking import Piece
from warploom.sim.cells import element_cells, thinned
from warploom.sim.machine import Batch, Slots, Step, sequence
from warploom.sim.memory import Memory
from warploom.sim.order.history import Does
from warploom.sim.rules.global_memory import Global
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_SITES = 20  # bits of a mark that number the operation; the block stands above them

_DOES = {
    global_memory.Load: Does.READ,
    global_memory.LoadScalar: Does.READ,
    global_memory.Store: Does.WRITE,
    global_memory.Atomic: Does.REDUCE,
}


def block_step(t: Translator, op: Op, step: Step) -> Step:
    """The step of an operation after a look at who else accesses the same elements."""
    if isinstance(op, global_memory.LoadScalar):
        return sequence((_of_scalar(t, op), step))
    if isinstance(op, global_memory.Load | global_memory.Store | global_memory.Atomic):
        return sequence((_of_tile(t, op), step))
    return step


def _of_tile(t: Translator, op: global_memory.Load | global_memory.Store | Any) -> Step:
    tensor, place = t.slot(op.tensor), Global(t, op).place

    def look(s: Slots, m: Batch) -> None:
        piece = m.launch.outside.pieces.get(s[tensor])
        if piece is None:
            return
        at = place(s, m)
        numbers = thinned(at.plan, at.plan.elements, piece, at.memory) + at.span.shift
        blocks, flags = m.linear.reshape(-1, 1, 1), np.True_
        if at.mask is not None:
            flags = thinned(at.plan, dense(at.mask), piece, at.memory)
        numbers, blocks, flags = np.broadcast_arrays(numbers, blocks, flags)
        if at.mask is not None:
            numbers, blocks = numbers[flags], blocks[flags]
        _touch(m, op, piece, at.memory, numbers, blocks)

    return look


def _of_scalar(t: Translator, op: global_memory.LoadScalar) -> Step:
    tensor, base, allowed = t.slot(op.tensor), t.slot(op.base), t.optional(op.predicate)

    def look(s: Slots, m: Batch) -> None:
        memory: Memory = s[tensor]
        piece = m.launch.outside.pieces.get(memory)
        if piece is None:
            return
        places = np.reshape(np.asarray(s[base], np.int64), (-1,)) + memory.origin
        flags = np.reshape(True if allowed < 0 else s[allowed], (-1,))
        flags = flags & (places >= 0) & (places < memory.size)
        places, blocks, flags = np.broadcast_arrays(places, m.linear, flags)
        _touch(m, op, piece, memory, places[flags], blocks[flags])

    return look


def _touch(
    m: Batch, op: Op, piece: Piece, memory: Memory, numbers: np.ndarray, blocks: np.ndarray
) -> None:
    if numbers.size == 0:
        return
    cells = element_cells(numbers, memory, piece)
    if len(cells) != blocks.size:
        blocks = np.repeat(blocks.reshape(-1), len(cells) // blocks.size)
    owners: Owners = m.launch.outside.owners(piece, Owners)
    clash = owners.touch(cells, blocks.reshape(-1), op, _DOES[type(op)])
    if clash is not None:
        order_faults.race_of_blocks(m, op, piece, _DOES[type(op)], clash)


class Clash(NamedTuple):
    """Two blocks at one cell: `block`, which comes now, and another one that did something."""

    cell: int
    block: int
    other: Op
    its_block: int
    did: Does


class Marks:
    """Of each cell the block that did something there first, and another one that did it too: block
    and operation in one number, 0 where there is none."""

    def __init__(self, cells: int) -> None:
        self.first = np.zeros(cells, np.int64)
        self.second: np.ndarray | None = None

    def others(self, cells: np.ndarray, marks: np.ndarray) -> np.ndarray:
        """Of each cell the mark of another block, or 0."""
        first = self.first[cells]
        same = _same_block(first, marks)
        if self.second is None:
            return np.where(same, 0, first)
        return np.where(same, self.second[cells], first)

    def add(self, cells: np.ndarray, marks: np.ndarray) -> None:
        """Blocks do it now."""
        held = self.first[cells]
        self.first[cells] = np.where((held == 0) | _same_block(held, marks), marks, held)
        # Of several blocks that name one cell here, one is the first.
        late = ~_same_block(self.first[cells], marks)
        if late.any():
            if self.second is None:
                self.second = np.zeros_like(self.first)
            self.second[cells[late]] = marks[late]


def _same_block(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    return some >> _SITES == others >> _SITES


class Owners:
    """Which blocks wrote, read and added to each cell of a piece of memory."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._marks: dict[Does, Marks] = {}
        self._sites: list[Op] = []
        self._numbers: dict[Op, int] = {}

    def touch(self, cells: np.ndarray, blocks: np.ndarray, op: Op, does: Does) -> Clash | None:
        """Blocks access cells, one each; gives the first conflict."""
        marks = (blocks.astype(np.int64) + 1) << _SITES | self._number(op)
        mine = self._marks.get(does)
        if mine is None:
            mine = self._marks[does] = Marks(self._cells)
        mine.add(cells, marks)
        for did, held in self._marks.items():
            if did is does is not Does.WRITE:
                continue
            others = held.others(cells, marks)
            if others.any():
                at = int((others != 0).argmax())
                return self._clash(int(cells[at]), int(marks[at]), int(others[at]), did)
        return None

    def _number(self, op: Op) -> int:
        number = self._numbers.get(op)
        if number is None:
            number = self._numbers[op] = len(self._sites)
            self._sites.append(op)
        return number

    def _clash(self, cell: int, mark: int, other: int, did: Does) -> Clash:
        site = self._sites[other & (1 << _SITES) - 1]
        return Clash(cell, (mark >> _SITES) - 1, site, (other >> _SITES) - 1, did)

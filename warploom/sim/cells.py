"""Cells of a history that accesses touch: of elements, vectors and chunks, warp by warp. Where they
lie in a row they are a slice. Knows no operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warploom.sim.accesses import Place
from warploom.sim.boxes import CHUNK
from warploom.sim.memory import Memory, Plan
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.block import Moved
    from warploom.sim.booking import Piece

Cells = np.ndarray | slice
ALL_LANES = np.full(1, 0xFFFF_FFFF, np.uint32)


class Touched(NamedTuple):
    """Cells that a warp touches, and a mask of the lanes that touch each of them (of none, where it
    is not the lanes that do)."""

    cells: Cells
    lanes: np.ndarray | None = None

    def by_all(self) -> Touched:
        """The same cells, touched by all lanes."""
        return self if self.lanes is None else Touched(self.cells, ALL_LANES)

    def distinct(self) -> list[int]:
        """Each cell once."""
        at = self.cells
        return list(range(at.start, at.stop)) if isinstance(at, slice) else np.unique(at).tolist()


def in_a_row(cells: np.ndarray) -> Cells:
    """The same cells as a slice, where they are all of a row."""
    if cells.size:
        first, last = int(cells.min()), int(cells.max())
        if last - first + 1 == cells.size and np.bincount(cells.ravel() - first).max() == 1:
            return slice(first, last + 1)
    return cells


def moved(cells: Cells, by: int) -> Cells:
    """Cells so many further on."""
    if isinstance(cells, slice):
        return slice(cells.start + by, cells.stop + by)
    return cells + by


def chunk_cells(chunks: Cells, piece: Piece) -> Cells:
    """Cells of 16-byte chunks of shared memory."""
    each = CHUNK // piece.unit
    if isinstance(chunks, slice):
        return slice(chunks.start * each, chunks.stop * each)
    if each == 1:
        return chunks
    return (chunks.reshape(-1, 1) * each + np.arange(each)).reshape(-1)


def element_cells(places: np.ndarray, memory: Memory, piece: Piece) -> np.ndarray:
    """Cells of elements of a memory, numbers from its start on: one of each cell is enough."""
    first = places.reshape(-1)
    if piece.unit > memory.itemsize:
        return (first * memory.itemsize + piece.start) // piece.unit
    each = memory.itemsize // piece.unit
    if each != 1:
        first = (first[:, None] * each + np.arange(each)).reshape(-1)
    return first + piece.start // piece.unit if piece.start else first


def part_cells(part: Moved, piece: Piece) -> np.ndarray:
    """Cells of the part of a tensor that a copy moves."""
    return element_cells(part.numbers(_every(part.memory, piece)), part.memory, piece)


def _every(memory: Memory, piece: Piece) -> int:
    """Of how many elements in a row one is enough."""
    return max(1, piece.unit // memory.itemsize)


def cells_by_warp(at: Place, piece: Piece, alone: bool) -> list[Touched]:
    """The cells that each warp of a block touches. With `alone` only its first lane acts."""
    shift, unit = at.span.shift * at.memory.itemsize, piece.unit
    if at.mask is None and shift % unit == 0:
        found = _recurring(at, piece, alone)
        return [Touched(moved(cells, shift // unit), lanes) for cells, lanes in found]
    numbers = thinned(at.plan, at.plan.elements, piece, at.memory) + at.span.shift
    flags = np.True_
    if at.mask is not None:
        flags = thinned(at.plan, dense(at.mask), piece, at.memory)
    numbers, flags = np.broadcast_arrays(numbers, flags)
    lanes = slice(0, 1) if alone else slice(None)
    found = []
    for warp in range(numbers.shape[-2]):
        own, chosen = numbers[..., warp, lanes], flags[..., warp, lanes]
        bits = None if alone else _bits(own)[chosen]
        found.append(Touched(*_with_lanes(own[chosen], bits, at.memory, piece)))
    return found


def _bits(numbers: np.ndarray) -> np.ndarray:
    """The lane of each of a warp's elements, as a bit; all of them where they have one in
    common."""
    if numbers.shape[-1] == 1:
        return np.broadcast_to(ALL_LANES, numbers.shape)
    return np.broadcast_to(np.uint32(1) << np.arange(32, dtype=np.uint32), numbers.shape)


def _with_lanes(
    numbers: np.ndarray, bits: np.ndarray | None, memory: Memory, piece: Piece
) -> tuple[np.ndarray, np.ndarray | None]:
    """Cells of elements, each once where lanes are told apart."""
    cells = element_cells(numbers, memory, piece)
    if bits is None:
        return cells, None
    bits = np.repeat(bits.reshape(-1), max(1, cells.size // max(1, bits.size)))
    once, place = np.unique(cells, return_inverse=True)
    if once.size == cells.size:
        return cells, bits
    lanes = np.zeros(once.size, np.uint32)
    np.bitwise_or.at(lanes, place, bits)
    return once, lanes


def thinned(plan: Plan, array: np.ndarray, piece: Piece, memory: Memory) -> np.ndarray:
    """One register of each cell."""
    every = _every(memory, piece)
    if every == 1 or array.shape[plan.axis] == 1:
        return array
    return array[(slice(None),) * plan.axis + (slice(None, None, every),)]


def _recurring(at: Place, piece: Piece, alone: bool) -> list[Touched]:
    """The cells of a plan without what is added to it; found once."""
    key = (piece.unit, piece.start, at.memory.itemsize, alone)
    found = at.plan.cells.get(key)
    if found is None:
        numbers = thinned(at.plan, at.plan.elements, piece, at.memory)
        lanes = slice(0, 1) if alone else slice(None)
        found = []
        for warp in range(numbers.shape[-2]):
            own = numbers[..., warp, lanes]
            bits = None if alone else _bits(own)
            found.append(_in_order(*_with_lanes(own, bits, at.memory, piece)))
        at.plan.cells[key] = found
    return found


def _in_order(cells: np.ndarray, lanes: np.ndarray | None) -> Touched:
    """Cells as a slice, where they are all of a row; masks of lanes in their order."""
    if lanes is None:
        return Touched(in_a_row(cells))
    order = np.argsort(cells, kind="stable")
    return Touched(in_a_row(cells[order]), lanes[order])

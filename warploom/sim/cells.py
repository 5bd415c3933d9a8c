"""Cells of a history that accesses touch: of elements, vectors and chunks, warp by warp. Where they
lie in a row they are a slice. Knows no operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warploom.sim.accesses import Place
from warploom.sim.boxes import CHUNK
from warploom.sim.memory import Memory, Plan
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.block import Moved
    from warploom.sim.booking import Piece

Cells = np.ndarray | slice


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


def cells_by_warp(at: Place, piece: Piece, alone: bool) -> list[Cells]:
    """The cells that each warp of a block touches. With `alone` only its first lane acts."""
    shift, unit = at.span.shift * at.memory.itemsize, piece.unit
    if at.mask is None and shift % unit == 0:
        return [moved(cells, shift // unit) for cells in _recurring(at, piece, alone)]
    numbers = thinned(at.plan, at.plan.elements, piece, at.memory) + at.span.shift
    flags = np.True_
    if at.mask is not None:
        flags = thinned(at.plan, dense(at.mask), piece, at.memory)
    numbers, flags = np.broadcast_arrays(numbers, flags)
    lanes = slice(0, 1) if alone else slice(None)
    warps = range(numbers.shape[-2])
    chosen = (numbers[..., warp, lanes][flags[..., warp, lanes]] for warp in warps)
    return [element_cells(own, at.memory, piece) for own in chosen]


def thinned(plan: Plan, array: np.ndarray, piece: Piece, memory: Memory) -> np.ndarray:
    """One register of each cell."""
    every = _every(memory, piece)
    if every == 1 or array.shape[plan.axis] == 1:
        return array
    return array[(slice(None),) * plan.axis + (slice(None, None, every),)]


def _recurring(at: Place, piece: Piece, alone: bool) -> list[Cells]:
    """The cells of a plan without what is added to it; found once."""
    key = (piece.unit, piece.start, at.memory.itemsize, alone)
    found = at.plan.cells.get(key)
    if found is None:
        numbers = thinned(at.plan, at.plan.elements, piece, at.memory)
        lanes = slice(0, 1) if alone else slice(None)
        warps = [numbers[..., warp, lanes] for warp in range(numbers.shape[-2])]
        found = [in_a_row(element_cells(own, at.memory, piece)) for own in warps]
        at.plan.cells[key] = found
    return found

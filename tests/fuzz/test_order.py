"""Random kernels run by threads: two threads of a block that touch one element of a tensor, one of
them writing, have a barrier between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warploom.base.target import SM_90A
from warploom.ir.kernel import walk
from warploom.ir.layout.layout import LANES, Layout
from warploom.ir.layout.natural import natural
from warploom.ir.op import Op, Stage
from warploom.ir.ops import scalar, sync, tile
from warploom.ir.printer import print_kernel
from warploom.ir.types import Tile
from warploom.passes import pipeline
from warploom.passes.order_tensors import order_tensors
from warploom.passes.pipeline import lower
from warploom.testing.fuzz import tile_reference as reference
from warploom.testing.fuzz.tile_case import Case
from warploom.testing.fuzz.tile_generator import case_of


def holders(layout: Layout, *, first: bool) -> np.ndarray:
    """Which threads hold an element of a tile, [shape…, warps · lanes]; of the first replica only,
    or of all."""
    threads = layout.warps * LANES
    found = np.zeros((*layout.shape, threads), bool)
    lane, warp = np.arange(threads) % LANES, np.arange(threads) // LANES
    takes_part = np.ones(threads, bool)
    if first:
        for mode in layout.replicas:
            number = lane if mode.place.value == "l" else warp
            takes_part &= number // layout.divisor(mode) % mode.extent == 0
    axes = [layout.coordinates(a).reshape(-1, threads) for a in range(len(layout.shape))]
    for thread in np.flatnonzero(takes_part):
        at = np.ix_(
            *(
                np.unique(c[c[:, thread] < n, thread])
                for c, n in zip(axes, layout.shape, strict=True)
            )
        )
        found[(*at, thread)] = True
    return found


class Race(AssertionError):
    """Two threads that are not ordered."""


class Threads(reference.Evaluator):
    """The evaluator, noting which thread touched which element since the last barrier."""

    def op(self, op: Op) -> tuple[Any, ...]:
        if isinstance(op, sync.Barrier | sync.WarpSync):
            self.open: dict[int, list[np.ndarray]] = {}
            return ()
        if isinstance(op, tile.Convert):
            return (self.values[op.value],)
        if isinstance(op, tile.Load | tile.Store | tile.Gather | scalar.Load):
            self.note(op)
        return super().op(op)

    def note(self, op: tile.Load | tile.Store | tile.Gather | scalar.Load) -> None:
        view = self.values[op.tensor]
        at = self.places(op)
        moved = op.value if isinstance(op, tile.Store) else op.result
        writes = isinstance(op, tile.Store)
        inside = reference.bounds(view, at)
        if isinstance(moved.type, Tile):
            assert moved.type.layout is not None
            threads = holders(moved.type.layout, first=writes)
            inside = np.broadcast_to(inside, moved.type.shape)
        else:
            threads = np.ones(self.threads, bool)
        rows = threads[inside] if inside.shape else threads[None][: int(inside)]
        elements = np.ravel_multi_index(
            tuple(p[inside].ravel() for p in reference.places(view, at, inside)), view.array.shape
        )
        self.touch(view.array, np.atleast_1d(elements), rows.reshape(-1, self.threads), writes)

    def places(self, op: Any) -> list[np.ndarray]:
        if isinstance(op, tile.Gather):
            found = [self.values[v] for v in op.indices]
            mask = np.array(True) if op.mask is None else self.values[op.mask]
            return [np.where(mask, i, -1) for i in found]
        if isinstance(op, scalar.Load):
            return [np.asarray(self.values[v]) for v in op.indices]
        return reference.window(op, [self.values[v] for v in op.starts])

    def touch(
        self, array: np.ndarray, elements: np.ndarray, threads: np.ndarray, writes: bool
    ) -> None:
        if id(array) not in self.open:
            self.open[id(array)] = [np.zeros((array.size, self.threads), bool) for _ in range(2)]
        read, written = self.open[id(array)]
        # A gather may name an element several times, so the sets are joined first.
        mine = np.zeros_like(read)
        np.logical_or.at(mine, elements, threads)
        rows = np.unique(elements)
        others = written[rows] | read[rows] if writes else written[rows]
        if ((others.sum(1)[:, None] - others) * mine[rows]).any():
            raise Race("two threads touch one element without a barrier between them")
        target = written if writes else read
        target |= mine


def run(case: Case) -> None:
    arrays = case.copies()
    threads = case.kernel.threads
    with np.errstate(all="ignore"):
        x, y, z = case.grid
        for block in np.ndindex(z, y, x):
            evaluator = Threads(case.kernel, case.grid, block[::-1], arrays)
            evaluator.threads, evaluator.open = threads, {}
            evaluator.block(case.kernel.body)


def barriers(case: Case) -> int:
    return sum(isinstance(op, sync.Barrier | sync.WarpSync) for op in walk(case.kernel.body))


@pytest.mark.parametrize("seed", range(200, 260))
def test_no_two_threads_race(seed: int) -> None:
    case = case_of(seed)
    lower(case.kernel, SM_90A, Stage.TILE)
    try:
        run(case)
    except Race as race:
        raise Race(f"{race}\n{print_kernel(case.kernel)}") from None


def test_without_the_pass_some_do(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = tuple(entry for entry in pipeline.PIPELINE if entry[1] is not order_tensors)
    monkeypatch.setattr(pipeline, "PIPELINE", steps)
    races = 0
    for seed in range(200, 260):
        case = case_of(seed)
        lower(case.kernel, SM_90A, Stage.TILE)
        try:
            run(case)
        except Race:
            races += 1
    assert races >= 5


def test_threads_that_hold_an_element() -> None:
    layout = natural((3, 2), 4, 2)
    everyone, first = holders(layout, first=False), holders(layout, first=True)
    copies = np.prod([m.extent for m in layout.replicas], dtype=int)
    assert (first.sum(axis=2) == 1).all()
    assert (everyone.sum(axis=2) == copies).all()
    assert (everyone >= first).all()

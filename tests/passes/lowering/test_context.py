"""Coordinates as integer operations: for every layout they are the layout's own."""

import numpy as np
import pytest
from hypothesis import given, settings

from tests.ir.layout.test_layout import layouts
from warploom.base.target import SM_90A
from warploom.ir.accesses import Integers
from warploom.ir.kernel import Kernel
from warploom.ir.layout.layout import LANES, Layout
from warploom.ir.layout.natural import natural
from warploom.ir.op import REGISTRY, Block, Stage
from warploom.ir.ops import tile
from warploom.passes.lowering.context import Lowering, LoweringRules, lowers


def lowering(warps: int) -> Lowering:
    return Lowering(Kernel("k", (), Block(), Stage.MACHINE, warps), SM_90A)


def wanted(layout: Layout, axis: int, vec: int = 1) -> np.ndarray:
    shape = tuple(-1 if a == axis else 1 for a in range(len(layout.shape)))
    found = layout.coordinates(axis)[::vec]
    return found.reshape(shape + found.shape[1:])


@settings(max_examples=200, deadline=None)
@given(layouts())
def test_coordinates(layout: Layout) -> None:
    lower, integers = lowering(layout.warps), Integers(layout.warps)
    for axis in range(len(layout.shape)):
        for vec in {1, layout.run(axis)}:
            found = integers.of(lower.coordinates(layout, axis, vec))
            assert found is not None
            want = wanted(layout, axis, vec)
            assert (np.broadcast_to(found, want.shape) == want).all()
            assert found.shape[:-2] == want.shape[:-2]


@settings(max_examples=200, deadline=None)
@given(layouts())
def test_the_first_replica(layout: Layout) -> None:
    lower, integers = lowering(layout.warps), Integers(layout.warps)
    predicate = lower.first_replica(layout)
    copies = np.prod([m.extent for m in layout.replicas], dtype=int)
    if predicate is None:
        assert copies == 1
        return
    found = integers.of(predicate)
    assert found is not None
    active = np.broadcast_to(found, (*found.shape[:-2], layout.warps, LANES))
    assert active.sum() * copies == layout.warps * LANES


@settings(max_examples=100, deadline=None)
@given(layouts())
def test_padding(layout: Layout) -> None:
    lower, integers = lowering(layout.warps), Integers(layout.warps)
    for axis, extent in enumerate(layout.shape):
        predicate = lower.inside_tile(layout, axis)
        real = wanted(layout, axis) < extent
        if predicate is None:
            assert real.all()
        else:
            found = integers.of(predicate)
            assert found is not None
            assert (np.broadcast_to(found, real.shape) == real).all()


def test_coordinates_are_made_once() -> None:
    lower = lowering(4)
    layout = natural((8, 64), 4, 4)
    first = lower.coordinates(layout, 1)
    count = len(lower.prologue.block.ops)
    assert lower.coordinates(layout, 1) is first
    assert len(lower.prologue.block.ops) == count


def test_every_tile_operation_has_a_rule() -> None:
    assert lowers.missing() == []


def test_missing_rules_are_named() -> None:
    rules = LoweringRules()
    assert "tile.load" in rules.missing() and "scalar.const" not in rules.missing()
    rules(tile.Load)(lambda lower, op: None)
    assert "tile.load" not in rules.missing()
    with pytest.raises(ValueError, match=r"tile\.load has two lowering rules"):
        rules(tile.Load)(lambda lower, op: None)
    assert set(rules.missing()) < set(REGISTRY)

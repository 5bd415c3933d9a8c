"""Appending operations: results, places, nested blocks."""

import pytest

from tests.ir.kernels import argument
from warploom.base.dtypes import f32, i32
from warploom.ir.builder import Builder
from warploom.ir.op import Block, Complaint, Loc
from warploom.ir.ops import control, scalar
from warploom.ir.types import Scalar, Uniformity


def test_results_have_type_name_place_and_owner() -> None:
    build = Builder(Block(), Loc("k.py", 7, 3))
    made = build.add(scalar.BlockId(axis=1), "row")
    assert made.result.type == Scalar(i32, Uniformity.BLOCK)
    assert (made.result.name, made.result.loc.line, made.loc.line) == ("row", 7, 7)
    assert made.result.owner is made and build.block.ops == [made]


def test_a_place_for_a_while() -> None:
    build = Builder(Block(), Loc("k.py", 1))
    with build.at(Loc("k.py", 5)):
        inner = build.const(1)
        with build.at(Loc("k.py", 6)):
            deeper = build.const(1)
    outer = build.const(1)
    assert [v.loc.line for v in (inner, deeper, outer)] == [5, 6, 1]


def test_nested_blocks_and_the_way_back_after_an_error() -> None:
    outer, inner = Block(), Block()
    build = Builder(outer)
    with pytest.raises(RuntimeError), build.inside(inner):
        build.const(1)
        raise RuntimeError
    build.const(2)
    assert [len(outer.ops), len(inner.ops)] == [1, 1]


def test_what_does_not_fit_is_not_appended() -> None:
    build = Builder(Block())
    n = argument()
    with pytest.raises(Complaint, match="add of i32 and f32"):
        build.emit(scalar.Binary(lhs=n, rhs=build.const(1.0, f32), kind="add"))
    assert len(build.block.ops) == 1


def test_results_that_are_there_stay() -> None:
    build = Builder(Block())
    made = build.add(control.Yield())
    assert made.results == ()

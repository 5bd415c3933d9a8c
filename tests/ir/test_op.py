"""One declaration gives constructor, operand walk, replacement and effects."""

import pytest

from tests.ir.kernels import argument, tensor
from warploom.base.dtypes import i32
from warploom.ir.op import REGISTRY, UNKNOWN, Block, Complaint, Loc, Op, Stage, Value, op
from warploom.ir.ops import control, scalar, sync, tile
from warploom.ir.types import Scalar


def test_operands_in_order_without_what_is_absent() -> None:
    x, n, m = tensor(), argument(), argument(name="m")
    load = tile.Load(tensor=x, starts=(n, m), sizes=(4, None))
    assert list(load.operand_values()) == [x, n, m]
    load.other = n
    assert list(load.operand_values()) == [x, n, m, n]
    assert load.attributes() == {"sizes": (4, None), "cache": ""}


def test_operands_are_replaced_and_regions_left_alone() -> None:
    n, m, k = argument(), argument(name="m"), argument(name="k")
    body = Block((Value(Scalar(i32)),), [control.Yield(values=(n,))])
    loop = control.For(lo=n, hi=m, step=n, inits=(n, m), body=body)
    loop.replace_operands(lambda v: k if v is n else v)
    assert (loop.lo, loop.hi, loop.step, loop.inits) == (k, m, k, (k, m))
    assert list(body.ops[0].operand_values()) == [n]


def test_pure_is_without_effects_and_regions() -> None:
    n = argument()
    assert scalar.Binary(lhs=n, rhs=n, kind="add").is_pure
    assert not tile.Load(tensor=tensor(), starts=(n, n), sizes=(1, 1)).is_pure
    assert not control.For(lo=n, hi=n, step=n).is_pure
    assert not sync.Barrier(threads=128).is_pure


def test_each_operation_has_regions_of_its_own() -> None:
    n = argument()
    one, two = (control.For(lo=n, hi=n, step=n) for _ in range(2))
    assert one.body is not two.body


def test_operations_are_equal_to_themselves_only() -> None:
    n = argument()
    one, two = (scalar.Binary(lhs=n, rhs=n, kind="add") for _ in range(2))
    assert one != two and len({one, two}) == 2


def test_the_only_result() -> None:
    made = control.Yield()
    with pytest.raises(ValueError, match="not enough values"):
        _ = made.result


def test_an_opcode_is_declared_once() -> None:
    with pytest.raises(ValueError, match=r"scalar\.const declared twice"):

        @op("scalar.const")
        class Again(Op):
            """The same name."""

    assert REGISTRY["scalar.const"] is scalar.Const


def test_stages() -> None:
    assert Stage.any() == Stage.TILE | Stage.ROLES | Stage.MACHINE
    assert Stage.MACHINE not in tile.Load.STAGES
    assert Stage.TILE in scalar.Const.STAGES and Stage.MACHINE in scalar.Const.STAGES


def test_places() -> None:
    inner = Loc("a.py", 3, 5, chain=(Loc("b.py", 9),))
    assert str(inner) == "a.py:3:5"
    assert inner == Loc("a.py", 3, 5), "the way there does not count"
    assert UNKNOWN.line == 0


def test_wrong_operands_are_complaints() -> None:
    x, n = tensor(), argument()
    with pytest.raises(Complaint, match="is not a scalar"):
        scalar.Binary(lhs=x, rhs=n, kind="add").infer()
    with pytest.raises(Complaint, match="is not a tensor"):
        scalar.Dim(tensor=n, axis=0).infer()
    with pytest.raises(Complaint, match="is not a tile"):
        tile.Reduce(value=n, axis=0, kind="add").infer()

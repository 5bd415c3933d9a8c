"""From tiles to machine operations: control flow, carried values, the prologue, what stays."""

import numpy as np
import pytest

from tests.fuzz.test_lowering import check
from tests.ir.kernels import Body, argument, lowered, tensor
from tests.passes.lowering.test_memory import input_of
from warploom.base.dtypes import f32, i32
from warploom.base.target import SM_90A
from warploom.ir.kernel import walk
from warploom.ir.op import Stage
from warploom.ir.ops import index, registers, scalar, tile
from warploom.ir.ops.control import For, If
from warploom.ir.types import Regs
from warploom.ir.verifier import verify_kernel
from warploom.passes.assign_layouts import assign_layouts
from warploom.passes.lower_tiles import lower_tiles
from warploom.testing.fuzz.tile_case import Case


def machine(body: Body):
    kernel = body.kernel()
    assign_layouts(kernel, SM_90A)
    lower_tiles(kernel, SM_90A)
    verify_kernel(kernel)
    return kernel


def test_nothing_of_a_tile_is_left() -> None:
    b = Body(tensor(), tensor(name="y"))
    b.store(b.params[1], b.load(b.params[0], (0, 8), (0, 80)), (0, 8), (0, 80))
    kernel = machine(b)
    assert kernel.stage is Stage.MACHINE
    assert not any(op.FAMILY in ("tile", "tensor") for op in walk(kernel.body))


def test_carried_tiles_have_all_their_registers_and_keep_layout_and_name() -> None:
    b = Body(tensor(), tensor(name="y"), argument())
    zero = b.emit(tile.Splat(value=b.build.const(0.0, f32), shape=(8, 80)), "acc")
    with b.loop(b.build.const(0), b.params[2], b.build.const(1), zero) as loop:
        loop.give(b.binary("add", loop.carried[0], b.load(b.params[0], (0, 8), (0, 80))))
    b.store(b.params[1], loop.results[0], (0, 8), (0, 80))
    kernel = machine(b)
    loop = next(op for op in walk(kernel.body) if isinstance(op, For))
    type = loop.result.type
    assert isinstance(type, Regs) and type.layout is not None
    assert type.extents == type.layout.reg_extents
    assert loop.result.name == loop.body.args[1].name == "acc"
    assert isinstance(loop.inits[0].owner, registers.Spread)


def test_coordinates_stand_in_front_of_everything() -> None:
    b = Body(tensor(), tensor(name="y"), argument())
    with b.loop(b.build.const(0), b.params[2], b.build.const(64)) as loop:
        b.store(
            b.params[1], b.load(b.params[0], (0, 8), (loop.index, 64)), (0, 8), (loop.index, 64)
        )
    kernel = machine(b)
    assert isinstance(kernel.body.ops[0], index.Constants | index.Warp | index.Lane)
    loop = next(op for op in walk(kernel.body) if isinstance(op, For))
    inside = list(walk(loop.body))
    assert not any(isinstance(op, index.Lane | index.Warp | index.Digit) for op in inside)


@pytest.mark.parametrize(("lo", "hi"), [(0, 0), (3, 1), (0, 1), (0, 5), (-4, 2)])
@pytest.mark.parametrize("step", [1, 3])
def test_loops_of_every_length_swap_their_values(lo: int, hi: int, step: int) -> None:
    x = np.arange(2 * 24, dtype=np.float32).reshape(2, 24)
    y = np.zeros((3, 24), np.float32)
    n, m = argument(), argument(name="m")
    b = Body(input_of(x, f32), input_of(y, f32, "y"), n, m, warps=2)
    first, second = (b.load(b.params[0], row, (0, 24)) for row in (0, 1))
    third = b.binary("add", first, second)
    with b.loop(n, m, b.build.const(step), first, second, third) as loop:
        one, two, three = loop.carried
        loop.give(two, three, one)
    for row, value in enumerate(loop.results):
        b.store(b.params[1], value, row, (0, 24))
    check(Case(b.kernel(), (1, 1, 1), [x, y, lo, hi]))


@pytest.mark.parametrize("n", range(-1, 4))
def test_nested_branches(n: int) -> None:
    x = np.arange(24, dtype=np.float32)
    y = np.zeros((3, 24), np.float32)
    b = Body(input_of(x, f32), input_of(y, f32, "y"), argument())
    t = b.load(b.params[0], (0, 24))
    block = b.emit(scalar.BlockId(axis=0))
    at = b.binary("add", b.params[2], block)

    def less(limit: int):
        return b.emit(scalar.Compare(lhs=at, rhs=b.build.const(limit), kind="lt"))

    outer = b.branch(less(2))
    with b.inside_branch(outer.then):
        inner = b.branch(less(1))
        with b.inside_branch(inner.then):
            b.give(b.emit(tile.Unary(value=t, kind="neg")), t)
        with b.inside_branch(inner.orelse):
            b.give(t, b.binary("add", t, t))
        b.give(*reversed(inner.done()))
    with b.inside_branch(outer.orelse):
        b.give(t, t)
    one, two = outer.done()
    b.store(b.params[1], b.binary("sub", one, two), block, (0, 24))
    kernel = b.kernel()
    assert sum(isinstance(op, If) for op in walk(kernel.body)) == 2
    check(Case(kernel, (3, 1, 1), [x, y, n]))


def test_scalars_of_a_loop_are_carried_too() -> None:
    y = np.zeros((2,), np.int32)
    b = Body(input_of(y, i32, "y"), argument())
    zero, one = b.build.const(0), b.build.const(1)
    with b.loop(zero, b.params[1], one, zero, one) as loop:
        a, c = loop.carried
        loop.give(c, b.binary("add", a, c))
    for place, value in enumerate(loop.results):
        b.store(b.params[0], b.emit(tile.Splat(value=value, shape=())), place)
    check(Case(b.kernel(), (1, 1, 1), [y, 10]))


def test_a_broadcast_value_stays_narrow() -> None:
    b = Body(tensor("1"), tensor(name="y"))
    row = b.emit(tile.InsertAxis(value=b.load(b.params[0], (0, 8)), axis=1))
    wide = b.emit(tile.Broadcast(value=row, shape=(8, 512)))
    twice = b.binary("add", wide, wide)
    b.store(b.params[1], twice, (0, 8), (0, 512))
    adds = [
        op
        for op in walk(lowered(b.kernel()).body)
        if isinstance(op, registers.Binary) and op.result.type.dtype == f32
    ]
    assert all(op.result.type.extents[1] == 1 for op in adds) and adds

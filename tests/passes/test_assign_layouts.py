"""Every tile has one layout, what is combined has the same one, each change is explicit."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.strategies import cases
from tests.ir.kernels import Body, argument, tensor
from tests.passes.text import parsed
from warploom.base.dtypes import bf16, boolean, f32
from warploom.base.target import SM_90A
from warploom.ir.kernel import Kernel, walk
from warploom.ir.layout.layout import Layout
from warploom.ir.layout.natural import natural
from warploom.ir.op import Op, Value
from warploom.ir.ops import tile
from warploom.ir.ops.control import For, If
from warploom.ir.types import Tile
from warploom.ir.verifier import verify_kernel
from warploom.passes.assign_layouts import assign_layouts
from warploom.testing.fuzz.tile_case import Case
from warploom.testing.fuzz.tile_generator import case_of

ELEMENTWISE = (tile.Binary, tile.Unary, tile.Fma, tile.Compare, tile.Select, tile.Cast)


def assigned(kernel: Kernel) -> Kernel:
    assign_layouts(kernel, SM_90A)
    verify_kernel(kernel)
    for op in walk(kernel.body):
        agree(op)
    return kernel


def layout(value: Value) -> Layout:
    assert isinstance(value.type, Tile) and value.type.layout is not None
    return value.type.layout


def groups(op: Op) -> Iterator[tuple[Value, ...]]:
    """Values that an operation takes to have one layout."""
    if isinstance(op, ELEMENTWISE):
        yield (op.result, *op.operand_values())
    elif isinstance(op, tile.Gather):
        yield (op.result, *(v for v in op.operand_values() if isinstance(v.type, Tile)))
    elif isinstance(op, For):
        given = op.body.ops[-1].operand_values()
        yield from zip(op.inits, op.body.args[1:], given, op.results, strict=True)
    elif isinstance(op, If):
        for block in op.regions():
            yield from zip(block.ops[-1].operand_values(), op.results, strict=True)


def agree(op: Op) -> None:
    """What lowering relies on without looking."""
    for values in groups(op):
        tiles = [v for v in values if isinstance(v.type, Tile)]
        assert len({layout(v) for v in tiles}) <= 1, op
    if isinstance(op, tile.Broadcast):
        wanted = layout(op.result)
        assert isinstance(op.value.type, Tile)
        for axis, n in enumerate(op.value.type.shape):
            wanted = wanted.collapse(axis) if n != op.shape[axis] else wanted
        assert layout(op.value) == wanted
    elif isinstance(op, tile.InsertAxis):
        assert layout(op.value) == layout(op.result).drop(op.axis)
    elif isinstance(op, tile.DropAxis | tile.Reduce | tile.ArgReduce):
        assert layout(op.result) == layout(op.value).drop(op.axis)
    elif isinstance(op, tile.Permute):
        assert layout(op.result) == layout(op.value).permute(op.order)
    elif isinstance(op, tile.Convert):
        assert layout(op.result) != layout(op.value), "a conversion that converts nothing"


def converts(kernel: Kernel) -> int:
    return sum(isinstance(op, tile.Convert) for op in walk(kernel.body))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_random_kernels(case: Case) -> None:
    assigned(case.kernel)


@pytest.mark.parametrize("seed", range(100, 140))
def test_larger_random_kernels(seed: int) -> None:
    assigned(case_of(seed).kernel)


def softmax(shape: tuple[int, int] = (8, 576)) -> Body:
    b = Body(tensor(), tensor(name="y"))
    t = b.load(b.params[0], (0, shape[0]), (0, shape[1]))

    def wide(row: Value) -> Value:
        column = b.emit(tile.InsertAxis(value=row, axis=1))
        return b.emit(tile.Broadcast(value=column, shape=shape))

    top = b.emit(tile.Reduce(value=t, axis=1, kind="max"))
    e = b.emit(tile.Unary(value=b.binary("sub", t, wide(top)), kind="exp"))
    total = b.emit(tile.Reduce(value=e, axis=1, kind="add"))
    b.store(b.params[1], b.binary("div", e, wide(total)), (0, shape[0]), (0, shape[1]))
    return b


def test_a_softmax_converts_nothing() -> None:
    assert converts(assigned(softmax().kernel())) == 0


def test_a_matrix_vector_loop_converts_nothing() -> None:
    w, x, y, n = tensor(dtype=bf16, name="w"), tensor("1"), tensor("1", name="y"), argument()
    b = Body(w, x, y, n)
    acc = b.emit(tile.Splat(value=b.build.const(0.0, f32), shape=(16,)), "acc")
    with b.loop(b.build.const(0), n, b.build.const(256), acc) as loop:
        rows = b.emit(tile.Cast(value=b.load(w, (0, 16), (loop.index, 256)), dtype=f32))
        row = b.emit(tile.InsertAxis(value=b.load(x, (loop.index, 256)), axis=0))
        products = b.binary("mul", rows, b.emit(tile.Broadcast(value=row, shape=(16, 256))))
        part = b.emit(tile.Reduce(value=products, axis=1, kind="add"))
        loop.give(b.binary("add", loop.carried[0], part))
    b.store(y, loop.results[0], (0, 16))
    kernel = assigned(b.kernel())
    assert converts(kernel) == 0
    load = next(op for op in walk(kernel.body) if isinstance(op, tile.Load))
    assert layout(load.result).run(1) == 8, "rows are read in vectors of bf16"


def test_the_narrowest_element_decides_the_vector() -> None:
    for dtype, run in ((f32, 4), (bf16, 8), (boolean, 16)):
        b = Body(tensor(dtype=dtype), tensor(dtype=dtype, name="y"))
        b.store(b.params[1], b.load(b.params[0], (0, 32), (0, 512)), (0, 32), (0, 512))
        kernel = assigned(b.kernel())
        load = next(op for op in walk(kernel.body) if isinstance(op, tile.Load))
        assert layout(load.result) == natural((32, 512), run, 4)


def test_layouts_depend_on_shape_dtype_and_warps_only() -> None:
    texts = set()
    for cls in ({}, {"align": 4}, {"extent_pow2": 1}, {"wide": True}, {"aliased": True}):
        b = Body(tensor(**cls), tensor(name="y", **cls))
        t = b.load(b.params[0], (0, 8), (0, 80))
        b.store(b.params[1], t, (0, 8), (0, 80))
        assigned(b.kernel())
        texts.add(str(layout(t)))
    assert len(texts) == 1


def test_a_square_and_its_transpose() -> None:
    b = Body(tensor(), tensor(name="y"))
    t = b.load(b.params[0], (0, 32), (0, 32))
    both = b.binary("add", t, b.emit(tile.Permute(value=t, order=(1, 0))))
    b.store(b.params[1], both, (0, 32), (0, 32))
    assert converts(assigned(b.kernel())) == 1


def test_a_row_used_along_both_axes_is_converted_once() -> None:
    b = Body(tensor("1"), tensor(name="y"))
    row = b.load(b.params[0], (0, 64))
    spread = [
        b.emit(tile.Broadcast(value=b.emit(tile.InsertAxis(value=row, axis=a)), shape=(64, 64)))
        for a in (0, 1)
    ]
    b.store(b.params[1], b.binary("mul", *spread), (0, 64), (0, 64))
    assert converts(assigned(b.kernel())) == 1


def test_constants_and_ranges_bind_nobody() -> None:
    """A splat used with tiles of two layouts is made twice, not converted."""
    b = Body(tensor(), tensor(name="y"), tensor(name="z"))
    zero = b.emit(tile.Splat(value=b.build.const(0.0, f32), shape=(64,)))
    wide = b.load(b.params[0], (0, 64), (0, 64))
    for place, axis in enumerate((0, 1)):
        part = b.emit(tile.Reduce(value=wide, axis=axis, kind="max"))
        b.store(b.params[1], b.binary("max", part, zero), place, (0, 64))
    kernel = assigned(b.kernel())
    assert converts(kernel) == 0
    splats = [op for op in walk(kernel.body) if isinstance(op, tile.Splat)]
    assert len({layout(op.result) for op in splats}) == 2


def test_an_unused_constant_goes() -> None:
    made = parsed("%t: f32<8> = tile.splat(%p) [shape=(8,)]", "tile")
    assigned(made)
    assert not any(isinstance(op, tile.Splat) for op in walk(made.body))

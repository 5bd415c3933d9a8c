"""Folds: the order of a sum, padding, ties and NaN, dtypes."""

import numpy as np
import pytest

from tests.fuzz.test_lowering import check
from tests.ir.kernels import Body, lowered
from tests.passes.lowering.test_exchange import unary
from tests.passes.lowering.test_memory import input_of
from warploom.base.dtypes import DType, bf16, boolean, f16, f32, i32, i64
from warploom.ir.kernel import walk
from warploom.ir.layout.layout import LANES, Layout, Place
from warploom.ir.ops import global_memory, lanes, registers, sync, tile
from warploom.ir.types import Regs
from warploom.passes.lowering.reductions import identity, xor_masks
from warploom.sim.program import TensorArg, prepare
from warploom.testing.fuzz.tile_case import Case
from warploom.testing.fuzz.tiles import bits


def ordered_sum(row: np.ndarray, layout: Layout) -> np.float32:
    """The sum of a row by the contract: registers, lanes xor 1, 2, 4, …, warps ascending."""
    axis = len(layout.shape) - 1
    place = layout.coordinates(axis)
    real = place < layout.shape[axis]
    held = np.where(
        real, row[np.where(real, place, 0)], np.float32(-0.0)
    )  # [registers, warps, lanes]
    partial = held[0]
    for register in held[1:]:
        partial = partial + register
    numbers = np.arange(LANES)
    for mask in xor_masks(layout, axis):
        partial = partial + partial[:, numbers ^ mask]
    modes = layout.of(Place.WARP, axis)
    chosen: list[int] = []
    for number in range(int(np.prod([m.extent for m in modes], dtype=int))):
        warp, rest = 0, number
        for mode in modes:
            warp += rest % mode.extent * layout.divisor(mode)
            rest //= mode.extent
        chosen.append(warp)
    total = partial[chosen[0], 0]
    for warp in chosen[1:]:
        total = total + partial[warp, 0]
    return np.float32(total)


@pytest.mark.parametrize("warps", [1, 2, 3, 4])
@pytest.mark.parametrize("shape", [(1, 576), (4, 80), (3, 7), (700,), (2, 1), (40, 96)])
def test_sums_follow_the_contract(shape: tuple[int, ...], warps: int) -> None:
    rng = np.random.default_rng(7)
    x = rng.standard_normal(shape).astype(np.float32)
    axis = len(shape) - 1
    b, args = unary(tile.Reduce, x, shape[:-1], warps, f32, axis=axis, kind="add")
    kernel = lowered(b.kernel())
    load = next(op for op in walk(kernel.body) if isinstance(op, global_memory.Load))
    assert isinstance(load.result.type, Regs) and load.result.type.layout is not None
    layout = load.result.type.layout
    prepare(kernel).run((1, 1, 1), [TensorArg(a) for a in args])
    wanted = np.array([ordered_sum(row, layout) for row in x.reshape(-1, shape[-1])])
    np.testing.assert_array_equal(bits(args[1]), bits(wanted.reshape(shape[:-1])))


def test_addresses_do_not_change_a_sum() -> None:
    rng = np.random.default_rng(3)
    found = set()
    for offset, step in ((0, 1), (1, 1), (3, 1), (0, 2)):
        store = np.zeros((2, 600 * step + 8), np.float32)
        x = store[:, offset : offset + 576 * step : step]
        rng = np.random.default_rng(3)
        x[...] = rng.standard_normal(x.shape)
        b, args = unary(tile.Reduce, x, (2,), 4, f32, axis=1, kind="add")
        prepare(lowered(b.kernel())).run((1, 1, 1), [TensorArg(a) for a in args])
        found.add(args[1].tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("shape", [(7,), (3, 80), (1, 700), (5, 4, 33)])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("add", i32),
        ("add", i64),
        ("max", i64),
        ("min", i32),
        ("max", f16),
        ("min", bf16),
        ("and", boolean),
        ("or", boolean),
    ],
)
def test_every_axis_and_dtype(shape: tuple[int, ...], kind: str, dtype: DType) -> None:
    rng = np.random.default_rng(1)
    if dtype.is_int:
        # Extremes tell a wrong identity from a right one.
        x = rng.integers(*dtype.int_range, size=shape, dtype=dtype.numpy, endpoint=True)
        x[0] = dtype.int_range[0] if kind == "max" else dtype.int_range[1]
    else:
        x = rng.integers(-9, 9, size=shape).astype(dtype.numpy)
    for axis in range(len(shape)):
        rest = shape[:axis] + shape[axis + 1 :]
        b, args = unary(tile.Reduce, x, rest, 4, dtype, axis=axis, kind=kind)
        check(Case(b.kernel(), (1, 1, 1), args))


@pytest.mark.parametrize("kind", ["add", "max", "min"])
def test_signed_zeros_nan_and_infinities(kind: str) -> None:
    rows = np.zeros((6, 7), np.float32)
    rows[0] = -0.0
    rows[1, 3] = -0.0
    rows[2] = -np.inf if kind != "min" else np.inf
    rows[3, 6] = np.nan
    rows[4] = [1, np.nan, np.inf, -np.inf, 2, 3, 4]
    rows[5] = np.float32(1e-45)
    b, args = unary(tile.Reduce, rows, (6,), 3, f32, axis=1, kind=kind)
    check(Case(b.kernel(), (1, 1, 1), args))


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("dtype", [f32, bf16, i32])
@pytest.mark.parametrize("width", [1, 7, 80, 700])
def test_arguments_of_extremes(kind: str, dtype: DType, width: int) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(-2, 3, size=(8, width)).astype(dtype.numpy)  # many ties
    worst = dtype.int_range if dtype.is_int else (-np.inf, np.inf)
    x[1] = worst[0] if kind == "max" else worst[1]  # as bad as what pads hold
    if dtype.is_float:
        x[2, width // 2] = np.nan
        x[3, width // 3 :] = np.nan
        x[4] = np.nan
        x[5, ::2] = -0.0
    y = np.full((8,), -1, np.int32)
    b = Body(input_of(x, dtype), input_of(y, i32, "y"))
    t = b.load(b.params[0], (0, 8), (0, width))
    b.store(b.params[1], b.emit(tile.ArgReduce(value=t, axis=1, kind=kind)), (0, 8))
    check(Case(b.kernel(), (1, 1, 1), [x, y]))


def test_a_broadcast_axis_counts_each_element() -> None:
    x = np.arange(4, dtype=np.int32)
    y = np.zeros((4,), np.int32)
    b = Body(input_of(x, i32), input_of(y, i32, "y"))
    column = b.emit(tile.InsertAxis(value=b.load(b.params[0], (0, 4)), axis=1))
    wide = b.emit(tile.Broadcast(value=column, shape=(4, 100)))
    b.store(b.params[1], b.emit(tile.Reduce(value=wide, axis=1, kind="add")), (0, 4))
    check(Case(b.kernel(), (1, 1, 1), [x, y]))


def test_a_row_in_one_warp_needs_no_barrier() -> None:
    b, _ = unary(tile.Reduce, np.zeros((4, 576), np.float32), (4,), 4, f32, axis=1, kind="add")
    ops = list(walk(lowered(b.kernel()).body))
    assert not any(isinstance(op, sync.Barrier) for op in ops)
    assert [op.mask for op in ops if isinstance(op, lanes.ShuffleXor)] == [1, 2, 4, 8, 16]
    assert sum(isinstance(op, registers.Fold) for op in ops) == 1


def test_pads_are_replaced_only_where_there_are_any() -> None:
    for width, selects in ((512, 0), (128, 0), (576, 1), (80, 1), (7, 1)):
        b, _ = unary(
            tile.Reduce, np.zeros((4, width), np.float32), (4,), 4, f32, axis=1, kind="add"
        )
        ops = walk(lowered(b.kernel()).body)
        found = sum(isinstance(op, registers.Select) for op in ops)
        assert found == selects, width


@pytest.mark.parametrize(
    ("kind", "dtype", "element"),
    [
        ("add", i32, 0),
        ("max", i32, -(2**31)),
        ("min", i64, 2**63 - 1),
        ("max", f32, -np.inf),
        ("min", bf16, np.inf),
        ("and", boolean, True),
        ("or", boolean, False),
    ],
)
def test_identities(kind: str, dtype: DType, element: float) -> None:
    assert identity(kind, dtype) == element


def test_the_identity_of_a_float_sum_is_minus_zero() -> None:
    found = identity("add", f32)
    assert found == 0 and np.signbit(found)

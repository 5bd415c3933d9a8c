"""Windows, gathers, views: widths and predicates as text, results on the simulator."""

import re
from typing import Any

import numpy as np
import pytest

from tests.fuzz.test_lowering import check
from tests.ir.kernels import Body, argument, lowered, tensor
from warploom.base.dtypes import DType, bf16, boolean, f16, f32, i32, i64
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Value
from warploom.ir.ops import global_memory, scalar, tile
from warploom.ir.ops import tensor as tensors
from warploom.ir.ops.grid import WaitForPrevious
from warploom.ir.printer import print_kernel
from warploom.testing.fuzz import tile_reference as reference
from warploom.testing.fuzz.tile_case import Case, class_of


def copy_kernel(
    rows: int,
    columns: int,
    start: tuple[Value | int, Value | int] = (0, 0),
    dtype: DType = f32,
    warps: int = 4,
    params: tuple[Value, ...] = (),
    **cls: Any,
) -> Kernel:
    """y[window] = x[window] of tensors of one class."""
    strides = cls.pop("strides", "n1")
    x, y = tensor(strides, dtype, **cls), tensor(strides, dtype, "y", **cls)
    b = Body(x, y, *params, warps=warps)
    window = ((start[0], rows), (start[1], columns))
    b.store(y, b.load(x, *window), *window)
    return b.kernel()


def widths(kernel: Kernel) -> set[int]:
    ops = [op for op in walk(lowered(kernel).body)]
    return {op.vec for op in ops if isinstance(op, global_memory.Load | global_memory.Store)}


@pytest.mark.parametrize(
    ("dtype", "cls", "width"),
    [
        (f32, {}, 4),
        (bf16, {}, 8),
        (boolean, {}, 16),
        (i64, {}, 2),
        (f32, {"align": 8}, 2),
        (f32, {"align": 4}, 1),
        (bf16, {"align": 2}, 1),
        (bf16, {"align": 4}, 2),
        (f32, {"extent_pow2": 2}, 2),
        (f32, {"extent_pow2": 1}, 1),
        (f32, {"strides": "nn"}, 1),
        (f32, {"strides": "1n"}, 1),  # rows are not what neighbouring registers hold
        (f32, {"strides": "11"}, 1),  # the other axis would shift the vectors
        (f32, {"strides": "01"}, 4),
        (f32, {"wide": True}, 4),
    ],
)
def test_the_width_is_what_class_and_layout_allow(
    dtype: DType, cls: dict[str, Any], width: int
) -> None:
    assert widths(copy_kernel(8, 256, dtype=dtype, **cls)) == {width}


@pytest.mark.parametrize(("columns", "width"), [(128, 4), (126, 2), (7, 1), (1, 1)])
def test_the_width_divides_the_tile(columns: int, width: int) -> None:
    assert widths(copy_kernel(8, columns)) == {width}


@pytest.mark.parametrize(("factor", "width"), [(64, 4), (4, 4), (6, 2), (3, 1)])
def test_the_width_divides_the_start(factor: int, width: int) -> None:
    b = Body(tensor(), tensor(name="y"))
    at = b.binary("mul", b.emit(scalar.BlockId(axis=0)), b.build.const(factor))
    b.store(b.params[1], b.load(b.params[0], (0, 8), (at, 128)), (0, 8), (at, 128))
    assert widths(b.kernel()) == {width}


def test_the_layout_does_not_depend_on_the_class() -> None:
    """Results must not change with the address."""
    found = {
        re.search(r"f32\[\w+\] (\(8x128;[^)]*\))", print_kernel(lowered(kernel)))[1]  # type: ignore[index]
        for kernel in (
            copy_kernel(8, 128),
            copy_kernel(8, 128, align=4),
            copy_kernel(8, 128, strides="nn"),
            copy_kernel(8, 128, extent_pow2=1, wide=True, aliased=True),
        )
    }
    assert len(found) == 1


def loads(kernel: Kernel) -> list[global_memory.Load]:
    return [op for op in walk(lowered(kernel).body) if isinstance(op, global_memory.Load)]


def test_read_only_loads() -> None:
    (load,) = loads(copy_kernel(4, 64))
    assert load.read_only
    (load,) = loads(copy_kernel(4, 64, aliased=True))
    assert not load.read_only
    b = Body(tensor())
    b.store(b.params[0], b.load(b.params[0], (0, 4), (0, 64)), (0, 4), (0, 64))
    (load,) = loads(b.kernel())
    assert not load.read_only


def test_loads_beside_the_launch_before() -> None:
    """The launch before may write what is read behind the wait for it: such a load is none of
    memory that nobody writes (and the CUDA compiler would move it in front of the wait)."""
    kernel = copy_kernel(4, 64)
    kernel.body.ops.insert(0, WaitForPrevious(loc=kernel.loc))
    (load,) = loads(kernel)
    assert not load.read_only


def run(body: Body, *args: Any, grid: tuple[int, int, int] = (1, 1, 1)) -> None:
    """The kernel on the simulator, held against the tile IR itself."""
    check(Case(body.kernel(), grid, list(args)))


def input_of(array: np.ndarray, dtype: DType, name: str = "x") -> Value:
    cls = class_of(array)
    return tensor(cls.strides, dtype, name, align=cls.align, extent_pow2=cls.extent_pow2)


def views(rows: int, columns: int, dtype: DType) -> dict[str, np.ndarray]:
    """Arrays of one shape in several stridings."""
    count = (rows + 1) * (columns + 9) * 2
    store = np.arange(count).astype(dtype.numpy)
    wide = store.reshape(rows + 1, 2 * (columns + 9))
    return {
        "contiguous": store[: rows * columns].reshape(rows, columns),
        "pitch": wide[:rows, :columns],
        "offset": wide[:rows, 1 : columns + 1],
        "transposed": store[: rows * columns].reshape(columns, rows).T,
        "step": wide[:rows, : 2 * columns : 2],
        "backwards": wide[:rows, :columns][::-1, ::-1],
        "spread": np.broadcast_to(store[:columns], (rows, columns)),
    }


@pytest.mark.parametrize("kind", list(views(2, 2, f32)))
@pytest.mark.parametrize(
    ("dtype", "shape"), [(f32, (17, 80)), (bf16, (17, 80)), (boolean, (3, 7)), (i64, (1, 1))]
)
def test_windows_over_the_edges(dtype: DType, kind: str, shape: tuple[int, int]) -> None:
    array = views(*shape, dtype)[kind]
    out = np.zeros((9, 8, 24), dtype.numpy)
    x, y = input_of(array, dtype), input_of(out, dtype, "y")
    n, m = argument(), argument(name="m")
    b = Body(x, y, n, m, warps=2)
    other = b.build.const(1 if dtype.is_float or dtype.is_int else True, dtype)
    places = [(0, 0), (n, m), (n, 0), (0, m), (15, 72), (-2, -4), (-9, 0), (0, -30), (100, 0)]
    for number, (row, column) in enumerate(places):
        starts = tuple(v if isinstance(v, Value) else b.build.const(v) for v in (row, column))
        t = b.emit(tile.Load(tensor=x, starts=starts, sizes=(8, 24), other=other))
        b.store(y, t, number, (0, 8), (0, 24))
    run(b, array, out, 2, -5)


@pytest.mark.parametrize("kind", list(views(2, 2, f32))[:-1])
def test_stores_are_clipped(kind: str) -> None:
    array = views(9, 24, f32)[kind]
    x, n = input_of(array, f32), argument()
    b = Body(x, n, warps=3)
    for row, column in ((-3, -6), (n, 20), (8, n)):
        value = b.emit(
            tile.Splat(value=b.build.const(float(row if row is not n else 7), f32), shape=(4, 8))
        )
        b.store(x, value, (row, 4), (column, 8))
    run(b, array, 5)


def test_empty_tensors() -> None:
    x, y = np.zeros((0, 8), np.float32), np.zeros((8, 0), np.float32)
    b = Body(input_of(x, f32), input_of(y, f32, "y"))
    t = b.load(b.params[0], (0, 4), (0, 8))
    b.store(b.params[1], t, (0, 4), (0, 8))
    b.store(b.params[0], t, (0, 4), (0, 8))
    run(b, x, y)


def test_plain_indices_drop_their_axis() -> None:
    x = np.arange(2 * 3 * 40, dtype=np.float32).reshape(2, 3, 40)
    y = np.zeros((6, 40), np.float32)
    n = argument()
    b = Body(input_of(x, f32), input_of(y, f32, "y"), n)
    for row, (i, j) in enumerate(((0, 2), (n, n), (2, 0), (-1, 0), (0, n))):
        b.store(b.params[1], b.load(b.params[0], i, j, (0, 40)), row, (0, 40))
    whole = b.load(b.params[0], 1, n, 3)
    b.store(b.params[1], whole, 5, 7)
    run(b, x, y, 1)


def test_views_of_rows() -> None:
    x = np.arange(20 * 16, dtype=np.float32).reshape(20, 16)
    y = np.zeros((9, 8, 16), np.float32)
    sizes = np.zeros(9, np.int32)
    n, m = argument(), argument(name="m")
    b = Body(input_of(x, f32), input_of(y, f32, "y"), input_of(sizes, i32, "z"), n, m)
    const = b.build.const

    def rows(x: Value, lo: Value | int, hi: Value | int, axis: int = 0) -> Value:
        lo, hi = (v if isinstance(v, Value) else const(v) for v in (lo, hi))
        return b.emit(tensors.Rows(tensor=x, lo=lo, hi=hi, axis=axis))

    whole = b.params[0]
    made = [
        rows(whole, 3, 9),
        rows(whole, n, m),
        rows(whole, m, n),  # empty
        rows(whole, 15, 100),
        rows(whole, -2, 5),  # nothing starts before the tensor
        rows(whole, 3, 9, axis=1),
        rows(rows(whole, 4, 12), 2, 100),  # ends where the outer one ends
        rows(rows(whole, n, m), 1, 3, axis=1),
        rows(rows(whole, m, n), 1, 2),
    ]
    for number, view in enumerate(made):
        b.store(b.params[1], b.load(view, (0, 8), (0, 16)), number, (0, 8), (0, 16))
        extent = b.emit(scalar.Dim(tensor=view, axis=0))
        b.store(b.params[2], b.emit(tile.Splat(value=extent, shape=())), number)
    expected = [a.copy() for a in (y, sizes)]
    run(b, x, y, sizes, 5, 11)
    kernel = b.block
    assert kernel.ops
    reference.run(Kernel("k", b.params, b.block), (1, 1, 1), [x, *expected, 5, 11])
    assert expected[1].tolist() == [6, 6, 0, 5, 0, 20, 6, 6, 0]
    assert expected[0][6, :7].any(axis=1).tolist() == [True] * 6 + [False]


def test_stores_through_a_view_end_inside_it() -> None:
    x = np.zeros((20, 16), np.float32)
    n = argument()
    b = Body(input_of(x, f32), n)
    view = b.emit(tensors.Rows(tensor=b.params[0], lo=n, hi=b.build.const(9)))
    b.store(view, b.emit(tile.Splat(value=b.build.const(1.0, f32), shape=(8, 16))), (0, 8), (2, 16))
    run(b, x, 3)


@pytest.mark.parametrize("index", [i32, i64])
@pytest.mark.parametrize("kind", ["contiguous", "transposed", "step", "spread"])
def test_gathers(kind: str, index: DType) -> None:
    x = views(17, 24, f16)[kind]
    at = np.array([[0, 3, 16, 17, -1], [23, 24, 5, -(2**31), 2**31 - 1]], index.numpy)
    y = np.zeros((5, 5, 5), np.float16)
    n = argument()
    b = Body(input_of(x, f16), input_of(at, index, "z"), input_of(y, f16, "y"), n)
    rows, columns = b.load(b.params[1], 0, (0, 5)), b.load(b.params[1], 1, (0, 5))
    shape = (5, 5)
    row = b.emit(tile.Broadcast(value=b.emit(tile.InsertAxis(value=rows, axis=1)), shape=shape))
    column = b.emit(
        tile.Broadcast(value=b.emit(tile.InsertAxis(value=columns, axis=0)), shape=shape)
    )
    mask = b.emit(tile.Compare(lhs=row, rhs=column, kind="lt"))
    other = b.build.const(-1.0, f16)
    cases: list[tuple[tuple[Value, Value], Value | None, Value | None]] = [
        ((row, column), None, None),
        ((column, row), mask, other),
        ((row, n), None, other),
        ((b.build.const(-1), row), None, other),
        ((n, column), mask, None),
    ]
    for number, (indices, masked, filler) in enumerate(cases):
        made = tile.Gather(tensor=b.params[0], indices=indices, mask=masked, other=filler)
        b.store(b.params[2], b.emit(made), number, (0, 5), (0, 5))
    run(b, x, at, y, 2)


def test_a_gather_compares_in_the_wide_dtype_of_a_wide_tensor() -> None:
    x, at = tensor("1", wide=True), tensor("1", i32, "z")
    b = Body(x, at, tensor("1", name="y"))
    made = tile.Gather(tensor=x, indices=(b.load(at, (0, 64)),))
    b.store(b.params[2], b.emit(made), (0, 64))
    text = print_kernel(lowered(b.kernel()))
    assert re.search(r"i64\[\d\] .*registers.cast\(%t\) \[dtype=i64\]", text)
    assert "[dtype=i32]" not in text.replace("=0, dtype=i32]", ""), "no extent is cut to 32 bits"


def test_scalar_loads() -> None:
    x = np.arange(12, dtype=np.int64).reshape(3, 4)
    y = np.zeros(6, np.int64)
    n = argument()
    b = Body(input_of(x, i64), input_of(y, i64, "y"), n)
    for number, (i, j) in enumerate(((0, 0), (2, 3), (n, n), (3, 0), (0, -1), (-1, n))):
        at = tuple(v if isinstance(v, Value) else b.build.const(v) for v in (i, j))
        other = b.build.const(77, i64) if number % 2 else None
        made = b.emit(scalar.Load(tensor=b.params[0], indices=at, other=other))
        b.store(b.params[1], b.emit(tile.Splat(value=made, shape=())), number)
    run(b, x, y, 1)


def test_large_starts_do_not_wrap() -> None:
    x = np.arange(64, dtype=np.float32)
    y = np.ones((6, 8), np.float32)
    n, w = argument(), argument(i64, "w")
    b = Body(input_of(x, f32), input_of(y, f32, "y"), n, w)
    for number, start in enumerate((n, w, 2**31 - 1, 2**31 - 4, -(2**31))):
        b.store(b.params[1], b.load(b.params[0], (start, 8)), number, (0, 8))
    run(b, x, y, -(2**31) + 3, 2**40)

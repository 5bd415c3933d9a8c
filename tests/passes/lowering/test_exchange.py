"""What goes through shared memory: sub-tiles, joins, conversions, warps of one row."""

import numpy as np
import pytest

from tests.fuzz.test_lowering import check
from tests.ir.kernels import Body, lowered
from tests.passes.lowering.test_memory import input_of
from warploom.base.dtypes import DType, bf16, boolean, f32, i32
from warploom.ir.kernel import walk
from warploom.ir.ops import lanes, shared_memory, sync, tile
from warploom.ir.printer import print_kernel
from warploom.testing.fuzz.tile_case import Case


def numbers(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)) % 97 % 8 - 3).reshape(shape).astype(dtype.numpy)


def unary(made: type, x: np.ndarray, shape: tuple[int, ...], warps: int, dtype: DType, **fields):
    """y = op(x) for one operation of a whole tile."""
    y = np.zeros(shape, dtype.numpy)
    b = Body(input_of(x, dtype), input_of(y, dtype, "y"), warps=warps)
    t = b.load(b.params[0], *((0, n) for n in x.shape))
    values = {"values": (t, t)} if made is tile.Cat else {"value": t}
    b.store(b.params[1], b.emit(made(**values, **fields)), *((0, n) for n in shape))
    return b, [x, y]


@pytest.mark.parametrize(("warps", "dtype"), [(1, bf16), (3, f32), (4, bf16), (4, boolean)])
@pytest.mark.parametrize(
    ("shape", "starts", "sizes"),
    [
        ((80,), (7,), (33,)),
        ((1,), (0,), (1,)),
        ((16, 96), (3, 8), (7, 64)),
        ((16, 96), (0, 1), (16, 95)),
        ((64, 6), (1, 0), (63, 6)),  # six registers in a row, no vector of four
        ((128, 12), (0, 4), (128, 6)),
        ((3, 5, 24), (1, 2, 8), (2, 3, 16)),
    ],
)
def test_sub_tiles(
    warps: int,
    dtype: DType,
    shape: tuple[int, ...],
    starts: tuple[int, ...],
    sizes: tuple[int, ...],
) -> None:
    b, args = unary(
        tile.Slice, numbers(shape, dtype), sizes, warps, dtype, starts=starts, sizes=sizes
    )
    check(Case(b.kernel(), (1, 1, 1), args))


@pytest.mark.parametrize("warps", [1, 3])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((4, 24), 0), ((4, 24), 1), ((2, 3, 6), 1)])
def test_joins(warps: int, shape: tuple[int, ...], axis: int) -> None:
    whole = tuple(n * 2 if a == axis else n for a, n in enumerate(shape))
    b, args = unary(tile.Cat, numbers(shape, bf16), whole, warps, bf16, axis=axis)
    check(Case(b.kernel(), (1, 1, 1), args))


def test_what_a_square_and_its_transpose_make_needs_a_conversion() -> None:
    x = numbers((32, 32), f32)
    y = np.zeros((32, 32), np.float32)
    b = Body(input_of(x, f32), input_of(y, f32, "y"))
    t = b.load(b.params[0], (0, 32), (0, 32))
    both = b.binary("add", t, b.emit(tile.Permute(value=t, order=(1, 0))))
    b.store(b.params[1], both, (0, 32), (0, 32))
    kernel = b.kernel()
    check(Case(kernel, (1, 1, 1), [x, y]))
    accesses = [op for op in walk(kernel.body) if isinstance(op, shared_memory.Store)]
    assert len(accesses) == 1
    assert kernel.shared_bytes == 32 * 32 * 4
    assert "sync.barrier" in print_kernel(kernel)


@pytest.mark.parametrize(("warps", "kind"), [(2, "add"), (3, "max"), (4, "add"), (8, "add")])
@pytest.mark.parametrize("shape", [(1, 700), (1, 96), (2, 640), (700,), (3, 257)])
def test_rows_over_several_warps(warps: int, shape: tuple[int, ...], kind: str) -> None:
    axis = len(shape) - 1
    b, args = unary(tile.Reduce, numbers(shape, f32), shape[:-1], warps, f32, axis=axis, kind=kind)
    check(Case(b.kernel(), (1, 1, 1), args))


def test_a_warp_writes_its_part_once() -> None:
    """Layouts whose replicating digits are equal but for their place: both must be zero."""
    x = numbers((8, 2), i32)
    y = np.zeros((8,), np.int32)
    b = Body(input_of(x, i32), input_of(y, i32, "y"), warps=4)
    t = b.load(b.params[0], (0, 8), (0, 2))
    row = b.emit(tile.Reduce(value=t, axis=1, kind="add"))
    b.build.add(tile.Print(values=(row,), text="row"))
    b.store(b.params[1], row, (0, 8))
    kernel = lowered(b.kernel())  # verifies that each element is stored by one thread
    shuffles = [op for op in walk(kernel.body) if isinstance(op, lanes.ShuffleXor)]
    assert len(shuffles) <= 1


def test_two_exchanges_share_bytes_and_are_kept_apart() -> None:
    x = numbers((700,), f32)
    y = np.zeros((2,), np.float32)
    b = Body(input_of(x, f32), input_of(y, f32, "y"), warps=4)
    t = b.load(b.params[0], (0, 700))
    for place, kind in enumerate(("add", "max")):
        b.store(b.params[1], b.emit(tile.Reduce(value=t, axis=0, kind=kind)), place)
    kernel = b.kernel()
    check(Case(kernel, (1, 1, 1), [x, y]))
    buffers = [op for op in walk(kernel.body) if isinstance(op, shared_memory.BufferOp)]
    assert len(buffers) == 2 and len({op.at for op in buffers}) == 1
    barriers = [op.why for op in walk(kernel.body) if isinstance(op, sync.Barrier)]
    assert len(barriers) == 3, "write | read | write | read"

"""Boxes of the copy engine: places under a swizzle, edges, order, and what it refuses."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.codegen.asynchronous import Asynchronous
from warploom.base.dtypes import DType, bf16, f16, f32, i32
from warploom.base.errors import CheckError
from warploom.ir.kernel import TensorMap
from warploom.ir.layout.shared import SharedLayout
from warploom.ir.op import Value
from warploom.ir.ops import mbarrier, shared_memory, sync, tma
from warploom.sim.arguments import TensorArg
from warploom.sim.boxes import CHUNK, Box, alignment, places_of
from warploom.sim.program import RunResult, prepare


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("rows", [1, 8, 24])
@pytest.mark.parametrize("base", [0, 3072])
def test_chunks_lie_where_the_layout_says(swizzle: int, rows: int, base: int):
    columns = (swizzle or 64) // 2
    layout = SharedLayout((rows, columns), 2, swizzle)
    places = places_of(base, rows * columns * 2, swizzle)
    chunks = np.arange(8192)[places] if isinstance(places, slice) else places
    expected = [
        (base + layout.byte_of(row, column)) // CHUNK
        for row in range(rows)
        for column in range(0, columns, 8)
    ]
    assert chunks.tolist() == expected


@pytest.mark.parametrize("start", [(0, 0), (-3, 2), (5, -4), (6, 9), (100, 0), (-8, -8), (0, 12)])
def test_a_box_is_zero_outside_the_tensor(start: tuple[int, int]):
    x = np.arange(1, 12 * 16 + 1, dtype=np.int32).reshape(12, 16)
    box = Box(TensorMap(0, (1, 0), (8, 8)), TensorArg(x).memory, start)
    padded = np.zeros((300, 300), np.int32)
    padded[100:112, 100:116] = x
    column, row = start
    expected = padded[100 + row : 108 + row, 100 + column : 108 + column]
    assert (box.gather(box.memory) == expected).all()


def test_axes_of_length_one_need_no_stride():
    x = np.zeros((1, 8, 16), np.float16)[:, ::1]
    made = TensorMap(0, (2, 1, 0), (16, 8, 1))
    assert alignment(made, TensorArg(x, (3, 16, 1)).memory) == ""
    assert "stride along axis 1" in alignment(made, TensorArg(x, (128, 12, 1)).memory)


def copy_kernel(
    dtype: DType,
    *,
    box: tuple[int, int] = (64, 16),
    swizzle: int = 0,
    reduce: str = "",
    load_at: tuple[int, int] = (0, 0),
    store_at: tuple[int, int] = (0, 0),
    shift: int = 0,
    wait: bool = True,
    store: bool = True,
    multicast: int = 1,
) -> Any:
    """A box of x to shared memory and on to y."""
    m = Asynchronous()
    x, y = m.tensor("x", dtype, "n1"), m.tensor("y", dtype, "n1")
    size = box[0] * box[1] * dtype.bytes
    tile = m.buffer("tile", dtype, size // dtype.bytes + 512, align=1024)
    done = m.barriers("done", 1, 1)
    from_x, to_y = m.map(x, box, swizzle), m.map(y, box, swizzle)
    m.maps = [TensorMap(made.param, (1, 0), box, swizzle) for made in m.maps]
    with m.one_thread():
        m.build.add(mbarrier.Expect(barrier=m.address(done), bytes=size))
        m.build.add(
            tma.LoadBox(
                tensor=x,
                coordinates=coordinates(m, load_at),
                address=m.address(tile, shift),
                barrier=m.address(done),
                multicast=None if multicast == 1 else m.build.const(multicast),
                map=from_x,
                bytes=size,
            )
        )
    if wait:
        m.build.add(mbarrier.Wait(barrier=m.address(done), parity=m.build.const(0)))
    if store:
        with m.one_thread():
            m.build.add(
                tma.StoreBox(
                    tensor=y,
                    coordinates=coordinates(m, store_at),
                    address=m.address(tile, shift),
                    map=to_y,
                    bytes=size,
                    reduce=reduce,
                )
            )
            m.build.add(tma.Commit())
            m.build.add(tma.Wait())
    m.written.append(1)
    return m.kernel()


def coordinates(m: Asynchronous, at: tuple[int, int]) -> tuple[Value, ...]:
    return tuple(m.build.const(n) for n in at)


def run(kernel: Any, *arrays: np.ndarray, **options: Any) -> RunResult:
    return prepare(kernel).run((1,), list(arrays), **options)


def random(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.random.default_rng(0).integers(-50, 50, shape).astype(dtype)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_box_there_and_back(swizzle: int, seed: int):
    box = ((swizzle or 64) // 2, 16)
    x = random((40, 72), np.float16)
    y = np.zeros_like(x)
    result = run(copy_kernel(f16, box=box, swizzle=swizzle), x, y, checked=True, seed=seed)
    assert not result.findings
    expected = np.zeros_like(x)
    expected[:16, : box[0]] = x[:16, : box[0]]
    assert (y == expected).all()


def test_a_store_writes_nothing_outside_the_tensor():
    x, y = random((16, 64), np.float32), np.zeros((12, 60), np.float32)
    run(copy_kernel(f32, store_at=(8, 4)), x, y)
    assert (y[4:, 8:] == x[:8, :52]).all()
    assert not y[:4].any()
    assert not y[:, :8].any()


def test_a_box_outside_the_tensor_overwrites_with_zeros():
    x, y = random((4, 64), np.float32), np.ones((16, 64), np.float32)
    run(copy_kernel(f32), x, y)
    assert (y[:4] == x).all()
    assert not y[4:].any()


@pytest.mark.parametrize(
    ("reduce", "dtype", "f"),
    [
        ("add", f32, np.add),
        ("add", i32, np.add),
        ("min", i32, np.minimum),
        ("max", i32, np.maximum),
        ("and", i32, np.bitwise_and),
        ("or", i32, np.bitwise_or),
        ("xor", i32, np.bitwise_xor),
        ("add", bf16, np.add),
        ("max", f16, np.maximum),
    ],
)
def test_a_store_can_combine(reduce: str, dtype: DType, f: Any):
    x = random((16, 64), dtype.numpy)
    y = random((16, 64), dtype.numpy)[::-1].copy()
    expected = f(y, x)
    run(copy_kernel(dtype, reduce=reduce), x, y)
    assert (y == expected).all()


def test_a_copy_arrives_when_it_is_waited_for():
    x, y = random((16, 64), np.float32), np.zeros((16, 64), np.float32)
    result = run(copy_kernel(f32, wait=False), x, y, checked=True)
    assert [f.code for f in result.findings] == ["R101", "M013"]


def test_a_block_waits_for_its_copies():
    x = random((16, 64), np.float32)
    with pytest.raises(CheckError) as caught:
        run(copy_kernel(f32, wait=False, store=False), x, np.zeros_like(x))
    assert caught.value.code == "M013"


def test_a_multicast_to_a_block_that_is_not_there():
    x, y = random((16, 64), np.float32), np.zeros((16, 64), np.float32)
    run(copy_kernel(f32, multicast=1), x, y)
    assert (y == x).all()
    with pytest.raises(CheckError, match="block 1 of a cluster of 1 is reached"):
        run(copy_kernel(f32, multicast=2), x, y)


def test_places_that_the_engine_cannot_take():
    x = random((16, 64), np.float32)
    for shift, code in ((16, "M003"), (64, "M003"), (1 << 20, "M001")):
        with pytest.raises(CheckError) as caught:
            run(copy_kernel(f32, shift=shift), x, np.zeros_like(x))
        assert caught.value.code == code


def test_tensors_that_the_engine_cannot_take():
    y = np.zeros((16, 64), np.float32)
    odd = random((16, 65), np.float32)[:, :64]
    late = random((1025,), np.float32)[1:].reshape(16, 64)
    for x, word in ((odd, "stride"), (late, "first element")):
        with pytest.raises(CheckError, match=word) as caught:
            run(copy_kernel(f32), x, y)
        assert caught.value.code == "M003"
    with pytest.raises(CheckError, match="rows of a box"):
        run(copy_kernel(f32, box=(9, 16)), y, y.copy())


def test_a_tensor_that_must_not_be_written():
    x, y = random((16, 64), np.float32), np.zeros((16, 64), np.float32)
    y.flags.writeable = False
    with pytest.raises(CheckError) as caught:
        run(copy_kernel(f32), x, y)
    assert caught.value.code == "M005"


# ---- groups of stores --------------------------------------------------------------------------


def groups_kernel(pending: int, reads: bool, rounds: int = 3) -> Any:
    """The same shared tile written out `rounds` times, with other numbers each time."""
    m = Asynchronous()
    m.warps = 1
    y = m.tensor("y", i32, "n1")
    tile = m.buffer("tile", i32, 1024, align=128)
    number = m.map(y, (32, 1))
    offset = m.offsets(1)
    for k in range(rounds):
        with m.one_thread():
            m.build.add(tma.Wait(pending=pending, reads=reads))
        m.build.add(sync.WarpSync())
        value = m.splat(k + 1, i32)
        m.build.add(shared_memory.Store(buffer=tile, value=value, offset=offset))
        with m.one_thread():
            m.build.add(
                tma.StoreBox(
                    tensor=y,
                    coordinates=(m.build.const(0), m.build.const(k)),
                    address=m.address(tile),
                    map=number,
                    bytes=128,
                )
            )
            m.build.add(tma.Commit())
    with m.one_thread():
        m.build.add(tma.Wait())
    m.written.append(0)
    return m.kernel()


@pytest.mark.parametrize("reads", [False, True])
def test_a_source_is_read_when_its_group_is_waited_for(reads: bool):
    for pending, expected in ((0, [1, 2, 3]), (1, [2, 3, 3]), (2, [3, 3, 3])):
        y = np.zeros((3, 32), np.int32)
        run(groups_kernel(pending, reads), y)
        assert y[:, 0].tolist() == expected
        assert (y == y[:, :1]).all()


def test_writing_a_source_too_early_is_found():
    y = np.zeros((3, 32), np.int32)
    codes = {f.code for f in run(groups_kernel(1, True), y, checked=True).findings}
    assert codes == {"R101", "M016"}


def test_a_fence_is_asked_for():
    y = np.zeros((3, 32), np.int32)
    found = run(groups_kernel(0, True), y, checked=True).findings
    assert [f.code for f in found] == ["M016"]
    assert "no fence" in found[0].render()


def test_nan_and_bits_survive():
    x = np.full((16, 64), np.nan, ml_dtypes.bfloat16)
    x[3, 5] = -0.0
    y = np.zeros_like(x)
    run(copy_kernel(bf16, swizzle=128), x, y)
    assert (y.view(np.uint16) == x.view(np.uint16)).all()

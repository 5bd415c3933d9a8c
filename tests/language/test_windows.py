"""Windows of shared tiles of one axis: loaded, stored, of a peer, and what is refused."""

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CompileError
from warploom.testing.golden import Golden

PARTS, N = 5, 24


@wl.kernel
def turned_round(x: wl.Tensor, y: wl.Tensor, shift: wl.i32, N: wl.const, PARTS: wl.const):
    """y is x, its parts moved on by `shift`, in one slot of two."""
    whole = wl.shared((PARTS * N,), x.dtype, slots=2, swizzle=0)
    for i in wl.range(PARTS):
        part = wl.load(x[wl.ds(i * N, N)])
        whole[1][wl.ds((i + shift) % PARTS * N, N)].store(part)
    last = whole[1][wl.ds((PARTS - 1) * N, N)].load()
    wl.store(y[0, wl.ds(0, PARTS * N)], whole[1].load())
    wl.store(y[1, wl.ds(0, N)], last)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
@pytest.mark.parametrize("shift", [0, 1, 4])
def test_parts(device, dtype, shift: int) -> None:
    x = np.arange(PARTS * N).astype(dtype)
    y = device.put(np.zeros((2, PARTS * N), dtype))
    turned_round[1](device.put(x), y, shift, N=N, PARTS=PARTS)
    wanted = np.roll(x, shift * N)
    assert np.array_equal(device.get(y)[0], wanted)
    assert np.array_equal(device.get(y)[1, :N], wanted[-N:])


@wl.kernel
def gathered(x: wl.Tensor, y: wl.Tensor, N: wl.const):
    """Every block sends its part to its place in the tile of each."""
    SIZE = wl.cluster_size()
    whole, came = wl.shared((4 * N,), x.dtype, swizzle=0), wl.barrier()
    here = wl.program_id(0)
    part = wl.load(x[wl.ds(here * N, N)])
    with wl.one_thread():
        came.expect(SIZE * N * x.dtype.bytes)
    for peer in wl.range(SIZE):
        wl.store_async(whole.on(peer)[wl.ds(here * N, N)], part, came)
    came.wait(0)
    wl.store(y[here, wl.ds(0, 4 * N)], whole.load())


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_parts_of_peers(device, dtype) -> None:
    x = np.random.default_rng(0).integers(-9, 9, 4 * 8).astype(dtype)
    y = device.put(np.zeros((4, 32), dtype))
    gathered.launch(4, cluster=(4,))(device.put(x), y, N=8)
    assert np.array_equal(device.get(y), np.broadcast_to(x, (4, 32)))


@wl.kernel
def off_the_chunks(x: wl.Tensor, at: wl.i32):
    tile = wl.shared((64,), wl.f32, swizzle=0)
    tile[wl.ds(at, 4)].store(wl.load(x[wl.ds(0, 4)]))


@wl.kernel
def outside(x: wl.Tensor, at: wl.i32):
    tile = wl.shared((64,), wl.f32, swizzle=0)
    tile[wl.ds(60, 8)].store(wl.load(x[wl.ds(0, 8)]))


@wl.kernel
def too_many_axes(x: wl.Tensor, at: wl.i32):
    tile = wl.shared((4, 4, 4), wl.f32, swizzle=0)
    tile[wl.ds(at, 1), :, :].store(wl.load(x[wl.ds(0, 4)])[None, None, :])


def test_three_axes_have_no_windows() -> None:
    with pytest.raises(CompileError, match="3 indices for an f32 tile"):
        too_many_axes[1](np.zeros(8, np.float32), 1)


@pytest.mark.parametrize("kernel", [off_the_chunks, outside], ids=lambda kernel: kernel.name)
def test_refused(kernel, golden: Golden) -> None:
    with pytest.raises(CompileError) as refused:
        kernel[1](np.zeros(8, np.float32), 1)
    golden(str(refused.value))

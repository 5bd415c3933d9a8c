"""Launches on a real GPU: memory, streams, graphs, other libraries' arrays, extremes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import LaunchError
from warploom.runtime import driver

pytestmark = pytest.mark.gpu


@wl.kernel
def scale(x: wl.Tensor, y: wl.Tensor, factor: wl.f32, N: wl.const = 64):
    start = wl.program_id(0) * N
    wl.store(y[wl.ds(start, N)], wl.load(x[wl.ds(start, N)]) * factor)


@wl.kernel
def copy2d(x: wl.Tensor, y: wl.Tensor, BM: wl.const = 4, BN: wl.const = 32):
    m = wl.program_id(0) * BM
    for n in wl.range(0, x.shape[1], BN):
        wl.store(y[wl.ds(m, BM), wl.ds(n, BN)], wl.load(x[wl.ds(m, BM), wl.ds(n, BN)]))


@wl.kernel
def first_blocks(x: wl.Tensor, n: wl.i32):
    if wl.program_id(0) < n:
        wl.store(x[wl.ds(wl.program_id(0), 1)], wl.full((1,), 1.0, wl.f32))


@wl.kernel
def ends(x: wl.Tensor, out: wl.Tensor, N: wl.const = 16):
    row = wl.program_id(0)
    wl.store(out[row, wl.ds(0, N)], wl.load(x[row, wl.ds(0, N)]))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16, np.int64, np.bool_])
def test_arrays_go_there_and_back(dtype: Any) -> None:
    host = np.arange(24).reshape(4, 6) % 2 if dtype is np.bool_ else np.arange(24).reshape(4, 6)
    host = host.astype(dtype)
    array = wl.to_device(host)
    assert np.array_equal(wl.to_numpy(array), host)
    assert np.array_equal(wl.to_numpy(array[1:, ::2].T), host[1:, ::2].T)


def test_a_launch_a_bound_launch_and_a_graph() -> None:
    x, y, z = (wl.to_device(np.full(1000, 2.0, np.float32)) for _ in range(3))
    scale[16](x, y, 1.5)
    assert (wl.to_numpy(y) == 3.0).all()
    bound = scale[16].bound(y, z, 2.0)
    bound()
    assert (wl.to_numpy(z) == 6.0).all()

    def step() -> None:
        scale[16](x, y, 10.0)
        bound()

    graph = wl.graph(step)
    x.copy_from(np.full(1000, 3.0, np.float32))
    graph.replay()
    assert (wl.to_numpy(z) == 60.0).all()
    for _ in range(100):
        graph.replay()
    assert (wl.to_numpy(z) == 60.0).all()


@pytest.mark.case("C19")
def test_views_of_every_kind_after_an_aligned_one() -> None:
    torch = pytest.importorskip("torch", reason="strided views on a GPU are torch's")
    for dtype in (torch.float16, torch.int8, torch.float32):
        base = (torch.arange(64 * 80, device="cuda") % 100).to(dtype)
        aligned = base[: 64 * 64].view(64, 64)
        views = {
            "aligned": aligned,
            "offset": base[1 : 1 + 64 * 64].view(64, 64),
            "gapped": base.as_strided((64, 64), (65, 1)),
            "transposed": aligned[:60].t(),
            "columns": aligned[:63, 3:],
            "expanded": aligned[:1].expand(9, 64),
            "one row": aligned[5:6],
        }
        for name, view in views.items():
            out = torch.empty(view.shape, dtype=dtype, device="cuda")
            copy2d[-(-view.shape[0] // 4)](view, out)
            assert torch.equal(out, view), (name, dtype)


def test_a_launch_follows_torchs_stream() -> None:
    torch = pytest.importorskip("torch", reason="this is about torch's streams")
    x = torch.ones(1 << 20, device="cuda")
    y = torch.empty_like(x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        x.fill_(4.0)
        scale.launch(1 << 12)(x, y, 0.5, N=256)
    side.synchronize()
    assert bool((y == 2.0).all())


def test_torch_captures_launches() -> None:
    torch = pytest.importorskip("torch", reason="this is about torch's graphs")
    x = torch.ones(1000, device="cuda")
    y, z = torch.empty_like(x), torch.empty_like(x)

    def step() -> None:
        scale[16](x, y, 3.0)
        z.copy_(y + 1)

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    x.fill_(5.0)
    graph.replay()
    torch.cuda.synchronize()
    assert bool((z == 16.0).all())


def test_dlpack_with_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch reads the capsule")
    host = np.arange(24).reshape(4, 6).astype(ml_dtypes.bfloat16)
    array = wl.to_device(host)
    tensor = torch.from_dlpack(array)
    assert tensor.dtype == torch.bfloat16
    assert tensor.data_ptr() == array.address
    assert tensor.float().cpu().numpy().tolist() == host.astype(np.float32).tolist()
    tensor.fill_(7)
    assert (wl.to_numpy(array).astype(np.float32) == 7).all()


def test_cupy_arrays() -> None:
    cupy = pytest.importorskip("cupy", reason="this is about CuPy's arrays")
    x = cupy.arange(100, dtype=cupy.float32)
    y = cupy.empty_like(x)
    scale[2](x, y, 2.0)
    driver.synchronize(0)
    assert bool((y == 2 * x).all())


@pytest.mark.case("C22")
def test_extreme_grids() -> None:
    x = wl.to_device(np.zeros(8, np.float32))
    for grid in (0, (1, 0, 1), [4], (1 << 24,), (2**31 - 1,), (1, 65535, 3)):
        first_blocks[grid](x, 4)
        first_blocks[grid](x, 4)
    assert wl.to_numpy(x).tolist() == [1.0] * 4 + [0.0] * 4
    for grid in ((2**31,), (1, 65536, 1), (1, 1, 70000)):
        with pytest.raises(LaunchError, match="H015"):
            first_blocks[grid](x, 4)


@pytest.mark.case("C21")
@pytest.mark.parametrize("rows", [2, 3])
def test_offsets_beyond_32_bits(rows: int) -> None:
    torch = pytest.importorskip("torch", reason="strided views on a GPU are torch's")
    stride = 2**31 + 16
    memory = torch.zeros((rows - 1) * stride + 64, dtype=torch.uint8, device="cuda")
    view = memory.as_strided((rows, 16), (stride, 1))
    for row in range(rows):
        memory[row * stride : row * stride + 16] = torch.arange(16, device="cuda") + 16 * row
    out = torch.zeros((rows, 16), dtype=torch.uint8, device="cuda")
    ends[rows](view, out)
    assert out.flatten().tolist() == list(range(16 * rows))


def test_places_that_do_not_go_together() -> None:
    x = wl.to_device(np.zeros(8, np.float32))
    with pytest.raises(LaunchError, match="H014"):
        scale[1](x, np.zeros(8, np.float32), 1.0)


def test_the_facts_of_the_device() -> None:
    facts = driver.facts(0)
    assert facts.multiprocessors > 0
    assert facts.capability >= (8, 0)
    assert driver.driver_version() >= (12, 0)
    assert wl.has_gpu()


def test_a_launch_costs_little() -> None:
    x, y = wl.to_device(np.zeros(64, np.float32)), wl.device_empty(64, np.float32)
    call = scale[1].call(x, y, 2.0)
    assert call.bench(rounds=5, repeats=100) < 100e-6


@wl.kernel
def handed_on(x: wl.Tensor, y: wl.Tensor, N: wl.const = 256):
    """y = x + 1, where another block of the launch before wrote x."""
    blocks = wl.num_programs(0)
    here = wl.program_id(0)
    wl.launch_dependents()
    wl.wait_for_previous()
    other = blocks - 1 - here
    wl.store(y[wl.ds(here * N, N)], wl.load(x[wl.ds(other * N, N)]) + 1)


def test_launches_that_begin_early_see_what_the_one_before_wrote() -> None:
    blocks, times = 1024, 200
    host = np.arange(blocks * 256, dtype=np.int32)
    x, y = wl.to_device(host), wl.to_device(np.zeros_like(host))
    early = handed_on.launch(blocks, pdl=True)

    def chain() -> None:
        for _ in range(times // 2):
            early(x, y)
            early(y, x)

    graph = wl.graph(chain)  # runs once
    assert np.array_equal(wl.to_numpy(x), host + times)
    for _ in range(3):
        graph.replay()
    assert np.array_equal(wl.to_numpy(x), host + 4 * times)
    chain()
    assert np.array_equal(wl.to_numpy(x), host + 5 * times)

"""The host half of GPU launches on a stand-in driver, and what is said where there is no driver."""

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CompileError, LaunchError
from warploom.runtime import driver, memory
from warploom.runtime.dlpack import CUDA, describe

from .fake_cuda import FakeCuda, installed

I32, U64, F32 = ctypes.c_int32, ctypes.c_uint64, ctypes.c_float
VECTOR = (U64, I32)


@wl.kernel
def scale(x: wl.Tensor, y: wl.Tensor, factor: wl.f32, N: wl.const = 64):
    start = wl.program_id(0) * N
    wl.store(y[wl.ds(start, N)], wl.load(x[wl.ds(start, N)]) * factor)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeCuda]:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cubins are compiled by NVRTC")
    monkeypatch.setenv("WARPLOOM_CACHE", str(tmp_path))
    with installed(monkeypatch, FakeCuda()) as fake:
        fake.words = [*VECTOR, *VECTOR, F32]
        yield fake
        scale._variants.clear()


def test_arrays_go_there_and_back(cuda: FakeCuda) -> None:
    for dtype in (np.float32, ml_dtypes.bfloat16, np.int8, np.bool_):
        host = np.arange(24).reshape(4, 6).astype(dtype)
        array = wl.to_device(host)
        assert (array.shape, array.dtype, array.device) == ((4, 6), host.dtype, 0)
        assert np.array_equal(wl.to_numpy(array), host)
        assert np.array_equal(wl.to_numpy(array[1:, ::2].T), host[1:, ::2].T)
        assert np.array_equal(wl.to_numpy(array[-1]), host[-1])
        assert np.array_equal(wl.to_numpy(array[None, 2, ::-1]), host[None, 2, ::-1])
        assert np.array_equal(wl.to_numpy(array.reshape(3, -1)), host.reshape(3, -1))
        assert wl.to_numpy(array[2, 3]).shape == ()
    assert wl.to_numpy(wl.to_device(np.zeros((0, 5), np.float16))).shape == (0, 5)
    assert wl.to_numpy(wl.to_device(np.float32(2.5))) == 2.5


def test_a_strided_host_array_is_copied_in_order(cuda: FakeCuda) -> None:
    host = np.arange(24, dtype=np.int32).reshape(4, 6)[::2, ::-1]
    assert np.array_equal(wl.to_numpy(wl.to_device(host)), host)


def test_memory_goes_with_its_last_view(cuda: FakeCuda) -> None:
    array = wl.device_empty((4, 4), wl.bf16)
    view = array[1]
    del array
    gc.collect()
    assert len(cuda.memory) == 1
    del view
    gc.collect()
    assert cuda.memory == {}


def test_what_an_array_refuses(cuda: FakeCuda) -> None:
    array = wl.device_empty((4, 6), np.float32)
    for index in (np.array([1]), [1], True, "a", 1.5):
        with pytest.raises(TypeError, match="indexed by integers and slices"):
            array[index]
    with pytest.raises(IndexError):
        array[4]
    with pytest.raises(ValueError, match="without a copy"):
        array.T.reshape(24)
    with pytest.raises(ValueError, match="cannot reshape"):
        array.reshape(5, 5)
    with pytest.raises(LaunchError, match="H028"):
        array.T.copy_from(np.zeros((6, 4), np.float32))
    array.copy_from(np.ones((4, 6), np.float32))
    assert wl.to_numpy(array).sum() == 24


def test_values_that_do_not_fit_an_array(cuda: FakeCuda, golden) -> None:
    array = wl.device_empty((4, 6), np.float32)
    with pytest.raises(LaunchError) as caught:
        array.copy_from(np.zeros((4, 6), np.float64))
    golden(str(caught.value))


def test_device_words(cuda: FakeCuda) -> None:
    assert wl.to_device(np.zeros(3), "gpu:1").device == 1
    assert wl.device_empty(3, np.float32, "gpu").device == 0
    with pytest.raises(LaunchError, match="no GPU 2"):
        wl.device_empty(3, np.float32, 2)
    with pytest.raises(LaunchError, match="H021"):
        wl.to_device(np.zeros(3), "sim")


def test_dlpack_of_a_device_array(cuda: FakeCuda) -> None:
    array = wl.to_device(np.zeros((4, 6), ml_dtypes.bfloat16))[:, 1:3]
    assert array.__dlpack_device__() == (CUDA, 0)
    facts = describe(array.__dlpack__(stream=-1))
    assert (facts.address, facts.shape, facts.strides) == (array.address, (4, 2), (6, 1))
    assert facts.dtype == wl.bf16


def test_a_launch_passes_words_grid_and_stream(cuda: FakeCuda) -> None:
    x, y = wl.to_device(np.zeros(100, np.float32)), wl.device_empty(100, np.float32)
    scale[2](x, y, 1.5)
    (one,) = cuda.launches
    assert (one.grid, one.block, one.shared, one.stream) == ((2, 1, 1), (128, 1, 1), 0, 0)
    assert one.words(*cuda.words) == [x.address, 100, y.address, 100, 1.5]
    scale.launch((3, 2), stream=77)(x, y, 2.5)
    assert (cuda.launches[1].grid, cuda.launches[1].stream) == ((3, 2, 1), 77)
    assert cuda.launches[1].words(*cuda.words)[-1] == 2.5
    scale[0](x, y, 1.0)
    assert len(cuda.launches) == 2


def test_a_cubin_is_loaded_once_and_found_on_disk_by_the_next_process(cuda: FakeCuda) -> None:
    x, y = wl.to_device(np.zeros(100, np.float32)), wl.device_empty(100, np.float32)
    before = wl.stats()
    for _ in range(3):
        scale[2](x, y, 1.5)
    scale[2](x[:64], y[:64], 1.5)
    assert [name for name, _ in cuda.log].count("load") == 2, "64 is divisible by 16, 100 by 4"
    middle = wl.stats()
    assert middle.compiles == before.compiles + 2
    scale._variants.clear()
    scale[2](x, y, 1.5)
    after = wl.stats()
    assert (after.compiles, after.cache_hits) == (middle.compiles, middle.cache_hits + 1)


def test_the_context_is_that_of_the_arguments_and_is_put_back(cuda: FakeCuda) -> None:
    x, y = wl.to_device(np.zeros(8, np.float32), 1), wl.device_empty(8, np.float32, 1)
    cuda.current = 100
    scale[1](x, y, 1.0)
    assert cuda.launches[0].context == 101
    assert cuda.current == 100


def test_streams_of_other_libraries(cuda: FakeCuda) -> None:
    x, y = wl.to_device(np.zeros(8, np.float32)), wl.device_empty(8, np.float32)
    streams = [
        SimpleNamespace(cuda_stream=3),
        SimpleNamespace(ptr=4),
        SimpleNamespace(__cuda_stream__=lambda: (0, 5)),
        6,
    ]
    for stream in streams:
        scale.launch(1, stream=stream)(x, y, 1.0)
    assert [one.stream for one in cuda.launches] == [3, 4, 5, 6]


def test_a_bound_launch_packs_once(cuda: FakeCuda) -> None:
    x, y = wl.to_device(np.zeros(100, np.float32)), wl.device_empty(100, np.float32)
    bound = scale[2].bound(x, y, 1.5)
    address = x.address
    del x
    gc.collect()
    bound()
    bound()
    assert [one.words(*cuda.words)[0] for one in cuda.launches] == [address] * 2


def test_a_graph_is_captured_after_it_was_recorded(cuda: FakeCuda) -> None:
    x, y = wl.to_device(np.zeros(100, np.float32)), wl.device_empty(100, np.float32)

    def step() -> None:
        scale[2](x, y, 1.5)
        scale[3](y, x, 2.5)

    graph = wl.graph(step)
    assert (graph.place, graph.launches) == ("gpu:0", 2)
    assert len(cuda.launches) == 2
    names = [name for name, _ in cuda.log]
    assert max(i for i, n in enumerate(names) if n == "function") < names.index("begin")
    graph.replay()
    graph.replay(stream=9)
    assert [one.grid[0] for one in cuda.launches] == [2, 3] * 3
    assert {"graph on 0", "graph on 9"} <= {name for name, _ in cuda.log}
    del graph
    gc.collect()
    assert cuda.log[-1][0] == "destroy executable"


def test_a_capture_that_fails_is_ended(cuda: FakeCuda) -> None:
    x, y = wl.to_device(np.zeros(100, np.float32)), wl.device_empty(100, np.float32)

    def step() -> None:
        scale[2](x, y, 1.5)
        if wl.runtime.graph.recording() is not None:
            cuda.fail["launch"] = 900

    with pytest.raises(LaunchError, match="H023"):
        wl.graph(step)
    assert cuda.capturing is None
    cuda.fail.clear()
    scale[2](x, y, 1.5)
    assert len(cuda.launches) == 2


def test_a_graph_stays_on_one_device(cuda: FakeCuda) -> None:
    pairs = [[wl.device_empty(8, np.float32, device) for _ in range(2)] for device in (0, 1)]
    with pytest.raises(LaunchError, match="gpu:0 and gpu:1"):
        wl.graph(lambda: [scale[1](x, y, 1.0) for x, y in pairs])


def test_seconds_of_a_launch(cuda: FakeCuda) -> None:
    x, y = wl.to_device(np.zeros(100, np.float32)), wl.device_empty(100, np.float32)
    assert scale.launch(2).call(x, y, 1.5).bench(rounds=3, repeats=4) == 0.002 / 4
    assert len(cuda.launches) == 13


@pytest.mark.parametrize("status", [1, 700])
def test_a_launch_that_the_driver_refuses(cuda: FakeCuda, status: int, golden) -> None:
    x, y = wl.to_device(np.zeros(100, np.float32)), wl.device_empty(100, np.float32)
    cuda.fail["launch"] = status
    with pytest.raises(LaunchError) as caught:
        scale[2](x, y, 1.5)
    golden(str(caught.value))


def test_a_driver_older_than_the_compiler(cuda: FakeCuda, golden) -> None:
    x, y = wl.to_device(np.zeros(100, np.float32)), wl.device_empty(100, np.float32)
    cuda.fail["load"] = 222
    with pytest.raises(CompileError) as caught:
        scale[2](x, y, 1.5)
    golden(str(caught.value))


def test_an_unsupported_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with installed(monkeypatch, FakeCuda(capability=(7, 5))):
        x = wl.device_empty(8, np.float32)
        with pytest.raises(LaunchError, match=r"compute capability 7\.5"):
            scale[1](x, x, 1.0)


def test_checked_runs_take_host_arrays(cuda: FakeCuda) -> None:
    x = wl.device_empty(8, np.float32)
    with pytest.raises(LaunchError, match="checked runs take place on the simulator"):
        scale[1].check(x, x, 1.0)


def test_synchronising_without_a_gpu_does_nothing() -> None:
    if not driver.used_devices():
        wl.synchronize()


def test_a_fork_is_told(cuda: FakeCuda) -> None:
    driver._state.pid = os.getpid() + 1
    with pytest.raises(LaunchError, match="forked"):
        driver.api()


@pytest.mark.skipif(driver.is_likely(), reason="this machine has a GPU")
def test_without_a_driver(golden) -> None:
    pytest.importorskip("cuda.bindings.driver", reason="cuda.bindings raises what is told here")
    with pytest.raises(LaunchError) as caught:
        memory.to_device(np.zeros(3))
    golden(str(caught.value))
    assert not wl.has_gpu()


def test_without_cuda_bindings(golden) -> None:
    script = (
        "import sys; sys.modules['cuda'] = None\n"
        "import numpy, warploom as wl\n"
        "try:\n    wl.to_device(numpy.zeros(3))\n"
        "except wl.LaunchError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    golden(done.stdout)


@wl.kernel
def dependent(x: wl.Tensor, y: wl.Tensor, factor: wl.f32, N: wl.const = 64):
    wl.wait_for_previous()
    wl.store(y[wl.ds(0, N)], wl.load(x[wl.ds(0, N)]) * factor)


def test_a_launch_that_may_overlap_says_so(cuda: FakeCuda) -> None:
    x, y = wl.to_device(np.zeros(64, np.float32)), wl.to_device(np.zeros(64, np.float32))
    dependent[1](x, y, 2.0)
    dependent.launch(1, pdl=True)(x, y, 2.0)
    dependent.launch(1, pdl=True).bound(x, y, 2.0)()
    assert [one.ways for one in cuda.launches] == [[], ["overlap"], ["overlap"]]
    assert len({(one.grid, one.block, one.shared) for one in cuda.launches}) == 1


@wl.kernel
def gathered(flags: wl.Tensor):
    wl.launch_dependents()
    wl.wait_for_previous()
    wl.signal(flags[0], add=1)
    wl.wait(flags[0], at_least=wl.num_programs(0))


def test_a_cooperative_launch_has_room_for_all(cuda: FakeCuda, golden) -> None:
    flags = wl.to_device(np.zeros(1, np.int32))
    cuda.words = list(VECTOR)
    gathered.launch(264, cooperative=True)(flags)
    gathered.launch(264, cooperative=True, pdl=True).bound(flags)()
    assert [one.ways for one in cuda.launches] == [["together"], ["overlap", "together"]]
    with pytest.raises(LaunchError) as refused:
        gathered.launch(265, cooperative=True)(flags)
    golden(str(refused.value))


@wl.kernel
def told_around(flags: wl.Tensor):
    """Each block of a cluster tells the next one."""
    told = wl.barrier()
    told.on((wl.cluster_rank() + 1) % wl.cluster_size()).arrive()
    told.wait(0)
    wl.signal(flags[0], add=1)


@pytest.mark.parametrize(("size", "allowed"), [((8,), 0), ((3, 3), 1), ((16, 1, 1), 1)])
def test_clusters_of_more_than_eight_blocks_are_asked_for(cuda: FakeCuda, size, allowed) -> None:
    cuda.words = list(VECTOR)
    grid = tuple(2 * n for n in size)
    told_around.launch(grid, cluster=size)(wl.to_device(np.zeros(1, np.int32)))
    assert sum(name == "large clusters = 1" for name, *_ in cuda.log) == allowed
    shape = (*size, 1, 1)[:3]
    assert ("cluster", shape, 128) in cuda.log
    assert cuda.launches[0].grid == (*grid, 1, 1)[:3]
    told_around._variants.clear()


def test_a_gpu_without_room_for_a_cluster(cuda: FakeCuda, golden) -> None:
    cuda.words, cuda.clusters = list(VECTOR), 0
    with pytest.raises(LaunchError) as refused:
        told_around.launch(16, cluster=16)(wl.to_device(np.zeros(1, np.int32)))
    golden(str(refused.value))
    told_around._variants.clear()


@wl.kernel
def gathered_by_clusters(flags: wl.Tensor):
    told = wl.barrier()
    told.on((wl.cluster_rank() + 1) % wl.cluster_size()).arrive()
    told.wait(0)
    wl.signal(flags[0], add=1)
    wl.wait(flags[0], at_least=wl.num_programs(0))


def test_a_cooperative_launch_has_room_for_all_clusters(cuda: FakeCuda, golden) -> None:
    """15 clusters of 4 at a time; a launch may be early, cooperative and in clusters at once."""
    flags = wl.to_device(np.zeros(1, np.int32))
    cuda.words = list(VECTOR)
    gathered_by_clusters.launch(60, cluster=4, cooperative=True)(flags)
    with pytest.raises(LaunchError) as refused:
        gathered_by_clusters.launch(64, cluster=4, cooperative=True)(flags)
    golden(str(refused.value))
    gathered_by_clusters._variants.clear()


def test_a_graph_holds_launches_of_clusters(cuda: FakeCuda) -> None:
    flags = wl.to_device(np.zeros(1, np.int32))
    cuda.words = list(VECTOR)
    graph = wl.graph(lambda: told_around.launch(32, cluster=16)(flags))
    before = len(cuda.launches)
    graph.replay()
    assert [one.grid for one in cuda.launches[before:]] == [(32, 1, 1)]
    told_around._variants.clear()

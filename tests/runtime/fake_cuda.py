"""A stand-in for cuda.bindings.driver: memory is the host's, launches are noted and not run.

It lets the host half of a GPU launch be tested without a GPU: contexts, words, streams, captures.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warploom.runtime import driver


class Handle(int):
    """A CUDA handle: converts to its number."""


class Launched(SimpleNamespace):
    """One noted launch."""

    def words(self, *kinds: type) -> list[Any]:
        """The arguments, read through the pointers as the driver would at the launch."""
        return [
            ctypes.cast(p, ctypes.POINTER(k)).contents.value
            for p, k in zip(self.pointers, kinds, strict=True)
        ]


class FakeCuda:
    """The functions of cuda.bindings.driver that the runtime calls; `launches` is what happened."""

    CUdevice_attribute = SimpleNamespace(
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR="major",
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR="minor",
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT="sms",
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN="shared",
    )
    CUfunction_attribute = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic shared",
        CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED="large clusters",
    )
    CUlaunchAttributeID = SimpleNamespace(
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION="overlap",
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE="together",
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION="cluster",
    )
    CUlaunchConfig = SimpleNamespace
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL="thread local")
    CUfunction = Handle

    def __init__(self, count: int = 2, capability: tuple[int, int] = (9, 0)) -> None:
        self.count = count
        self.numbers = {
            "major": capability[0],
            "minor": capability[1],
            "sms": 132,
            "shared": 232448,
        }
        self.clusters = 15
        self.current = 0
        self.memory: dict[int, np.ndarray] = {}
        self.log: list[tuple[Any, ...]] = []
        self.launches: list[Launched] = []
        self.graphs: dict[int, list[Launched]] = {}
        self.capturing: list[Launched] | None = None
        self.words: list[type] = []
        self.fail: dict[str, int] = {}

    def _done(self, name: str, *results: Any) -> tuple[Any, ...]:
        self.log.append((name, self.current))
        return (self.fail.get(name, 0), *results)

    def CUlaunchAttribute(self) -> Any:
        return SimpleNamespace(value=SimpleNamespace(clusterDim=SimpleNamespace()))

    def cuDeviceGetCount(self) -> tuple[Any, ...]:
        return self._done("count", self.count)

    def cuDeviceGet(self, index: int) -> tuple[Any, ...]:
        return self._done("device", Handle(index))

    def cuDeviceGetName(self, size: int, device: int) -> tuple[Any, ...]:
        return self._done("name", b"NVIDIA Fake\0\0")

    def cuDeviceTotalMem(self, device: int) -> tuple[Any, ...]:
        return self._done("memory", 10**9)

    def cuDeviceGetAttribute(self, kind: str, device: int) -> tuple[Any, ...]:
        return self._done("attribute", self.numbers[kind])

    def cuDriverGetVersion(self) -> tuple[Any, ...]:
        return self._done("version", 13000)

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[Any, ...]:
        return self._done("retain", Handle(100 + device))

    def cuCtxGetCurrent(self) -> tuple[Any, ...]:
        return 0, Handle(self.current)

    def cuCtxSetCurrent(self, context: int) -> tuple[Any, ...]:
        self.current = int(context)
        return (0,)

    def cuCtxSynchronize(self) -> tuple[Any, ...]:
        return self._done("synchronise")

    def cuMemAlloc(self, size: int) -> tuple[Any, ...]:
        raw = np.zeros(size + 256, np.uint8)
        address = raw.ctypes.data + -raw.ctypes.data % 256
        self.memory[address] = raw
        return self._done("alloc", Handle(address))

    def cuMemFree(self, address: int) -> tuple[Any, ...]:
        # Arrays of an earlier stand-in may be collected while this one is in place.
        self.memory.pop(int(address), None)
        return self._done("free")

    def cuMemcpyHtoD(self, target: int, source: int, size: int) -> tuple[Any, ...]:
        ctypes.memmove(target, source, size)
        return self._done("in")

    def cuMemcpyDtoH(self, target: int, source: int, size: int) -> tuple[Any, ...]:
        ctypes.memmove(target, source, size)
        return self._done("out")

    def cuLibraryLoadData(self, code: bytes, *_: Any) -> tuple[Any, ...]:
        assert code[:4] == b"\x7fELF"
        return self._done("load", Handle(7))

    def cuLibraryGetKernel(self, library: int, name: bytes) -> tuple[Any, ...]:
        return self._done("kernel", Handle(8))

    def cuKernelGetFunction(self, kernel: int) -> tuple[Any, ...]:
        return self._done("function", Handle(9))

    def cuKernelSetAttribute(self, kind: str, value: int, kernel: int, device: int) -> Any:
        return self._done(f"{kind} = {value}")

    def cuLaunchKernel(self, function: int, *given: Any) -> tuple[Any, ...]:
        *sizes, shared, stream, words, extra = given
        assert extra == 0
        count = len(self.words)
        pointers = list((ctypes.c_uint64 * count).from_address(words)) if count else []
        kept = [
            ctypes.create_string_buffer(ctypes.string_at(p, ctypes.sizeof(k)))
            for p, k in zip(pointers, self.words, strict=True)
        ]
        one = Launched(
            grid=tuple(sizes[:3]),
            block=tuple(sizes[3:]),
            shared=shared,
            stream=int(stream),
            context=self.current,
            kept=kept,
            pointers=[ctypes.addressof(k) for k in kept],
            ways=[],
        )
        (self.launches if self.capturing is None else self.capturing).append(one)
        return self._done("launch")

    def cuLaunchKernelEx(self, config: Any, function: int, words: int, extra: int) -> Any:
        assert config.numAttrs == len(config.attrs)
        grid = (config.gridDimX, config.gridDimY, config.gridDimZ)
        block = (config.blockDimX, config.blockDimY, config.blockDimZ)
        sizes = (*grid, *block, config.sharedMemBytes)
        done = self.cuLaunchKernel(function, *sizes, config.hStream, words, extra)
        made = self.launches if self.capturing is None else self.capturing
        made[-1].ways = [attribute.id for attribute in config.attrs]
        return done

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, *given: Any) -> tuple[Any, ...]:
        return self._done("occupancy", 2)

    def cuOccupancyMaxActiveClusters(self, function: int, config: Any) -> tuple[Any, ...]:
        (attribute,) = config.attrs
        shape = attribute.value.clusterDim
        self.log.append(("cluster", (shape.x, shape.y, shape.z), config.blockDimX))
        return self._done("clusters", self.clusters)

    def cuStreamCreate(self, flags: int) -> tuple[Any, ...]:
        return self._done("stream", Handle(55))

    def cuStreamDestroy(self, stream: int) -> tuple[Any, ...]:
        return self._done("destroy stream")

    def cuStreamBeginCapture(self, stream: int, mode: str) -> tuple[Any, ...]:
        self.capturing = []
        return self._done("begin")

    def cuStreamEndCapture(self, stream: int) -> tuple[Any, ...]:
        held, self.capturing = self.capturing, None
        assert held is not None
        handle = Handle(1000 + len(self.graphs))
        self.graphs[handle] = held
        return self._done("end", handle)

    def cuGraphInstantiate(self, graph: int, flags: int) -> tuple[Any, ...]:
        return self._done("instantiate", graph)

    def cuGraphDestroy(self, graph: int) -> tuple[Any, ...]:
        return self._done("destroy graph")

    def cuGraphExecDestroy(self, graph: int) -> tuple[Any, ...]:
        return self._done("destroy executable")

    def cuGraphLaunch(self, graph: int, stream: int) -> tuple[Any, ...]:
        self.launches += self.graphs[graph]
        return self._done(f"graph on {int(stream)}")

    def cuEventCreate(self, flags: int) -> tuple[Any, ...]:
        return self._done("event", Handle(66))

    def cuEventRecord(self, event: int, stream: int) -> tuple[Any, ...]:
        return self._done("record")

    def cuEventSynchronize(self, event: int) -> tuple[Any, ...]:
        return self._done("wait")

    def cuEventElapsedTime(self, start: int, end: int) -> tuple[Any, ...]:
        return self._done("elapsed", 2.0)

    def cuEventDestroy(self, event: int) -> tuple[Any, ...]:
        return self._done("destroy event")

    def cuGetErrorName(self, status: int) -> tuple[Any, ...]:
        return 0, b"CUDA_ERROR_FAKE"

    def cuGetErrorString(self, status: int) -> tuple[Any, ...]:
        return 0, b"a made-up error"


@contextmanager
def installed(monkeypatch: pytest.MonkeyPatch, cuda: FakeCuda) -> Iterator[FakeCuda]:
    """Let the runtime use a stand-in for a while."""
    state = driver._State()
    state.api, state.pid = cuda, driver.os.getpid()
    monkeypatch.setattr(driver, "_state", state)
    driver.facts.cache_clear()
    yield cuda
    driver.facts.cache_clear()

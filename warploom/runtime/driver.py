"""The CUDA driver: devices, contexts, memory, tensor maps. Code and launches: `modules`; streams
and graphs: `streams`.

With `nvrtc.py` the only module that imports `cuda`, and that at the first call: importing Warploom
and compiling never touch the driver. Knows no kernel.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from warploom.base.errors import Error, error

# The stream that work of arrays without a library of their own goes to: CUDA's legacy stream.
DEFAULT_STREAM = 0


class _State:
    """What is set up once a process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.pid = 0
        self.api: Any = None
        self.contexts: dict[int, Any] = {}


_state = _State()


def api() -> Any:
    """The module cuda.bindings.driver, initialised; raises H020 where no GPU can be used."""
    if _state.api is not None and _state.pid == os.getpid():
        return _state.api
    with _state.lock:
        if _state.api is not None and _state.pid != os.getpid():
            raise error(
                "H020",
                "this process was forked from one that already used the GPU",
                notes=("CUDA does not survive a fork",),
                hint='start workers with multiprocessing.set_start_method("spawn")',
            )
        if _state.api is None:
            _state.api = _initialise()
            _state.pid = os.getpid()
    return _state.api


def _initialise() -> Any:
    try:
        import cuda.bindings.driver as driver
    except ImportError as why:
        hint = "pip install 'warploom[cu13]' (driver 580 or newer), or 'warploom[cu12]'"
        raise error("H020", "the package cuda-bindings is not installed", hint=hint) from why
    try:
        (status,) = driver.cuInit(0)
    except Exception as why:
        # Without libcuda the bindings raise an exception of their own, by version another one.
        text = "there is no NVIDIA driver (libcuda) on this machine"
        raise error("H020", text, hint="NumPy arrays run on the simulator") from why
    if status != driver.CUresult.CUDA_SUCCESS:
        raise error("H020", f"the driver cannot start: {reason(driver, status)}")
    status, count = driver.cuDeviceGetCount()
    if status != driver.CUresult.CUDA_SUCCESS or count == 0:
        raise error("H020", "the driver sees no GPU", hint="is CUDA_VISIBLE_DEVICES empty?")
    return driver


def reason(driver: Any, status: Any) -> str:
    """CUDA's own words for a status."""
    _, name = driver.cuGetErrorName(status)
    _, text = driver.cuGetErrorString(status)
    word = name.decode() if isinstance(name, bytes) else str(status)
    return f"{word}: {text.decode()}" if isinstance(text, bytes) else word


def call(result: tuple[Any, ...], doing: str, code: str = "H023") -> Any:
    """The value of a driver call; raises LaunchError with CUDA's own words where it failed."""
    status = result[0]
    if status != 0:
        raise error(code, f"{doing} failed: {reason(api(), status)}", notes=_notes(int(status)))
    return result[1] if len(result) == 2 else result[1:] or None


def _notes(status: int) -> tuple[str, ...]:
    if status in (700, 716, 717, 718, 719, 710, 715):
        return (
            "an earlier launch broke the GPU's context: this process cannot use it any more",
            "run the same call with NumPy arrays to see what the kernel did wrong",
        )
    return ()


def is_likely() -> bool:
    """Whether a GPU seems usable, found out without touching the driver."""
    if importlib.util.find_spec("cuda") is None:
        return False
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    if sys.platform == "win32":
        return Path(os.environ.get("SYSTEMROOT", "C:/Windows"), "System32", "nvcuda.dll").exists()
    return any(Path("/dev").glob("nvidia*")) or Path("/dev/dxg").exists()


def problem() -> Error | None:
    """Why no GPU can be used, or None where one can."""
    try:
        api()
    except Error as why:
        return why
    return None


def is_usable() -> bool:
    """Whether a GPU can be used in this process. Starts the driver where one is there."""
    return is_likely() and problem() is None


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What the driver says of a GPU; `shared_bytes` is the most that one block can ask for."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory_bytes: int
    shared_bytes: int


def device_count() -> int:
    """Number of GPUs."""
    return int(call(api().cuDeviceGetCount(), "counting devices"))


def driver_version() -> tuple[int, int]:
    """The CUDA version that the driver supports."""
    number = int(call(api().cuDriverGetVersion(), "asking for the driver's version"))
    return number // 1000, number % 1000 // 10


@cache
def facts(device: int) -> DeviceFacts:
    """Name, architecture and sizes of a GPU."""
    cuda = api()
    handle = device_handle(device)
    kinds = cuda.CUdevice_attribute

    def ask(name: str) -> int:
        kind = getattr(kinds, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(call(cuda.cuDeviceGetAttribute(kind, handle), f"asking for {name}"))

    name = call(cuda.cuDeviceGetName(256, handle), "asking for the name")
    return DeviceFacts(
        name.split(b"\0")[0].decode(),
        (ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR")),
        ask("MULTIPROCESSOR_COUNT"),
        int(call(cuda.cuDeviceTotalMem(handle), "asking for the memory")),
        ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
    )


def device_handle(device: int) -> Any:
    """The driver's handle of a GPU; raises H020 where there is no such one."""
    cuda = api()
    count = device_count()
    if not 0 <= device < count:
        raise error(
            "H020",
            f"there is no GPU {device}: this machine has {count}",
            hint="CUDA_VISIBLE_DEVICES says which are seen; they count from 0",
        )
    return call(cuda.cuDeviceGet(device), f"opening GPU {device}")


class Current:
    """Makes a GPU's primary context current for a while.

    A thread that had none keeps it, as CUDA's runtime would do; another one is put back.
    """

    __slots__ = ("before", "device")

    def __init__(self, device: int) -> None:
        self.device = device
        self.before: Any = None

    def __enter__(self) -> None:
        cuda = api()
        context = _state.contexts.get(self.device)
        if context is None:
            with _state.lock:
                handle = device_handle(self.device)
                context = call(cuda.cuDevicePrimaryCtxRetain(handle), "opening the context")
                _state.contexts[self.device] = context
        _, now = cuda.cuCtxGetCurrent()
        if int(now) != int(context):
            call(cuda.cuCtxSetCurrent(context), "choosing the context")
            if int(now):
                self.before = now

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            call(api().cuCtxSetCurrent(self.before), "putting back the context")


# Memory --------------------------------------------------------------------------------------


def free_memory(device: int) -> int:
    """Bytes of a GPU that nobody uses."""
    with Current(device):
        return int(call(api().cuMemGetInfo(), "asking for free memory")[0])


def allocate(device: int, size: int) -> int:
    """Address of `size` bytes on a GPU (0 for none); raises H023 where there is not enough."""
    if size == 0:
        return 0
    with Current(device):
        return int(call(api().cuMemAlloc(size), f"allocating {size} bytes"))


def allocate_shared(device: int, size: int) -> int:
    """Address of `size` bytes of host memory that a GPU writes to, the same for both; what it has
    written outlives its context."""
    cuda = api()
    with Current(device):
        flags = cuda.CU_MEMHOSTALLOC_PORTABLE | cuda.CU_MEMHOSTALLOC_DEVICEMAP
        address = call(cuda.cuMemHostAlloc(size, flags), f"allocating {size} bytes")
        return int(call(cuda.cuMemHostGetDevicePointer(address, 0), "mapping host memory"))


def free_shared(device: int, address: int) -> None:
    """Give memory of `allocate_shared` back, which may fail where the context is broken."""
    if is_alive():
        with Current(device):
            api().cuMemFreeHost(address)


def free(device: int, address: int) -> None:
    """Give memory back; waits for the work that uses it. Silent while Python is going down."""
    if address and is_alive():
        with Current(device):
            api().cuMemFree(address)


def copy_in(device: int, address: int, source: np.ndarray) -> None:
    """Copy a C-contiguous host array to GPU memory, behind earlier work of the default stream."""
    if source.nbytes:
        with Current(device):
            done = api().cuMemcpyHtoD(address, source.ctypes.data, source.nbytes)
            call(done, f"copying {source.nbytes} bytes to GPU {device}")


def clear(device: int, address: int, size: int) -> None:
    """Zeros in GPU memory, behind earlier work of the default stream."""
    if size:
        with Current(device):
            call(api().cuMemsetD8(address, 0, size), f"clearing {size} bytes of GPU {device}")


def copy_out(device: int, address: int, target: np.ndarray) -> None:
    """Copy GPU memory to a C-contiguous host array, once all earlier work has ended."""
    if target.nbytes:
        with Current(device):
            call(api().cuCtxSynchronize(), "waiting for the GPU")
            done = api().cuMemcpyDtoH(target.ctypes.data, address, target.nbytes)
            call(done, f"copying {target.nbytes} bytes from GPU {device}")


def used_devices() -> tuple[int, ...]:
    """The GPUs that this process has used through here."""
    return tuple(_state.contexts)


def is_alive() -> bool:
    """Whether handles of this process may still be given back: not in a fork, not at its end."""
    return not sys.is_finalizing() and _state.pid == os.getpid()


def synchronize(device: int = 0) -> None:
    """Wait for all work on a GPU; raises what it left behind."""
    with Current(device):
        call(api().cuCtxSynchronize(), "waiting for the GPU")


# Tensor maps ---------------------------------------------------------------------------------

_MAP_TYPES = {
    "f8e4m3": "UINT8",
    "f8e5m2": "UINT8",
    "f16": "FLOAT16",
    "bf16": "BFLOAT16",
    "f32": "FLOAT32",
    "f64": "FLOAT64",
    "bool": "UINT8",
    "i8": "UINT8",
    "u8": "UINT8",
    "i16": "UINT16",
    "u16": "UINT16",
    "i32": "INT32",
    "u32": "UINT32",
    "i64": "INT64",
    "u64": "UINT64",
}


@cache
def _tensor_map_encoder() -> Any:
    """The driver's function itself: what the bindings have it write to may not be aligned."""
    cuda = api()
    name = b"cuTensorMapEncodeTiled"
    found, _ = call(cuda.cuGetProcAddress(name, 12000, 0), f"finding {name.decode()}")
    number, pointer = ctypes.c_uint32, ctypes.c_void_p
    return ctypes.CFUNCTYPE(
        *(ctypes.c_int, pointer, ctypes.c_int, number, pointer, pointer, pointer, pointer, pointer),
        *(ctypes.c_int,) * 4,
    )(int(found))


def encode_tensor_map(
    dtype: str,
    address: int,
    extents: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    swizzle: int,
    nan: bool = False,
) -> bytes:
    """The 128 bytes of a tensor map, axes fastest first; `strides` in bytes, without the first.

    What lies outside reads as zero, or as NaN. `swizzle` is the span in bytes, 0 for none.
    """
    cuda = api()
    kind = f"CU_TENSOR_MAP_DATA_TYPE_{_MAP_TYPES[dtype]}"
    fill = "NAN_REQUEST_ZERO_FMA" if nan else "NONE"
    span = f"CU_TENSOR_MAP_SWIZZLE_{f'{swizzle}B' if swizzle else 'NONE'}"
    memory = ctypes.create_string_buffer(128 + 64)
    start = -(-ctypes.addressof(memory) // 64) * 64
    rank = len(extents)
    longs, words = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
    status = _tensor_map_encoder()(
        start,
        int(getattr(cuda.CUtensorMapDataType, kind)),
        rank,
        address,
        longs(*extents),
        longs(*strides),
        words(*box),
        words(*(1,) * rank),
        int(cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE),
        int(getattr(cuda.CUtensorMapSwizzle, span)),
        int(cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B),
        int(getattr(cuda.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill}")),
    )
    call((cuda.CUresult(status),), "describing a tensor to the copy engine")
    return ctypes.string_at(start, 128)


def current_stream(device: int, source: str) -> int:
    """The stream that a launch follows: torch's current one for its tensors, else the default."""
    if source != "torch":
        return DEFAULT_STREAM
    torch: Any = sys.modules["torch"]
    try:
        return torch._C._cuda_getCurrentRawStream(device)
    except AttributeError:
        return torch.cuda.current_stream(device).cuda_stream

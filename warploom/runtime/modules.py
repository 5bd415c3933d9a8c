"""Code on a GPU: loading a cubin, and launching its entry, through the driver.

Knows no kernel: a launch is an entry, sizes and packed words. `driver` brings the driver itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from warploom.base.errors import error
from warploom.runtime.driver import Current, api, call, device_handle, driver_version, facts, reason
from warploom.runtime.grid import ALONE, ORDINARY, PORTABLE_CLUSTER, Grid, Ways

# Invalid image, no binary for this GPU, invalid or unsupported PTX.
_FOREIGN_CODE = (200, 209, 218, 222)
# Launches overlap from this compute capability on.
_OVERLAPPING = (9, 0)


@dataclass(slots=True)
class Loaded:
    """A loaded entry: one handle for all GPUs, prepared for each at its first launch there."""

    function: Any
    kernel: Any
    library: Any
    shared_bytes: int
    threads: int = 0
    cluster: Grid = ALONE
    prepared: set[int] = field(default_factory=set)

    def prepare(self, device: int) -> None:
        """Load the code on a GPU now, and allow more than 48 KB of shared memory and clusters of
        more than 8 blocks; raises LaunchError H042 where no cluster fits.

        Loading at the first launch, as CUDA would, may synchronise: that breaks a capture.
        """
        with Current(device):
            call(api().cuKernelGetFunction(self.kernel), "loading the code")
        size = math.prod(self.cluster)
        if self.shared_bytes > 48 * 1024:
            what = f"{self.shared_bytes} bytes of shared memory"
            self._allow("MAX_DYNAMIC_SHARED_SIZE_BYTES", self.shared_bytes, device, what)
        if size > PORTABLE_CLUSTER:
            what = f"clusters of {size} blocks"
            self._allow("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1, device, what)
        if size > 1 and not clusters_at_a_time(self, device):
            text = f"GPU {device} has no room for a cluster of {size} blocks"
            notes = (
                f"each has {self.threads} threads and {self.shared_bytes:,} bytes of shared memory",
            )
            hint = "launch with smaller clusters, or let a block take less shared memory"
            raise error("H042", text, notes=notes, hint=hint)
        self.prepared.add(device)

    def _allow(self, attribute: str, value: int, device: int, what: str) -> None:
        cuda = api()
        kind = getattr(cuda.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{attribute}")
        done = cuda.cuKernelSetAttribute(kind, value, self.kernel, device_handle(device))
        call(done, f"asking for {what}")


def clusters_at_a_time(loaded: Loaded, device: int) -> int:
    """How many clusters of a kernel a GPU holds at the same time."""
    cuda = api()
    config = cuda.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = loaded.cluster
    config.blockDimX, config.blockDimY, config.blockDimZ = loaded.threads, 1, 1
    config.sharedMemBytes = loaded.shared_bytes
    attribute = cuda.CUlaunchAttribute()
    attribute.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    shape = attribute.value.clusterDim
    shape.x, shape.y, shape.z = loaded.cluster
    config.attrs, config.numAttrs = [attribute], 1
    with Current(device):
        done = cuda.cuOccupancyMaxActiveClusters(loaded.function, config)
        return int(call(done, "asking for the occupancy of clusters"))


def load(
    image: bytes,
    entry: str,
    shared_bytes: int,
    device: int,
    threads: int = 0,
    cluster: Grid = ALONE,
) -> Loaded:
    """Load a cubin and find its entry, which was compiled for clusters of this shape."""
    cuda = api()
    with Current(device):
        done = cuda.cuLibraryLoadData(image, [], [], 0, [], [], 0)
        if done[0] in _FOREIGN_CODE:
            major, minor = driver_version()
            text = f"the driver (CUDA {major}.{minor}) cannot load the code of `{entry}`"
            notes = (reason(cuda, done[0]),)
            hint = "`warploom doctor` compares driver and compiler and names the extra to install"
            raise error("C007", text, notes=notes, hint=hint)
        library = call(done, f"loading the code of `{entry}`")
        kernel = call(cuda.cuLibraryGetKernel(library, entry.encode()), f"finding `{entry}`")
    loaded = Loaded(cuda.CUfunction(int(kernel)), kernel, library, shared_bytes, threads, cluster)
    loaded.prepare(device)
    return loaded


def launch(
    loaded: Loaded,
    device: int,
    stream: int,
    grid: tuple[int, int, int],
    threads: int,
    words: int,
    ways: Ways = ORDINARY,
) -> None:
    """Launch an entry. `words` is the address of an array of pointers to the arguments; `ways`
    are noted where the GPU has them: launches do not overlap before compute capability 9.0."""
    cuda = api()
    with Current(device):
        if device not in loaded.prepared:
            loaded.prepare(device)
        pdl = ways.pdl and facts(device).capability >= _OVERLAPPING
        if pdl or ways.cooperative:
            config = _described(loaded, device, grid, threads, Ways(pdl, ways.cooperative))
            config.hStream = stream
            (status,) = cuda.cuLaunchKernelEx(config, loaded.function, words, 0)
        else:
            (status,) = cuda.cuLaunchKernel(
                loaded.function, *grid, threads, 1, 1, loaded.shared_bytes, stream, words, 0
            )
    if status != 0:
        call((status,), "the launch")


def _described(
    loaded: Loaded, device: int, grid: tuple[int, int, int], threads: int, ways: Ways
) -> Any:
    """The description of a launch that runs beside others in these ways; raises LaunchError H041
    where a cooperative one has too many blocks."""
    cuda = api()
    kinds, attributes = cuda.CUlaunchAttributeID, []
    if ways.pdl:
        attribute = cuda.CUlaunchAttribute()
        attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        attributes.append(attribute)
    if ways.cooperative:
        _check_room(loaded, device, math.prod(grid), threads)
        attribute = cuda.CUlaunchAttribute()
        attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    config = cuda.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = loaded.shared_bytes
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config


def _check_room(loaded: Loaded, device: int, blocks: int, threads: int) -> None:
    """Whether so many blocks are resident at a time."""
    cuda, size = api(), math.prod(loaded.cluster)
    if size > 1:
        fit = clusters_at_a_time(loaded, device)
        if blocks > fit * size:
            text = f"{blocks} blocks cannot run at the same time: the GPU has room for {fit * size}"
            notes = (
                f"{fit} clusters of {size} blocks, each of {threads} threads and "
                f"{loaded.shared_bytes} bytes of shared memory",
            )
            hint = f"launch at most {fit * size} blocks, and let each do more"
            raise error("H041", text, notes=notes, hint=hint)
        return
    done = cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        loaded.function, threads, loaded.shared_bytes
    )
    fit, sms = call(done, "asking for the occupancy"), facts(device).multiprocessors
    if blocks > fit * sms:
        text = f"{blocks} blocks cannot run at the same time: the GPU has room for {fit * sms}"
        notes = (
            f"{sms} SMs, {fit} blocks each of {threads} threads and {loaded.shared_bytes} bytes of "
            "shared memory",
        )
        hint = f"launch at most {fit * sms} blocks, and let each do more"
        raise error("H041", text, notes=notes, hint=hint)

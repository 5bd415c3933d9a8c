"""Warploom: kernels for GPUs in Python, a machine to check them on, and an engine on top.

`import warploom as wl`. Names are loaded when they are first used: importing the package imports
neither CUDA nor torch, and not even NumPy.
"""

import importlib
import time
from typing import TYPE_CHECKING, Any

# Sources that are newer than this may differ from what is loaded (runtime/source_digest.py).
IMPORTED_NS = time.time_ns()

if TYPE_CHECKING:
    from warploom.base.dtypes import (
        DType,
        bf16,
        boolean,
        f8e4m3,
        f8e5m2,
        f16,
        f32,
        f64,
        i8,
        i16,
        i32,
        i64,
        u8,
        u16,
        u32,
        u64,
    )
    from warploom.base.errors import (
        CheckError,
        CompileError,
        Error,
        LaunchError,
        ModelError,
        ShapeError,
    )
    from warploom.language.arithmetic import (
        abs,
        ceil,
        cos,
        erf,
        exp,
        exp2,
        floor,
        fma,
        log,
        log2,
        maximum,
        minimum,
        rcp,
        round,
        rsqrt,
        sin,
        sqrt,
        tanh,
        where,
    )
    from warploom.language.atomic import (
        atomic_add,
        atomic_and,
        atomic_cas,
        atomic_exchange,
        atomic_max,
        atomic_min,
        atomic_or,
        atomic_xor,
    )
    from warploom.language.barrier import barrier, fence, fence_async, named_barrier
    from warploom.language.channel import channel
    from warploom.language.cluster import cluster_mask, cluster_rank, cluster_size, cluster_sync
    from warploom.language.collective import (
        all_gather,
        all_reduce,
        block,
        broadcast,
        cluster,
        grid,
        reduce,
        reduce_scatter,
    )
    from warploom.language.control import range, unroll
    from warploom.language.copy import (
        copy_async,
        copy_bulk,
        copy_commit,
        copy_prefetch,
        copy_wait,
        store_async,
    )
    from warploom.language.debug import clock, device_assert, device_print
    from warploom.language.descriptors import descriptors
    from warploom.language.exchange import exchange
    from warploom.language.flag import signal, wait
    from warploom.language.flagged import flagged
    from warploom.language.function import function
    from warploom.language.grid import (
        grid_sync,
        launch_dependents,
        stop_at,
        wait_for_previous,
    )
    from warploom.language.lanes import ballot, lane_id, shuffle, thread_id, warp_id, warp_sync
    from warploom.language.layouts import assert_layout, pin
    from warploom.language.mma import mma
    from warploom.language.outbound import copy_engine
    from warploom.language.pipe import pipe
    from warploom.language.product import dot_async
    from warploom.language.ptx import ptx
    from warploom.language.regions import one_thread
    from warploom.language.roles import role, roles
    from warploom.language.scalar import num_programs, program_id, scalar
    from warploom.language.schedule import tiles
    from warploom.language.shared import behind, shared
    from warploom.language.structs import struct
    from warploom.language.tensor import ds, gather, load, prefetch, store
    from warploom.language.thread_copy import (
        copy_by_threads,
        threads_arrive,
        threads_commit,
        threads_wait,
    )
    from warploom.language.tile import (
        all,
        any,
        arange,
        argmax,
        argmin,
        cat,
        full,
        max,
        min,
        sum,
        zeros,
    )
    from warploom.language.turns import turns
    from warploom.language.types import Tensor, const
    from warploom.runtime.driver import is_usable as has_gpu
    from warploom.runtime.examples import Make
    from warploom.runtime.findings import Findings
    from warploom.runtime.graph import Graph, graph
    from warploom.runtime.jit import Kernel, kernel
    from warploom.runtime.memory import (
        DeviceArray,
        device_empty,
        synchronize,
        to_device,
        to_numpy,
    )
    from warploom.runtime.stats import freeze, stats
    from warploom.runtime.stop import Stop

# Where each public name lives; "has_gpu=is_usable" renames.
_MODULES = {
    "base.dtypes": "DType bf16 boolean f16 f32 f64 f8e4m3 f8e5m2 i8 i16 i32 i64 u8 u16 u32 u64",
    "base.errors": "CheckError CompileError Error LaunchError ModelError ShapeError",
    "language.arithmetic": "abs ceil cos erf exp exp2 floor fma log log2 maximum minimum rcp round "
    "rsqrt sin sqrt tanh where",
    "language.atomic": "atomic_add atomic_and atomic_exchange atomic_max "
    "atomic_min atomic_or atomic_cas atomic_xor",
    "language.barrier": "barrier fence fence_async named_barrier",
    "language.channel": "channel",
    "language.cluster": "cluster_mask cluster_rank cluster_size cluster_sync",
    "language.collective": "all_gather all_reduce block broadcast cluster grid reduce "
    "reduce_scatter",
    "language.control": "range unroll",
    "language.copy": "copy_async copy_bulk copy_commit copy_prefetch copy_wait store_async",
    "language.debug": "clock device_assert device_print",
    "language.descriptors": "descriptors",
    "language.exchange": "exchange",
    "language.flag": "signal wait",
    "language.flagged": "flagged",
    "language.function": "function",
    "language.grid": "grid_sync launch_dependents stop_at wait_for_previous",
    "language.lanes": "ballot lane_id shuffle thread_id warp_id warp_sync",
    "language.layouts": "assert_layout pin",
    "language.mma": "mma",
    "language.outbound": "copy_engine",
    "language.pipe": "pipe",
    "language.product": "dot_async",
    "language.ptx": "ptx",
    "language.regions": "one_thread",
    "language.roles": "role roles",
    "language.scalar": "num_programs program_id scalar",
    "language.schedule": "tiles",
    "language.shared": "behind shared",
    "language.structs": "struct",
    "language.tensor": "ds gather load prefetch store",
    "language.thread_copy": "copy_by_threads threads_arrive threads_commit threads_wait",
    "language.tile": "all any arange argmax argmin cat full max min sum zeros",
    "language.turns": "turns",
    "language.types": "Tensor const",
    "runtime.driver": "has_gpu=is_usable",
    "runtime.examples": "Make",
    "runtime.findings": "Findings",
    "runtime.graph": "Graph graph",
    "runtime.jit": "Kernel kernel",
    "runtime.memory": "DeviceArray device_empty synchronize to_device to_numpy",
    "runtime.stop": "Stop",
    "runtime.stats": "freeze stats",
}
_PLACES = {
    name.partition("=")[0]: (module, name.partition("=")[2] or name)
    for module, names in _MODULES.items()
    for name in names.split()
}

__all__ = [
    "CheckError",
    "CompileError",
    "DType",
    "DeviceArray",
    "Error",
    "Findings",
    "Graph",
    "Kernel",
    "LaunchError",
    "Make",
    "ModelError",
    "ShapeError",
    "Stop",
    "Tensor",
    "abs",
    "all",
    "all_gather",
    "all_reduce",
    "any",
    "arange",
    "argmax",
    "argmin",
    "assert_layout",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xor",
    "ballot",
    "barrier",
    "behind",
    "bf16",
    "block",
    "boolean",
    "broadcast",
    "cat",
    "ceil",
    "channel",
    "clock",
    "cluster",
    "cluster_mask",
    "cluster_rank",
    "cluster_size",
    "cluster_sync",
    "const",
    "copy_async",
    "copy_bulk",
    "copy_by_threads",
    "copy_commit",
    "copy_engine",
    "copy_prefetch",
    "copy_wait",
    "cos",
    "descriptors",
    "device_assert",
    "device_empty",
    "device_print",
    "dot_async",
    "ds",
    "erf",
    "exchange",
    "exp",
    "exp2",
    "f8e4m3",
    "f8e5m2",
    "f16",
    "f32",
    "f64",
    "fence",
    "fence_async",
    "flagged",
    "floor",
    "fma",
    "freeze",
    "full",
    "function",
    "gather",
    "graph",
    "grid",
    "grid_sync",
    "has_gpu",
    "i8",
    "i16",
    "i32",
    "i64",
    "kernel",
    "lane_id",
    "launch_dependents",
    "load",
    "log",
    "log2",
    "max",
    "maximum",
    "min",
    "minimum",
    "mma",
    "named_barrier",
    "num_programs",
    "one_thread",
    "pin",
    "pipe",
    "prefetch",
    "program_id",
    "ptx",
    "range",
    "rcp",
    "reduce",
    "reduce_scatter",
    "role",
    "roles",
    "round",
    "rsqrt",
    "scalar",
    "shared",
    "shuffle",
    "signal",
    "sin",
    "sqrt",
    "stats",
    "stop_at",
    "store",
    "store_async",
    "struct",
    "sum",
    "synchronize",
    "tanh",
    "thread_id",
    "threads_arrive",
    "threads_commit",
    "threads_wait",
    "tiles",
    "to_device",
    "to_numpy",
    "turns",
    "u8",
    "u16",
    "u32",
    "u64",
    "unroll",
    "wait",
    "wait_for_previous",
    "warp_id",
    "warp_sync",
    "where",
    "zeros",
]


def __getattr__(name: str) -> Any:
    """Load a public name at its first use."""
    place = _PLACES.get(name)
    if place is None:
        words = importlib.import_module("warploom.language.elsewhere").OF_PACKAGE
        here = f"; here this is {words[name]}" if name in words else ""
        raise AttributeError(f"module 'warploom' has no attribute {name!r}{here}")
    module, attribute = place
    value = getattr(importlib.import_module(f"warploom.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)

"""How finely checked mode tells memory apart: bytes of a cell, as many as every access of a kernel
takes whole and aligned. Knows which operations move whole vectors or chunks; all others count for
accesses of single elements.
"""

from __future__ import annotations

from math import gcd

from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Effect, Op, Value
from warploom.ir.ops import (
    bulk,
    cp_async,
    descriptor,
    global_memory,
    remote,
    shared_memory,
    tma,
    wgmma,
)
from warploom.ir.types import Buffer, Tensor
from warploom.sim.boxes import CHUNK
from warploom.sim.memory import Memory

_SHARED = {Effect.READ_SHARED, Effect.WRITE_SHARED}
_CHUNKS = (
    tma.LoadBox,
    tma.StoreBox,
    bulk.LoadBytes,
    bulk.StoreBytes,
    remote.CopyBytes,
    wgmma.Mma,
    wgmma.MmaRegisters,
    descriptor.Write,
)
_VECTORS = (
    shared_memory.Load,
    shared_memory.Store,
    shared_memory.LoadMatrices,
    shared_memory.StoreMatrices,
    cp_async.CopyGroups,
    remote.LoadGroups,
    remote.StoreGroups,
    remote.SendGroups,
)


def shared_cell(kernel: Kernel, finest: int) -> int:
    """Bytes of a cell of shared memory; `finest` is the smallest element there."""
    cell = CHUNK
    for op in walk(kernel.body):
        if isinstance(op, _VECTORS):
            cell = gcd(cell, op.vec * _bytes(op.buffer))
        elif _SHARED.intersection(op.EFFECTS) and not isinstance(op, _CHUNKS):
            cell = gcd(cell, finest)
    return cell


def tensor_cell(kernel: Kernel, param: Value) -> int:
    """Bytes of a cell of a tensor, as far as its shape and strides allow."""
    cell = CHUNK
    for op in walk(kernel.body):
        if param in op.operand_values():
            cell = gcd(cell, _reach(op, _bytes(param)))
    return cell


def _reach(op: Op, size: int) -> int:
    if isinstance(op, _CHUNKS):
        return CHUNK
    if isinstance(op, global_memory.Load | global_memory.Store | cp_async.CopyGroups):
        return op.vec * size
    return size if {Effect.READ_GLOBAL, Effect.WRITE_GLOBAL}.intersection(op.EFFECTS) else CHUNK


def _bytes(value: Value) -> int:
    assert isinstance(value.type, Buffer | Tensor)
    return value.type.dtype.bytes


def whole(cell: int, memory: Memory) -> int:
    """Bytes of a cell of a tensor whose rows must be whole ones: boxes end where they do."""
    for extent, step in zip(memory.shape, memory.strides, strict=True):
        if extent > 1:
            cell = gcd(cell, (extent if abs(step) == 1 else step) * memory.itemsize)
    return cell

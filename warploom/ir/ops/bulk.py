"""Bulk copies of bytes in one piece, without a descriptor: between a run of a tensor and a tile of
shared memory that lies in one piece. PTX cp.async.bulk.

As in `tma`: one thread issues them, and they complete later. Nothing is clipped: the run lies in
the tensor. Addresses and sizes are multiples of 16 bytes.
"""

from __future__ import annotations

from math import prod

from warploom.base.dtypes import i32
from warploom.ir.op import (
    Actor,
    Effect,
    Op,
    Stage,
    Value,
    attribute,
    check,
    op,
    operand,
    operands,
)
from warploom.ir.ops.mbarrier import barrier_of
from warploom.ir.ops.scalar import scalar_of, tensor_of
from warploom.ir.ops.shared import single_of
from warploom.ir.ops.tma import CACHE, REDUCES, check_reduce

_TILE = Stage.TILE | Stage.ROLES
UNIT = 16  # bytes


def run_of(tensor: Value, starts: tuple[Value, ...], sizes: tuple[int | None, ...]) -> int:
    """Elements of a window that is a run: one axis with a size."""
    rank = tensor_of(tensor).rank
    check(len(starts) == len(sizes) == rank, f"window of {len(sizes)} axes, rank {rank}")
    runs = [n for n in sizes if n is not None]
    check(len(runs) == 1, f"a bulk copy moves one run, not a window of {len(runs)} axes")
    return runs[0]


def _check(
    tensor: Value, starts: tuple[Value, ...], sizes: tuple[int | None, ...], tile: Value
) -> None:
    t, s = tensor_of(tensor), single_of(tile)
    check(run_of(tensor, starts, sizes) == prod(s.shape), f"{sizes} elements and {s}")
    check(s.dtype == t.dtype, f"{t.dtype} copied to {s.dtype}")


def _check_bytes(tensor: Value, base: Value, size: int) -> None:
    tensor_of(tensor)
    check(scalar_of(base).dtype.is_int, "base is not an integer")
    check(size > 0 and size % UNIT == 0, f"{size} bytes, no multiple of {UNIT}")


@op(
    "bulk.load",
    stages=_TILE,
    effects=(Effect.READ_GLOBAL, Effect.WRITE_SHARED),
    executes=Actor.THREAD,
    since="sm_90",
)
class Load(Op):
    """Copy a run of a tensor to shared memory; its bytes complete on `barrier`."""

    tensor: Value = operand()
    starts: tuple[Value, ...] = operands()
    target: Value = operand()
    barrier: Value = operand()
    sizes: tuple[int | None, ...] = attribute()
    cache: str = attribute(default="")

    def verify(self) -> None:
        _check(self.tensor, self.starts, self.sizes, self.target)
        barrier_of(self.barrier)
        check(self.cache in CACHE, f"cache policy {self.cache!r}")


@op(
    "bulk.store",
    stages=_TILE,
    effects=(Effect.READ_SHARED, Effect.WRITE_GLOBAL),
    executes=Actor.THREAD,
    since="sm_90",
)
class Store(Op):
    """Copy a tile of shared memory to a run of a tensor, or combine it there (`reduce`). Ends up in
    the thread's current bulk group."""

    tensor: Value = operand()
    starts: tuple[Value, ...] = operands()
    source: Value = operand()
    sizes: tuple[int | None, ...] = attribute()
    reduce: str = attribute(default="")
    cache: str = attribute(default="")

    def verify(self) -> None:
        _check(self.tensor, self.starts, self.sizes, self.source)
        check_reduce(self.reduce, tensor_of(self.tensor).dtype, REDUCES)
        check(self.cache in CACHE, f"cache policy {self.cache!r}")


@op("bulk.prefetch", stages=_TILE, effects=(Effect.OUTSIDE,), executes=Actor.THREAD, since="sm_90")
class Prefetch(Op):
    """Have a run of a tensor read into the second-level cache."""

    tensor: Value = operand()
    starts: tuple[Value, ...] = operands()
    sizes: tuple[int | None, ...] = attribute()

    def verify(self) -> None:
        run_of(self.tensor, self.starts, self.sizes)


@op(
    "bulk.load_bytes",
    stages=Stage.MACHINE,
    effects=(Effect.READ_GLOBAL, Effect.WRITE_SHARED),
    since="sm_90",
)
class LoadBytes(Op):
    """`bytes` from element `base` of a tensor on to byte address `address` of shared memory."""

    tensor: Value = operand()
    base: Value = operand()
    address: Value = operand()
    barrier: Value = operand()
    bytes: int = attribute()
    cache: str = attribute(default="")

    def verify(self) -> None:
        _check_bytes(self.tensor, self.base, self.bytes)
        check(scalar_of(self.address).dtype == i32, "the address is an i32")
        barrier_of(self.barrier)


@op(
    "bulk.store_bytes",
    stages=Stage.MACHINE,
    effects=(Effect.READ_SHARED, Effect.WRITE_GLOBAL),
    since="sm_90",
)
class StoreBytes(Op):
    """`bytes` from byte address `address` of shared memory to element `base` of a tensor on."""

    tensor: Value = operand()
    base: Value = operand()
    address: Value = operand()
    bytes: int = attribute()
    reduce: str = attribute(default="")
    cache: str = attribute(default="")

    def verify(self) -> None:
        _check_bytes(self.tensor, self.base, self.bytes)
        check(scalar_of(self.address).dtype == i32, "the address is an i32")
        check_reduce(self.reduce, tensor_of(self.tensor).dtype, REDUCES)


@op("bulk.prefetch_bytes", stages=Stage.MACHINE, effects=(Effect.OUTSIDE,), since="sm_90")
class PrefetchBytes(Op):
    """Have `bytes` from element `base` of a tensor on read into the second-level cache. PTX
    cp.async.bulk.prefetch."""

    tensor: Value = operand()
    base: Value = operand()
    bytes: int = attribute()

    def verify(self) -> None:
        _check_bytes(self.tensor, self.base, self.bytes)

"""The tensor copy engine: boxes between tensors and shared memory. PTX cp.async.bulk.tensor.

Everything here is issued by one thread (`control.one_thread`) and completes later. Elements outside
the tensor arrive as zero and are not written; the bytes of the whole box count either way.
"""

from __future__ import annotations

from warploom.base.dtypes import DType, i32
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
    optional,
)
from warploom.ir.ops.mbarrier import barrier_of
from warploom.ir.ops.scalar import scalar_of, tensor_of
from warploom.ir.ops.shared import single_of

_TILE = Stage.TILE | Stage.ROLES
CACHE = ("", "evict_first", "evict_last", "evict_normal")
FILL = ("zero", "nan")
# Dtypes that an H200 filled with NaN; boxes of 16-bit floats trapped there.
FILL_NAN = ("f32",)
_INTEGERS = ("i32", "u32", "i64", "u64")
# What the engine combines with what is there, by dtype. Source: PTX ISA, cp.reduce.async.bulk.
REDUCES = {
    **dict.fromkeys(_INTEGERS, ("add", "min", "max", "and", "or", "xor")),
    **dict.fromkeys(("f16", "bf16"), ("add", "min", "max")),
    **dict.fromkeys(("f32", "f64"), ("add",)),
}

# Of boxes: descriptors of signed 64-bit integers take no others (an H200 traps).
BOX_REDUCES = {**REDUCES, "i64": ("min", "max")}


def check_reduce(
    reduce: str, dtype: DType, table: dict[str, tuple[str, ...]] = BOX_REDUCES
) -> None:
    """Complain of a reduction that the engine does not make for a dtype."""
    known = not reduce or reduce in table.get(dtype.name, ())
    check(known, f"the copy engine has no {reduce!r} for {dtype}")


def _check_window(op: Load | Store, tile: Value) -> None:
    t, s, sizes = tensor_of(op.tensor), single_of(tile), op.sizes
    _check_rank(op)
    window = tuple(n for n in sizes if n is not None)
    check(window == s.shape, f"window {window} and tile {s.shape}")
    check(s.dtype == t.dtype, f"{t.dtype} copied to {s.dtype}")


def _check_rank(op: Load | Store | Prefetch) -> None:
    """As many axes as the tensor has, or as the descriptor that the kernel made."""
    made = op.room is not None
    check(made == (op.number is not None), "a descriptor is a room and a number")
    rank = len(op.sizes) if made else tensor_of(op.tensor).rank
    check(len(op.starts) == len(op.sizes) == rank, f"window of {len(op.sizes)} axes, rank {rank}")


@op(
    "tma.load",
    stages=_TILE,
    effects=(Effect.READ_GLOBAL, Effect.WRITE_SHARED),
    executes=Actor.THREAD,
    since="sm_90",
)
class Load(Op):
    """Copy a window (as `tile.load`) to a tile in shared memory; its bytes complete on `barrier`.
    `multicast` (bit mask, i32) sends it to the same place of several blocks of the cluster. What
    lies outside the tensor is `fill`: "zero", or "nan" for floats."""

    tensor: Value = operand()
    starts: tuple[Value, ...] = operands()
    target: Value = operand()
    barrier: Value = operand()
    multicast: Value | None = optional()
    room: Value | None = optional()
    number: Value | None = optional()
    sizes: tuple[int | None, ...] = attribute()
    cache: str = attribute(default="")
    fill: str = attribute(default="zero")

    def verify(self) -> None:
        _check_window(self, self.target)
        barrier_of(self.barrier)
        check(self.cache in CACHE, f"cache policy {self.cache!r}")
        check(self.fill in FILL, f"filler {self.fill!r}")
        known = tensor_of(self.tensor).dtype.name in FILL_NAN
        check(self.fill == "zero" or known, "the engine knows no NaN of this dtype")


@op(
    "tma.store",
    stages=_TILE,
    effects=(Effect.READ_SHARED, Effect.WRITE_GLOBAL),
    executes=Actor.THREAD,
    since="sm_90",
)
class Store(Op):
    """Copy a tile in shared memory to a window of a tensor, or combine it there (`reduce`). Ends up
    in the thread's current bulk group."""

    tensor: Value = operand()
    starts: tuple[Value, ...] = operands()
    source: Value = operand()
    room: Value | None = optional()
    number: Value | None = optional()
    sizes: tuple[int | None, ...] = attribute()
    reduce: str = attribute(default="")
    cache: str = attribute(default="")

    def verify(self) -> None:
        _check_window(self, self.source)
        check_reduce(self.reduce, tensor_of(self.tensor).dtype)


@op("tma.prefetch", stages=_TILE, effects=(Effect.OUTSIDE,), executes=Actor.THREAD, since="sm_90")
class Prefetch(Op):
    """Have a window of a tensor read into the second-level cache; by a descriptor that the kernel
    has made, in the boxes of the tile `like`."""

    tensor: Value = operand()
    starts: tuple[Value, ...] = operands()
    room: Value | None = optional()
    number: Value | None = optional()
    like: Value | None = optional()
    sizes: tuple[int | None, ...] = attribute()
    cache: str = attribute(default="")

    def verify(self) -> None:
        _check_rank(self)
        check((self.room is None) == (self.like is None), "a descriptor has a tile")
        check(self.cache in CACHE, f"cache policy {self.cache!r}")


@op(
    "tma.load_box",
    stages=Stage.MACHINE,
    effects=(Effect.READ_GLOBAL, Effect.WRITE_SHARED),
    since="sm_90",
)
class LoadBox(Op):
    """One box through map number `map` of the kernel to byte address `address`. `coordinates` are
    in elements, fastest axis first; `bytes` is the size of the box."""

    tensor: Value = operand()
    coordinates: tuple[Value, ...] = operands()
    address: Value = operand()
    barrier: Value = operand()
    multicast: Value | None = optional()
    room: Value | None = optional()
    number: Value | None = optional()
    map: int = attribute()
    bytes: int = attribute()
    cache: str = attribute(default="")

    def verify(self) -> None:
        check(all(scalar_of(c).dtype == i32 for c in self.coordinates), "coordinates are i32")
        check(scalar_of(self.address).dtype == i32, "the address is an i32")
        check(self.cache in CACHE, f"cache policy {self.cache!r}")


@op(
    "tma.store_box",
    stages=Stage.MACHINE,
    effects=(Effect.READ_SHARED, Effect.WRITE_GLOBAL),
    since="sm_90",
)
class StoreBox(Op):
    """One box from byte address `address` through map number `map`."""

    tensor: Value = operand()
    coordinates: tuple[Value, ...] = operands()
    address: Value = operand()
    room: Value | None = optional()
    number: Value | None = optional()
    map: int = attribute()
    bytes: int = attribute()
    reduce: str = attribute(default="")
    cache: str = attribute(default="")

    def verify(self) -> None:
        check(all(scalar_of(c).dtype == i32 for c in self.coordinates), "coordinates are i32")
        check_reduce(self.reduce, tensor_of(self.tensor).dtype)


@op("tma.prefetch_box", stages=Stage.MACHINE, since="sm_90", effects=(Effect.OUTSIDE,))
class PrefetchBox(Op):
    """Have one box of map number `map` read into the second-level cache. PTX
    cp.async.bulk.prefetch.tensor."""

    tensor: Value = operand()
    coordinates: tuple[Value, ...] = operands()
    room: Value | None = optional()
    number: Value | None = optional()
    map: int = attribute()
    cache: str = attribute(default="")

    def verify(self) -> None:
        check(all(scalar_of(c).dtype == i32 for c in self.coordinates), "coordinates are i32")
        check(self.cache in CACHE, f"cache policy {self.cache!r}")


@op("tma.prefetch_map", stages=Stage.MACHINE, since="sm_90", effects=(Effect.OUTSIDE,))
class PrefetchMap(Op):
    """Have the descriptor of map number `map` read ahead of its first copy. PTX
    prefetch.tensormap."""

    map: int = attribute()


@op("tma.commit", effects=(Effect.SYNC,), since="sm_90")
class Commit(Op):
    """Close the thread's current bulk group of stores."""


@op("tma.wait", effects=(Effect.SYNC,), since="sm_90")
class Wait(Op):
    """Wait until at most `pending` bulk groups of this thread are open; with `reads`, until their
    sources in shared memory have been read (the data need not be visible yet)."""

    pending: int = attribute(default=0)
    reads: bool = attribute(default=False)

    def verify(self) -> None:
        check(self.pending >= 0, f"{self.pending} groups")

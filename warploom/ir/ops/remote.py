"""Shared memory of other blocks of the cluster: moves between registers and a peer's tile, stores
whose bytes complete on the peer's barrier, copies from a block's own tile. PTX ld.shared::cluster,
st.shared::cluster, st.async, cp.async.bulk.shared::cluster.shared::cta.

A peer's tile has a type of its own, `RemoteTile`: it lies at the place of the block's own tile, in
the block of a rank. At the machine stage it is the own buffer and its address in the cluster, made
by `cluster.address`: offsets count from there.
"""

from __future__ import annotations

from warploom.base.dtypes import DType, bf16, boolean, f8e4m3, f8e5m2, f16, f32, i32
from warploom.ir.op import Actor, Effect, Op, Stage, Value, attribute, check, op, operand, optional
from warploom.ir.ops.bulk import UNIT
from warploom.ir.ops.global_memory import check_access
from warploom.ir.ops.mbarrier import barrier_of
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.scalar import scalar_of
from warploom.ir.ops.shared import shared_of, single_of
from warploom.ir.ops.shared_memory import buffer_of
from warploom.ir.ops.tile import tile_of
from warploom.ir.types import Regs, RemoteTile, SharedTile, Tile, Type

_TILE = Stage.TILE | Stage.ROLES
_DTYPES = (f32, f16, bf16, f8e4m3, f8e5m2, i32, boolean)
SENT_BYTES = (4, 8, 16)  # of one asynchronous store


def remote_of(value: Value) -> SharedTile:
    """The tile that a value must be in a peer's shared memory."""
    check(isinstance(value.type, RemoteTile), f"{value} is no tile of another block")
    assert isinstance(value.type, RemoteTile)
    return value.type.tile


def _check_value(target: Value, value: Value) -> None:
    s, t = remote_of(target), tile_of(value)
    check(s.shape == t.shape and s.dtype == t.dtype, f"{t} stored to {s}")


@op("remote.tile_on", stages=_TILE, executes=Actor.WARP, since="sm_90")
class TileOn(Op):
    """The tile at the same place of block `rank` of the cluster."""

    tile: Value = operand()
    rank: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        single_of(self.tile)
        check(scalar_of(self.rank).dtype == i32, "the rank is an i32")
        return (RemoteTile(shared_of(self.tile)),)


@op(
    "remote.load",
    stages=_TILE,
    effects=(Effect.READ_SHARED,),
    executes=Actor.ROLE,
    since="sm_90",
    dtypes=_DTYPES,
)
class Load(Op):
    """A tile of registers from a peer's tile (generic proxy)."""

    source: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        s = remote_of(self.source)
        return (Tile(s.dtype, s.shape),)


@op(
    "remote.store",
    stages=_TILE,
    effects=(Effect.WRITE_SHARED,),
    executes=Actor.ROLE,
    since="sm_90",
    dtypes=_DTYPES,
)
class Store(Op):
    """Write a tile of registers to a peer's tile (generic proxy)."""

    target: Value = operand()
    value: Value = operand()

    def verify(self) -> None:
        _check_value(self.target, self.value)


@op(
    "remote.send",
    stages=_TILE,
    effects=(Effect.WRITE_SHARED,),
    executes=Actor.ROLE,
    since="sm_90",
    dtypes=_DTYPES,
)
class Send(Op):
    """Begin to write a tile of registers to a peer's tile (generic proxy). The bytes complete on
    the barrier that lies there at the place of `barrier`. Where several threads hold an element,
    the `replica`-th of them sends it, counted round."""

    target: Value = operand()
    value: Value = operand()
    barrier: Value = operand()
    replica: int = attribute(default=0)

    def verify(self) -> None:
        check(self.replica >= 0, f"replica {self.replica}")
        _check_value(self.target, self.value)
        barrier_of(self.barrier)


@op(
    "remote.copy",
    stages=_TILE,
    effects=(Effect.READ_SHARED, Effect.WRITE_SHARED),
    executes=Actor.THREAD,
    since="sm_90",
    dtypes=_DTYPES,
)
class Copy(Op):
    """Begin to copy a tile in one piece to a peer's (asynchronous proxy). The bytes complete on the
    barrier that lies there at the place of `barrier`."""

    source: Value = operand()
    target: Value = operand()
    barrier: Value = operand()

    def verify(self) -> None:
        s, t = single_of(self.source), remote_of(self.target)
        check(s.shape == t.shape and s.dtype == t.dtype, f"{s} copied to {t}")
        barrier_of(self.barrier)


# ---- machine stage -------------------------------------------------------------------------------


def _check_address(address: Value) -> None:
    check(scalar_of(address).dtype == i32, "an address in the cluster is an i32")


def _check_stored(made: StoreGroups | SendGroups) -> None:
    value = regs_of(made.value)
    check(value.dtype == buffer_of(made.buffer).dtype, "stored dtype")
    _check_address(made.address)
    check_access(made.offset, made.predicate, value.extents, made.axis, made.vec)


@op("remote.load_groups", stages=Stage.MACHINE, effects=(Effect.READ_SHARED,), since="sm_90")
class LoadGroups(Op):
    """Load a register tile from element `offset` of a peer's `buffer`, which begins at `address` of
    the cluster; zero where the predicate is false."""

    buffer: Value = operand()
    address: Value = operand()
    offset: Value = operand()
    predicate: Value | None = optional()
    axis: int = attribute(default=0)
    vec: int = attribute(default=1)

    def infer(self) -> tuple[Type, ...]:
        groups = regs_of(self.offset).extents
        extents = tuple(n * self.vec if a == self.axis else n for a, n in enumerate(groups))
        return (Regs(buffer_of(self.buffer).dtype, extents),)

    def verify(self) -> None:
        _check_address(self.address)
        check_access(self.offset, self.predicate, regs_of(self.result).extents, self.axis, self.vec)


@op("remote.store_groups", stages=Stage.MACHINE, effects=(Effect.WRITE_SHARED,), since="sm_90")
class StoreGroups(Op):
    """Store a register tile to element `offset` of a peer's `buffer`, which begins at `address` of
    the cluster, where the predicate holds."""

    buffer: Value = operand()
    address: Value = operand()
    value: Value = operand()
    offset: Value = operand()
    predicate: Value | None = optional()
    axis: int = attribute(default=0)
    vec: int = attribute(default=1)

    def verify(self) -> None:
        _check_stored(self)


@op("remote.send_groups", stages=Stage.MACHINE, effects=(Effect.WRITE_SHARED,), since="sm_90")
class SendGroups(Op):
    """As `remote.store_groups`, done later; each access adds its bytes to those that complete on
    the barrier at address `barrier` of the same block. `alone`: the cluster is this block alone,
    where PTX st.async is an illegal instruction: an ordinary store, a fence of the block and
    mbarrier.complete_tx take its place."""

    buffer: Value = operand()
    address: Value = operand()
    value: Value = operand()
    offset: Value = operand()
    barrier: Value = operand()
    predicate: Value | None = optional()
    axis: int = attribute(default=0)
    vec: int = attribute(default=1)
    alone: bool = attribute(default=False)

    def verify(self) -> None:
        _check_stored(self)
        _check_address(self.barrier)
        size = sent_bytes(buffer_of(self.buffer).dtype, self.vec)
        check(size in SENT_BYTES, f"an asynchronous store of {size} bytes")


def sent_bytes(dtype: DType, vec: int) -> int:
    """Bytes of one access of `vec` elements."""
    return dtype.bytes * vec


@op(
    "remote.copy_bytes",
    stages=Stage.MACHINE,
    effects=(Effect.READ_SHARED, Effect.WRITE_SHARED),
    since="sm_90",
)
class CopyBytes(Op):
    """`bytes` from byte address `source` of the block's shared memory to address `target` of the
    cluster; they complete on the barrier at address `barrier` of the same block as `target`."""

    source: Value = operand()
    target: Value = operand()
    barrier: Value = operand()
    bytes: int = attribute()

    def verify(self) -> None:
        for address in (self.source, self.target, self.barrier):
            _check_address(address)
        check(self.bytes > 0 and self.bytes % UNIT == 0, f"{self.bytes} bytes, not of {UNIT}")

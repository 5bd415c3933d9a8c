"""Copies to shared memory that each thread begins for its own elements and that complete later. PTX
cp.async.

They belong to the thread: a group that it closes is what it waits for. Others see the data after
that wait and a barrier. Accesses are those of ordinary loads and stores (generic proxy).
"""

from __future__ import annotations

from warploom.base.dtypes import bf16, boolean, f16, f32, i32
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
from warploom.ir.ops.global_memory import check_access
from warploom.ir.ops.mbarrier import barrier_of
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.scalar import scalar_of, tensor_of
from warploom.ir.ops.shared import single_of
from warploom.ir.ops.shared_memory import buffer_of
from warploom.ir.ops.tile import tile_of

_TILE = Stage.TILE | Stage.ROLES
BYTES = (4, 8, 16)


@op(
    "cp_async.copy",
    stages=_TILE,
    effects=(Effect.READ_GLOBAL, Effect.WRITE_SHARED),
    executes=Actor.ROLE,
    dtypes=(f32, f16, bf16, i32, boolean),
)
class Copy(Op):
    """Copy a window of a tensor to a tile of shared memory; elements outside the tensor are zero.
    `shape` is any tile of that shape: its layout says which thread copies what."""

    tensor: Value = operand()
    starts: tuple[Value, ...] = operands()
    target: Value = operand()
    shape: Value = operand()
    sizes: tuple[int | None, ...] = attribute()

    def verify(self) -> None:
        t, s = tensor_of(self.tensor), single_of(self.target)
        check(len(self.starts) == len(self.sizes) == t.rank, f"window of {len(self.sizes)} axes")
        window = tuple(n for n in self.sizes if n is not None)
        check(window == s.shape == tile_of(self.shape).shape, f"window {window} and tile {s.shape}")
        check(s.dtype == t.dtype, f"{t.dtype} copied to {s.dtype}")


@op(
    "cp_async.copy_groups",
    stages=Stage.MACHINE,
    effects=(Effect.READ_GLOBAL, Effect.WRITE_SHARED),
)
class CopyGroups(Op):
    """Vector groups from `tensor + base + offset` to `buffer[place]`, in elements; zeros where
    `inside` is false, nothing where `predicate` is."""

    tensor: Value = operand()
    buffer: Value = operand()
    base: Value = operand()
    offset: Value = operand()
    place: Value = operand()
    inside: Value | None = optional()
    predicate: Value | None = optional()
    vec: int = attribute()

    def verify(self) -> None:
        size = self.vec * tensor_of(self.tensor).dtype.bytes
        check(size in BYTES, f"{size} bytes: 4, 8 or 16")
        check(buffer_of(self.buffer).dtype == tensor_of(self.tensor).dtype, "copied dtype")
        check(scalar_of(self.base).dtype.is_int, "base is not an integer")
        extents = regs_of(self.offset).extents
        check(regs_of(self.place).extents == extents, "a place for each group")
        for predicate in (self.inside, self.predicate):
            check_access(self.offset, predicate, extents, 0, 1)


@op("cp_async.commit", effects=(Effect.SYNC,), executes=Actor.ROLE)
class Commit(Op):
    """Each thread closes its current group of copies. PTX cp.async.commit_group."""


@op("cp_async.wait", effects=(Effect.SYNC,), executes=Actor.ROLE)
class Wait(Op):
    """Each thread waits until at most `pending` of its groups are under way. PTX
    cp.async.wait_group."""

    pending: int = attribute(default=0)

    def verify(self) -> None:
        check(self.pending >= 0, f"{self.pending} groups")


@op("cp_async.arrive", effects=(Effect.SYNC,), executes=Actor.ROLE, since="sm_80")
class Arrive(Op):
    """Each thread arrives once on an mbarrier when all copies that it has begun are done. PTX
    cp.async.mbarrier.arrive.noinc."""

    barrier: Value = operand()

    def verify(self) -> None:
        barrier_of(self.barrier)

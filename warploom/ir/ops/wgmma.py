"""The matrix unit of a warpgroup: asynchronous D += A·B with operands in shared memory. PTX wgmma.

The accumulator of a 64-row block lives in the registers of four warps: warp w, lane l holds rows
16w + l/4 and 16w + l/4 + 8, columns 8j + 2(l mod 4) and the next one. `ir/layout/fragments.py`
states this as a layout. Operand and result of a product are one storage.
"""

from __future__ import annotations

from dataclasses import replace

from warploom.base.dtypes import DType, bf16, f16, f32
from warploom.ir.op import Actor, Effect, Op, Stage, Value, attribute, check, op, operand
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.scalar import scalar_of
from warploom.ir.ops.shared import single_of
from warploom.ir.ops.tile import any_tile_of, tile_of
from warploom.ir.types import Type

_TILE = Stage.TILE | Stage.ROLES
_MACHINE = Stage.MACHINE


@op("wgmma.begin", stages=_TILE, executes=Actor.THREAD, since="sm_90a", dtypes=(f32,))
class Begin(Op):
    """A tile as an accumulator that products may be added to; costs nothing."""

    acc: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        return (replace(tile_of(self.acc), pending=True),)


@op(
    "wgmma.dot",
    stages=_TILE,
    effects=(Effect.READ_SHARED, Effect.SYNC),
    executes=Actor.ROLE,
    since="sm_90a",
    dtypes=(f16, bf16),
)
class Dot(Op):
    """Begin acc + a·b for a of shape (M, K), b of (K, N), acc of (M, N) f32, and close a group. The
    result must not be read before `wgmma.wait`. M is a multiple of 64 a warpgroup of the role, N of
    8 up to 256, K of 16."""

    a: Value = operand()
    b: Value = operand()
    acc: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        return (any_tile_of(self.acc),)

    def verify(self) -> None:
        a, b, acc = single_of(self.a), single_of(self.b), any_tile_of(self.acc)
        check(acc.pending, "the accumulator has not begun")
        (m, k), (k2, n) = a.shape, b.shape
        check(k == k2 and acc.shape == (m, n), f"{a.shape} times {b.shape} into {acc.shape}")
        check(a.dtype == b.dtype and a.dtype in (f16, bf16), f"{a.dtype} times {b.dtype}")
        check(acc.dtype == f32, "the accumulator is f32")
        check(m % 64 == 0 and n % 8 == 0 and n <= 256 and k % 16 == 0, f"shape {m}x{n}x{k}")


@op("wgmma.wait", stages=_TILE, effects=(Effect.SYNC,), executes=Actor.ROLE, since="sm_90a")
class Wait(Op):
    """Wait until at most `pending` groups of this warpgroup are in flight; the result is `acc`,
    readable if its group is not among them."""

    acc: Value = operand()
    pending: int = attribute(default=0)

    def infer(self) -> tuple[Type, ...]:
        return (replace(any_tile_of(self.acc), pending=False),)

    def verify(self) -> None:
        check(any_tile_of(self.acc).pending, "nothing is in flight")
        check(self.pending >= 0, f"{self.pending} groups in flight")


@op(
    "wgmma.settle",
    stages=_TILE,
    effects=(Effect.SYNC,),
    executes=Actor.ROLE,
    since="sm_90a",
)
class Settle(Op):
    """Wait until at most `pending` groups are in flight; `acc` stays pending. What older groups
    read may be overwritten after this."""

    acc: Value = operand()
    pending: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (any_tile_of(self.acc),)

    def verify(self) -> None:
        check(any_tile_of(self.acc).pending, "nothing is in flight")
        check(self.pending >= 0, f"{self.pending} groups in flight")


@op("wgmma.fence", stages=_MACHINE, effects=(Effect.SYNC,), executes=Actor.WARP, since="sm_90a")
class Fence(Op):
    """Order earlier accesses to accumulator registers before the next product (wgmma.fence)."""


@op(
    "wgmma.mma", stages=_MACHINE, effects=(Effect.READ_SHARED,), executes=Actor.WARP, since="sm_90a"
)
class Mma(Op):
    """One instruction m64nNk16 on row block `block` of the accumulator (registers 2·block, 2·block
    + 1 of axis 0), in place: the result has the storage of `acc`.

    `a` and `b` are byte addresses of the first element. For each operand: `swizzle` span in bytes,
    `lead` and `stride` as the matrix descriptor takes them (bytes), `transposed` where the axis of
    K is not the contiguous one.
    """

    acc: Value = operand()
    a: Value = operand()
    b: Value = operand()
    block: int = attribute()
    n: int = attribute()
    dtype: DType = attribute()
    a_swizzle: int = attribute()
    a_lead: int = attribute()
    a_stride: int = attribute()
    a_transposed: bool = attribute()
    b_swizzle: int = attribute()
    b_lead: int = attribute()
    b_stride: int = attribute()
    b_transposed: bool = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (regs_of(self.acc),)

    def verify(self) -> None:
        acc = regs_of(self.acc)
        check(acc.dtype == f32 and len(acc.extents) == 2, "the accumulator is f32 of two axes")
        check(
            acc.extents[1] == self.n // 4 and 2 * self.block + 2 <= acc.extents[0],
            f"{acc} for n {self.n}",
        )
        check(
            scalar_of(self.a).dtype.is_int and scalar_of(self.b).dtype.is_int, "addresses are i32"
        )


@op("wgmma.commit", stages=_MACHINE, effects=(Effect.SYNC,), executes=Actor.WARP, since="sm_90a")
class Commit(Op):
    """Close a group of products (wgmma.commit_group)."""


@op(
    "wgmma.wait_group", stages=_MACHINE, effects=(Effect.SYNC,), executes=Actor.WARP, since="sm_90a"
)
class WaitGroup(Op):
    """Wait until at most `pending` groups are in flight and bind `acc`, in place: what reads the
    result comes after the wait."""

    acc: Value = operand()
    pending: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (regs_of(self.acc),)


@op("wgmma.drain", effects=(Effect.SYNC,), executes=Actor.ROLE, since="sm_90a")
class Drain(Op):
    """Wait until at most `pending` groups of this warpgroup are in flight, binding no accumulator:
    what older groups read may be overwritten after this."""

    pending: int = attribute(default=0)

    def verify(self) -> None:
        check(self.pending >= 0, f"{self.pending} groups in flight")

"""The matrix unit of a warpgroup: asynchronous D += A·B, B in shared memory, A there or in
registers. PTX wgmma. What it can do is listed in `base/target.py`.

The accumulator of a 64-row block lives in the registers of four warps: warp w, lane l holds rows
16w + l/4 and 16w + l/4 + 8, columns 8j + 2(l mod 4) and the next one. `ir/layout/fragments.py`
states this as a layout. Operand and result of a product are one storage.
"""

from __future__ import annotations

from dataclasses import replace

from warploom.base.dtypes import DType, bf16, f8e4m3, f8e5m2, f16, f32, i8, i32, u8
from warploom.base.target import Product, product_of
from warploom.ir.op import Actor, Effect, Op, Stage, Value, attribute, check, op, operand
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.scalar import scalar_of
from warploom.ir.ops.shared import single_of
from warploom.ir.ops.tile import any_tile_of, tile_of
from warploom.ir.types import SharedTile, Tile, Type

_TILE = Stage.TILE | Stage.ROLES
_MACHINE = Stage.MACHINE


@op("wgmma.begin", stages=_TILE, executes=Actor.THREAD, since="sm_90a", dtypes=(f32, i32))
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
    dtypes=(f16, bf16, f32, f8e4m3, f8e5m2, i8, u8),
)
class Dot(Op):
    """Begin acc + a·b for a of shape (M, K), b of (K, N), acc of (M, N), and close a group. The
    result must not be read before `wgmma.wait`. M is a multiple of 64 a warpgroup of the role; a
    lies in shared memory or in registers, b in shared memory."""

    a: Value = operand()
    b: Value = operand()
    acc: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        return (any_tile_of(self.acc),)

    def verify(self) -> None:
        a = tile_of(self.a) if isinstance(self.a.type, Tile) else single_of(self.a)
        b, acc = single_of(self.b), any_tile_of(self.acc)
        check(acc.pending, "the accumulator has not begun")
        (m, k), (k2, n) = a.shape, b.shape
        check(k == k2 and acc.shape == (m, n), f"{a.shape} times {b.shape} into {acc.shape}")
        can = _product(a.dtype, b.dtype)
        check(acc.dtype == can.sums, f"sums of {acc.dtype}")
        for axis, extent in zip("MNK", (m, n, k), strict=True):
            check(can.takes(axis, extent), f"{axis} = {extent} of {a.dtype}")
        if isinstance(a, SharedTile):
            check(can.turned or a.order[1] == 1, f"a of {a.dtype} is not contiguous along K")
        check(can.turned or b.order[0] == 1, f"b of {b.dtype} is not contiguous along K")


def _product(a: DType, b: DType) -> Product:
    found = product_of(a, b)
    check(found is not None, f"{a} times {b}")
    assert found is not None
    return found


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
    """One instruction on row block `block` of the accumulator (registers 2·block, 2·block + 1 of
    axis 0), in place: the result has the storage of `acc`. Its depth follows from the dtypes.
    `fresh`: what the block held counts as 0 and is not read.

    `a` and `b` are byte addresses of the first element. For each operand: `dtype`, `swizzle` span
    in bytes, `lead` and `stride` as the matrix descriptor takes them (bytes), `transposed` where
    the axis of K is not the contiguous one.
    """

    acc: Value = operand()
    a: Value = operand()
    b: Value = operand()
    block: int = attribute()
    n: int = attribute()
    a_dtype: DType = attribute()
    a_swizzle: int = attribute()
    a_lead: int = attribute()
    a_stride: int = attribute()
    a_transposed: bool = attribute()
    b_dtype: DType = attribute()
    b_swizzle: int = attribute()
    b_lead: int = attribute()
    b_stride: int = attribute()
    b_transposed: bool = attribute()
    fresh: bool = attribute(default=False)

    def infer(self) -> tuple[Type, ...]:
        return (regs_of(self.acc),)

    def verify(self) -> None:
        _check_accumulator(self, _product(self.a_dtype, self.b_dtype))
        check(
            scalar_of(self.a).dtype.is_int and scalar_of(self.b).dtype.is_int, "addresses are i32"
        )
        turned = self.a_transposed or self.b_transposed
        check(
            not turned or _product(self.a_dtype, self.b_dtype).turned,
            f"{self.a_dtype} times {self.b_dtype} across K",
        )


def _check_accumulator(op: Mma | MmaRegisters, can: Product) -> None:
    acc = regs_of(op.acc)
    check(
        acc.dtype == can.sums and len(acc.extents) == 2,
        f"the accumulator is {can.sums} of two axes",
    )
    check(can.takes("N", op.n), f"N = {op.n} of {op.b_dtype}")
    check(acc.extents[1] == op.n // 4 and 2 * op.block + 2 <= acc.extents[0], f"{acc} for n {op.n}")


@op(
    "wgmma.mma_registers",
    stages=_MACHINE,
    effects=(Effect.READ_SHARED,),
    executes=Actor.WARP,
    since="sm_90a",
)
class MmaRegisters(Op):
    """`wgmma.mma` with A in registers: the fragment of K step `step` (32 bytes of a row) of row
    block `block` of `a`, whose layout is `operand` of `ir/layout/fragments.py`."""

    acc: Value = operand()
    a: Value = operand()
    b: Value = operand()
    block: int = attribute()
    step: int = attribute()
    n: int = attribute()
    b_dtype: DType = attribute()
    b_swizzle: int = attribute()
    b_lead: int = attribute()
    b_stride: int = attribute()
    b_transposed: bool = attribute()
    fresh: bool = attribute(default=False)

    @property
    def a_dtype(self) -> DType:
        """The element type of A."""
        return regs_of(self.a).dtype

    @property
    def run(self) -> int:
        """Neighbouring registers of a row that one 32-bit register of the instruction holds."""
        return 4 // self.a_dtype.bytes

    def infer(self) -> tuple[Type, ...]:
        return (regs_of(self.acc),)

    def verify(self) -> None:
        a = regs_of(self.a)
        can = _product(a.dtype, self.b_dtype)
        _check_accumulator(self, can)
        check(scalar_of(self.b).dtype.is_int, "an address is i32")
        check(not self.b_transposed or can.turned, f"{a.dtype} times {self.b_dtype} across K")
        rows, columns = 2 * self.block + 2, 2 * self.run * (self.step + 1)
        check(rows <= a.extents[0] and columns <= a.extents[1], f"{a} has no step {self.step}")


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

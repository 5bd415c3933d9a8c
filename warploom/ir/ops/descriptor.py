"""Descriptors of the tensor copy engine that a kernel makes itself. PTX tensormap.replace,
tensormap.cp_fenceproxy, fence.proxy.tensormap.

They lie in global memory, in a tensor of rows of 16 i64 (128 bytes) that the launch brings. A copy
by one names that tensor and the row. Knows nothing of how a launch describes its arguments.
"""

from __future__ import annotations

from warploom.base.dtypes import i32, i64
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
from warploom.ir.ops.scalar import scalar_of, tensor_of
from warploom.ir.ops.shared import shared_of, single_of

WORDS = 16  # i64 of a descriptor
MOST_AXES = 5
_EFFECTS = (Effect.WRITE_GLOBAL, Effect.WRITE_SHARED)


def _check_row(room: Value, number: Value) -> None:
    kind = tensor_of(room)
    check(kind.dtype == i64 and kind.rank == 2, f"{room} holds no descriptors")
    check(scalar_of(number).dtype == i32, "the number of a descriptor is an i32")


def _check_axes(extents: tuple[Value, ...], strides: tuple[Value, ...]) -> None:
    check(1 <= len(extents) <= MOST_AXES, f"{len(extents)} axes")
    check(len(strides) == len(extents) - 1, "a stride for each axis but the contiguous one")
    check(all(scalar_of(n).dtype == i32 for n in extents), "extents are i32")
    check(all(scalar_of(n).dtype == i64 for n in strides), "strides are i64")


@op(
    "descriptor.make",
    stages=Stage.TILE | Stage.ROLES,
    effects=_EFFECTS,
    executes=Actor.WARP,
    since="sm_90",
)
class Make(Op):
    """Write row `number` of `room`: what lies from element `start` of `tensor` on, with these
    extents and strides (in elements; the last axis is contiguous), to be copied in the boxes of the
    tile `like`. `scratch` is shared memory of one descriptor."""

    room: Value = operand()
    number: Value = operand()
    tensor: Value = operand()
    start: Value = operand()
    extents: tuple[Value, ...] = operands()
    strides: tuple[Value, ...] = operands()
    scratch: Value = operand()
    like: Value = operand()

    def verify(self) -> None:
        _check_row(self.room, self.number)
        _check_axes(self.extents, self.strides)
        tile = shared_of(self.like)
        check(len(self.extents) == len(tile.shape), "the axes of the tile")
        check(tile.dtype == tensor_of(self.tensor).dtype, "the dtype of the tile")
        single_of(self.scratch)


@op(
    "descriptor.write",
    stages=Stage.MACHINE,
    effects=_EFFECTS,
    executes=Actor.WARP,
    since="sm_90",
)
class Write(Op):
    """The same by one warp, from map number `map` of the kernel, which has all but address, extents
    and strides. They are put in at byte `address` of shared memory, and the whole is copied to its
    row and released to the copy engine. It traps where the engine could not take them."""

    room: Value = operand()
    number: Value = operand()
    tensor: Value = operand()
    start: Value = operand()
    extents: tuple[Value, ...] = operands()
    strides: tuple[Value, ...] = operands()
    address: Value = operand()
    map: int = attribute()

    def verify(self) -> None:
        _check_row(self.room, self.number)
        _check_axes(self.extents, self.strides)
        check(scalar_of(self.start).dtype == i64, "the start is an i64")
        check(scalar_of(self.address).dtype == i32, "the address is an i32")


@op("descriptor.acquire", effects=(Effect.SYNC,), executes=Actor.WARP, since="sm_90")
class Acquire(Op):
    """What was released of row `number` of `room` is seen by the copies that threads begin after
    this."""

    room: Value = operand()
    number: Value = operand()

    def verify(self) -> None:
        _check_row(self.room, self.number)


@op("descriptor.prefetch", effects=(Effect.OUTSIDE,), since="sm_90")
class Prefetch(Op):
    """Have row `number` of `room` read ahead of the first copy by it. PTX prefetch.tensormap."""

    room: Value = operand()
    number: Value = operand()

    def verify(self) -> None:
        _check_row(self.room, self.number)

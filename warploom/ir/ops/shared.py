"""Tiles in shared memory before the machine stage: allocation, views, moves to and from registers.

A view moves no data. lower_tiles turns buffers and views into byte addresses.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from warploom.base.dtypes import DType, bf16, boolean, f8e4m3, f8e5m2, f16, f32, i32
from warploom.ir.layout.shared import SharedLayout
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
from warploom.ir.ops.scalar import scalar_of
from warploom.ir.ops.tile import tile_of
from warploom.ir.types import SharedTile, Tile, Type

_TILE = Stage.TILE | Stage.ROLES
_DTYPES = (f32, f16, bf16, f8e4m3, f8e5m2, i32, boolean)


def shared_of(value: Value) -> SharedTile:
    """The type of a value that must be a tile (or slots of tiles) in shared memory."""
    check(isinstance(value.type, SharedTile), f"{value} is not in shared memory")
    assert isinstance(value.type, SharedTile)
    return value.type


def single_of(value: Value) -> SharedTile:
    """The type of a value that must be one tile in shared memory, no ring of slots."""
    s = shared_of(value)
    check(s.slots == 0, f"{value} has {s.slots} slots: choose one")
    return s


class Allocation(Op):
    """What both ways to allocate have in common."""

    if TYPE_CHECKING:
        dtype: DType
        shape: tuple[int, ...]
        slots: int
        swizzle: int

    def infer(self) -> tuple[Type, ...]:
        check(len(self.shape) >= 1 and all(n >= 1 for n in self.shape), f"shape {self.shape}")
        check(self.slots >= 0, f"{self.slots} slots")
        try:
            layout = SharedLayout(self.shape, self.dtype.bytes, self.swizzle)
        except ValueError as error:
            check(False, str(error))
            raise
        order = tuple(range(len(self.shape)))
        return (SharedTile(self.dtype, self.shape, layout, order, self.slots),)


@op("shared.alloc", stages=_TILE, effects=(Effect.ALLOCATE,), executes=Actor.BLOCK)
class Alloc(Allocation):
    """`slots` tiles (0: one, without an index) in the block's shared memory for the whole kernel,
    at top level. `swizzle` is the span in bytes: 0, 32, 64 or 128. Uninitialised."""

    dtype: DType = attribute()
    shape: tuple[int, ...] = attribute()
    slots: int = attribute(default=0)
    swizzle: int = attribute(default=0)


@op("shared.alias", stages=_TILE, effects=(Effect.ALLOCATE,), executes=Actor.BLOCK)
class Alias(Allocation):
    """The same on the bytes of another allocation: each slot begins where a slot of `base` begins,
    or with `behind` where it ends. Where one has k times the slots of the other, k of them in a row
    lie in the place of one."""

    base: Value = operand()
    dtype: DType = attribute()
    shape: tuple[int, ...] = attribute()
    slots: int = attribute(default=0)
    swizzle: int = attribute(default=0)
    behind: bool = attribute(default=False)

    def verify(self) -> None:
        check(isinstance(self.base.owner, Allocation), f"{self.base} is no allocation")


@op("shared.slot", stages=_TILE, executes=Actor.WARP)
class Slot(Op):
    """Tile number `index` of a ring of slots."""

    buffer: Value = operand()
    index: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        s = shared_of(self.buffer)
        check(s.slots > 0, f"{self.buffer} has no slots")
        check(scalar_of(self.index).dtype == i32, "the slot number is an i32")
        return (SharedTile(s.dtype, s.shape, s.layout, s.order),)


@op("shared.permute", stages=_TILE, executes=Actor.WARP)
class Permute(Op):
    """A view whose axis i is axis order[i] of the operand."""

    value: Value = operand()
    order: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        s = shared_of(self.value)
        check(sorted(self.order) == list(range(len(s.shape))), f"order {self.order}")
        shape = tuple(s.shape[a] for a in self.order)
        order = tuple(s.order[a] for a in self.order)
        return (SharedTile(s.dtype, shape, s.layout, order, s.slots),)


@op("shared.window", stages=_TILE, executes=Actor.WARP)
class Window(Op):
    """The sub-tile of `sizes` at `starts` of a single tile. Along rows a start is a multiple of the
    swizzle's cycle (8 rows), along the contiguous axis of a whole panel. A tile of one axis has no
    swizzle."""

    value: Value = operand()
    starts: tuple[Value, ...] = operands()
    sizes: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        s = single_of(self.value)
        rank = len(s.shape)
        check(len(self.starts) == len(self.sizes) == rank <= 2, "a window has one or two axes")
        check(rank == 2 or not s.layout.swizzle, "a swizzled tile has two axes")
        check(
            all(1 <= n <= e for n, e in zip(self.sizes, s.shape, strict=True)), "window too large"
        )
        return (SharedTile(s.dtype, self.sizes, s.layout, s.order),)


@op("shared.load", stages=_TILE, effects=(Effect.READ_SHARED,), executes=Actor.ROLE, dtypes=_DTYPES)
class Load(Op):
    """A tile of registers from a tile in shared memory (generic proxy)."""

    source: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        s = single_of(self.source)
        return (Tile(s.dtype, s.shape),)


@op(
    "shared.store",
    stages=_TILE,
    effects=(Effect.WRITE_SHARED,),
    executes=Actor.ROLE,
    dtypes=_DTYPES,
)
class Store(Op):
    """Write a tile of registers to a tile in shared memory (generic proxy)."""

    target: Value = operand()
    value: Value = operand()

    def verify(self) -> None:
        s, t = single_of(self.target), tile_of(self.value)
        check(s.shape == t.shape and s.dtype == t.dtype, f"{t} stored to {s}")


@op("shared.reshape", stages=_TILE, executes=Actor.WARP)
class Reshape(Op):
    """The same elements in the same order under another shape. Without a swizzle, and of whole
    tiles (or slots) only."""

    value: Value = operand()
    shape: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        s = shared_of(self.value)
        check(not s.layout.swizzle, "a swizzled tile has its shape for good")
        check(s.layout.shape == s.shape, "a window or turned view is no whole tile")
        check(s.order == tuple(range(len(s.shape))), "a turned view is no whole tile")
        check(prod(self.shape) == prod(s.shape) and bool(self.shape), f"{s.shape} as {self.shape}")
        layout = SharedLayout(self.shape, s.dtype.bytes, 0)
        return (SharedTile(s.dtype, self.shape, layout, tuple(range(len(self.shape))), s.slots),)


@op("shared.reinterpret", stages=_TILE, executes=Actor.WARP)
class Reinterpret(Op):
    """The same bytes as elements of another dtype, of a whole tile (or slots): under any shape of
    as many bytes without a swizzle, else with the same rows."""

    value: Value = operand()
    dtype: DType = attribute()
    shape: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        s = shared_of(self.value)
        order = tuple(range(len(self.shape)))
        check(s.layout.shape == s.shape, "a window or turned view is no whole tile")
        check(s.order == tuple(range(len(s.shape))), "a turned view is no whole tile")
        layout = SharedLayout(self.shape, self.dtype.bytes, s.layout.swizzle)
        check(layout.bytes == s.layout.bytes, f"{layout.bytes} bytes of {s.layout.bytes}")
        same = layout.row_bytes == s.layout.row_bytes
        check(same or not layout.swizzle, "a swizzled tile keeps its rows")
        return (SharedTile(self.dtype, self.shape, layout, order, s.slots),)


def _check_index(tile: Value, index: Value, axis: int) -> None:
    s, i = single_of(tile), tile_of(index)
    check(0 <= axis < len(s.shape) == len(i.shape), f"axis {axis} of {s}")
    check(i.dtype == i32, f"indices {i}")
    fits = all(a == axis or n <= s.shape[a] for a, n in enumerate(i.shape))
    check(fits, f"indices {i} for {s} along axis {axis}")


@op(
    "shared.gather",
    stages=_TILE,
    effects=(Effect.READ_SHARED,),
    executes=Actor.ROLE,
    dtypes=_DTYPES,
)
class Gather(Op):
    """In place of each index the element at that coordinate of `axis`, the other coordinates being
    those of the index itself; zero where the index is outside."""

    source: Value = operand()
    index: Value = operand()
    axis: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Tile(single_of(self.source).dtype, tile_of(self.index).shape),)

    def verify(self) -> None:
        _check_index(self.source, self.index, self.axis)


@op(
    "shared.element",
    stages=_TILE,
    effects=(Effect.READ_SHARED,),
    executes=Actor.ROLE,
    dtypes=_DTYPES,
)
class Element(Op):
    """The element at computed coordinates, as a tile of one; zero where they are outside."""

    source: Value = operand()
    index: tuple[Value, ...] = operands()

    def infer(self) -> tuple[Type, ...]:
        s = single_of(self.source)
        return (Tile(s.dtype, (1,) * len(s.shape)),)

    def verify(self) -> None:
        check(len(self.index) == len(single_of(self.source).shape), "an index for each axis")
        check(all(scalar_of(i).dtype == i32 for i in self.index), "indices are i32")


@op(
    "shared.scatter",
    stages=_TILE,
    effects=(Effect.WRITE_SHARED,),
    executes=Actor.ROLE,
    dtypes=_DTYPES,
)
class Scatter(Op):
    """Write each element of `value` to where `shared.gather` would read it; nothing where the index
    is outside. Of several elements for one place one is written."""

    target: Value = operand()
    value: Value = operand()
    index: Value = operand()
    axis: int = attribute()

    def verify(self) -> None:
        _check_index(self.target, self.index, self.axis)
        v, i = tile_of(self.value), tile_of(self.index)
        check(v.shape == i.shape, f"{v} at {i}")
        check(v.dtype == single_of(self.target).dtype, f"{v} stored to {self.target}")

"""Tiles in shared memory: buffers, slots, views, and moves to and from registers."""

from __future__ import annotations

from typing import Any

from warploom.base.dtypes import DType
from warploom.ir import types
from warploom.ir.op import Value
from warploom.ir.ops import shared as shared_ops
from warploom.language import core
from warploom.language.context import Handle, Refused, builder, vocabulary
from warploom.language.tile import extent_of
from warploom.language.values import Ds, Tile, index_value, need_dtype, need_tile


class Shared(Handle):
    """A tile in shared memory, or several slots of one; a view moves nothing."""

    attributes = ("dtype", "shape", "T", "load", "store")

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        kind = self.type
        slots = f"{kind.slots} slots of " if kind.slots else ""
        return f"{slots}{core.with_article(kind.dtype)} tile of shape {self.shape} in shared memory"

    @property
    def type(self) -> types.SharedTile:
        """The IR type."""
        return shared_ops.shared_of(self.value)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one slot."""
        return self.type.shape

    @property
    def T(self) -> Shared:
        """The transposed view."""
        order = tuple(reversed(range(len(self.shape))))
        return Shared(builder().emit(shared_ops.Permute(value=self.value, order=order)))

    def __getitem__(self, index: Any) -> Shared:
        """A slot `ring[i]`, or a window `tile[wl.ds(row, ROWS), :]`."""
        if self.type.slots:
            slot = index_value(index, "[0]")
            return Shared(builder().emit(shared_ops.Slot(buffer=self.value, index=slot)))
        return self._window(index)

    def _window(self, index: Any) -> Shared:
        entries = index if isinstance(index, tuple) else (index,)
        if len(entries) != len(self.shape) or len(entries) != 2:
            raise Refused("T006", f"{len(entries)} indices for {self!r}")
        starts: list[Value] = []
        sizes: list[int] = []
        for entry, extent in zip(entries, self.shape, strict=True):
            if isinstance(entry, slice) and entry == slice(None):
                starts.append(builder().const(0))
                sizes.append(extent)
            elif isinstance(entry, Ds):
                starts.append(index_value(entry.start))
                sizes.append(entry.size)
            else:
                raise Refused(
                    "T009",
                    "a window of a shared tile is `wl.ds(start, SIZE)` or `:` along each axis",
                )
        made = shared_ops.Window(value=self.value, starts=tuple(starts), sizes=tuple(sizes))
        return Shared(builder().emit(made))

    def load(self) -> Tile:
        """The elements in registers.

        Shapes: that of the tile. Executes: the role. Since: sm_80. PTX: ld.shared.
        """
        return Tile(builder().emit(shared_ops.Load(source=self.value)))

    def store(self, tile: Tile) -> None:
        """Write a tile of registers; shapes and dtypes are equal.

        Executes: the role. Since: sm_80. PTX: st.shared.
        """
        held = need_tile(tile, "tile")
        if held.shape != self.shape or held.dtype != self.dtype:
            raise Refused(
                "T005",
                f"{core.describe(held.value)} does not fit {self!r}",
                argument="tile",
                hint=f"cast it: `.cast(wl.{self.dtype})`" if held.shape == self.shape else "",
            )
        builder().add(shared_ops.Store(target=self.value, value=held.value))


@vocabulary
def shared(shape: Any, dtype: DType, slots: int = 0, swizzle: int | None = None) -> Shared:
    """A tile in the block's shared memory for the whole kernel, or a ring of `slots` of them.

    `swizzle` is the span in bytes within which 16-byte chunks are mixed (128, 64, 32, or 0 for
    none); copies and products need it to agree, so by default the widest that divides a row is
    taken.

    Shapes: constants. Executes: the block, before its roles split. Since: sm_80.
    """
    axes = shape if isinstance(shape, tuple | list) else (shape,)
    extents = tuple(extent_of(n, "shape") for n in axes)
    kind = need_dtype(dtype)
    if isinstance(slots, bool) or not isinstance(slots, int) or slots < 0:
        raise Refused("F027", "`slots` is a constant from 0 up", argument="slots")
    row = extents[-1] * kind.bytes
    if swizzle is None:
        rank_two = len(extents) >= 2
        swizzle = next((s for s in (128, 64, 32) if rank_two and row % s == 0), 0)
    if swizzle not in (0, 32, 64, 128) or (swizzle and row % swizzle):
        raise Refused(
            "L012",
            f"rows of {row} bytes cannot be swizzled over {swizzle}",
            argument="swizzle",
            hint="use 128, 64 or 32, a divisor of the row's bytes, or 0",
        )
    made = shared_ops.Alloc(dtype=kind, shape=extents, slots=slots, swizzle=swizzle)
    return Shared(builder().emit(made))

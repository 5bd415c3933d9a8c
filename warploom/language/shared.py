"""Tiles in shared memory: buffers, slots, views, and moves to and from registers."""

from __future__ import annotations

from math import prod
from typing import Any, Protocol

from warploom.base.dtypes import DType, i32
from warploom.ir import types
from warploom.ir.layout.shared import ATOM_ROWS
from warploom.ir.op import Op, Value
from warploom.ir.ops import shared as shared_ops
from warploom.ir.ops import tile as tile_ops
from warploom.language import core
from warploom.language.cluster import rank_value
from warploom.language.context import (
    Handle,
    Refused,
    builder,
    current,
    need_all_threads,
    need_count,
    need_top,
    vocabulary,
)
from warploom.language.remote import RemoteShared
from warploom.language.tile import extent_of
from warploom.language.values import (
    Ds,
    Scalar,
    Tile,
    core_axis,
    index_value,
    need_dtype,
    need_tile,
)


class Owner(Protocol):
    """What a tile belongs to for a while: an item of a pipe."""

    read_by_threads: bool  # by ordinary loads

    def check_held(self) -> None:
        """Refuse the use of a tile that was handed back."""
        ...

    def note_product(self) -> None:
        """A group of products reads a tile."""
        ...


class Shared(Handle):
    """A tile in shared memory, or several slots of one; views of it move nothing."""

    attributes = (
        *("dtype", "shape", "T", "on", "load", "store", "gather", "scatter"),
        *("reshape", "reinterpret"),
    )
    hint = "load it to registers: `t = tile.load()`"

    def __init__(self, value: Value, item: Owner | None = None) -> None:
        self.value = value
        self.item = item  # of a pipe, that it belongs to

    def __repr__(self) -> str:
        kind = self.type
        tile = f"{kind.dtype} tile of shape {core.shape_text(self.shape)} in shared memory"
        if kind.slots:
            return f"{kind.slots} slots of {core.with_article(tile)}"
        return core.with_article(tile)

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
    def bytes(self) -> int:
        """Bytes of one slot's elements."""
        return prod(self.shape) * self.dtype.bytes

    @property
    def T(self) -> Shared:
        """The transposed view."""
        order = tuple(reversed(range(len(self.shape))))
        return self._view(shared_ops.Permute(value=self.value, order=order))

    def on(self, rank: Any) -> RemoteShared:
        """The tile (or slots, or view) at the same place of block `rank` of the cluster.

        Shapes: that of the tile.
        Executes: every thread of the role.
        Since: sm_90.
        PTX: mapa.
        """
        if self.item is not None:
            raise Refused(
                "P046",
                "a tile of a pipe is reached in a peer, whose pipe does not count it",
                hint="copy with `multicast=` in a pipe with `cluster=True`, or use a shared tile "
                "and barriers of your own",
            )
        return RemoteShared(self, rank_value(rank, "rank"))

    def __getitem__(self, index: Any) -> Any:
        """A slot `ring[i]`, a window `tile[wl.ds(row, ROWS), :]` or `vector[wl.ds(start, N)]` (from
        a multiple of 16 bytes on), or one element `tile[i, j]`: a scalar that every thread of the
        role reads, zero where an index is outside."""
        entries = index if isinstance(index, tuple) else (index,)
        if not self.type.slots:
            one = all(isinstance(e, int | Scalar) and not isinstance(e, bool) for e in entries)
            return self._element(entries) if one else self._window(index)
        slot = slot_number(index, self.type.slots, repr(self))
        return self._view(shared_ops.Slot(buffer=self.value, index=slot))

    def _view(self, op: Op) -> Shared:
        return Shared(builder().emit(op), self.item)

    def _element(self, entries: tuple[Any, ...]) -> Scalar:
        if len(entries) != len(self.shape):
            raise Refused(
                "T006", f"{len(entries)} indices for {self!r}", hint="give one entry an axis"
            )
        need_all_threads("all threads of the role read the element")
        self.check_single()
        at: list[Value] = []
        for axis, (entry, extent) in enumerate(zip(entries, self.shape, strict=True)):
            if isinstance(entry, int) and not 0 <= entry < extent:
                raise Refused(
                    "T013", f"{entry} does not fit an axis of {extent}", argument=f"[{axis}]"
                )
            at.append(core.convert(index_value(entry, f"[{axis}]"), i32))
        if self.item is not None:
            self.item.read_by_threads = True
        made = builder().emit(shared_ops.Element(source=self.value, index=tuple(at)))
        for _ in at:
            made = builder().emit(tile_ops.DropAxis(value=made, axis=0))
        return Scalar(builder().emit(tile_ops.ToScalar(value=made)))

    def _window(self, index: Any) -> Shared:
        entries = index if isinstance(index, tuple) else (index,)
        most = 1 if self.type.layout.swizzle else 0
        if len(entries) != len(self.shape) or not most < len(entries) <= 2:
            raise Refused(
                "T006", f"{len(entries)} indices for {self!r}", hint="give one entry an axis"
            )
        starts: list[Value] = []
        sizes: list[int] = []
        for axis, (entry, extent) in enumerate(zip(entries, self.shape, strict=True)):
            if isinstance(entry, slice) and entry == slice(None):
                starts.append(builder().const(0))
                sizes.append(extent)
            elif isinstance(entry, Ds):
                starts.append(self._start(entry, axis))
                sizes.append(entry.size)
            else:
                raise Refused(
                    "T009",
                    "a window of a shared tile is `wl.ds(start, SIZE)` or `:` along each axis",
                    argument=f"[{axis}]",
                )
        return self._view(
            shared_ops.Window(value=self.value, starts=tuple(starts), sizes=tuple(sizes))
        )

    def _start(self, entry: Ds, axis: int) -> Value:
        """The start of a window, refused where it is known to lie outside, or not known to lie on
        whole atoms of the swizzle."""
        start, extent = index_value(entry.start), self.shape[axis]
        facts = current().facts
        number = facts.constant(start)
        at = number or 0
        if at < 0 or at + entry.size > extent:
            raise Refused(
                "T013",
                f"{at}:{at + entry.size} does not fit an axis of {extent}",
                argument=f"[{axis}]",
            )
        step = self._step(axis)
        if facts.divisor(start) % step:
            where = "this start is not known to be one" if number is None else f"this is {number}"
            raise Refused(
                "L015",
                f"a window along axis {axis} of this tile starts at a multiple of {step}",
                argument=f"[{axis}]",
                notes=(where,),
                hint=f"write the start as `{step} * i`",
            )
        return start

    def _step(self, axis: int) -> int:
        """What the start of a window must be a multiple of."""
        layout = self.type.layout
        if self.type.order[axis] < len(self.shape) - 1:
            return ATOM_ROWS if layout.swizzle else 1
        return layout.panel_columns if layout.swizzle else max(1, 16 // layout.itemsize)

    def check_held(self) -> None:
        """Refuse the use of a tile of an item that was handed back."""
        if self.item is not None:
            self.item.check_held()

    def load(self) -> Tile:
        """The elements in registers.

        Shapes: that of the tile.
        Executes: the role.
        Since: sm_80.
        PTX: ld.shared.
        """
        self.check_single()
        if self.item is not None:
            self.item.read_by_threads = True
        return Tile(builder().emit(shared_ops.Load(source=self.value)))

    def store(self, tile: Tile) -> None:
        """Write a tile of registers; shapes and dtypes are equal.

        Executes: the role.
        Since: sm_80.
        PTX: st.shared.
        """
        self.check_single()
        held = need_tile(tile, "tile")
        if held.shape != self.shape or held.dtype != self.dtype:
            raise Refused(
                "T005",
                f"{core.describe(held.value)} does not fit {self!r}",
                argument="tile",
                hint=f"cast it: `.cast(wl.{self.dtype})`" if held.shape == self.shape else "",
            )
        builder().add(shared_ops.Store(target=self.value, value=held.value))

    def reshape(self, shape: Any) -> Shared:
        """A view of the same elements in the same order under another shape, without a move; of a
        whole tile without a swizzle (`swizzle=0`).

        Executes: nothing.
        Since: sm_80.
        """
        self.check_held()
        axes = shape if isinstance(shape, tuple | list) else (shape,)
        extents = tuple(extent_of(n, "shape") for n in axes)
        kind = self.type
        if prod(extents) != prod(self.shape):
            raise Refused("T005", f"{self!r} has no shape {core.shape_text(extents)}")
        whole = kind.layout.shape == kind.shape and kind.order == tuple(range(len(kind.shape)))
        if kind.layout.swizzle or not whole:
            why = "is swizzled" if kind.layout.swizzle else "is a window or turned"
            raise Refused(
                "L022",
                f"{self!r} {why}, so its elements do not lie in the order of another shape",
                hint="allocate it with swizzle=0, and reshape before taking windows",
            )
        return self._view(shared_ops.Reshape(value=self.value, shape=extents))

    def reinterpret(self, dtype: DType, shape: Any = None) -> Shared:
        """A view of the same bytes as elements of another dtype, of a whole tile or slots. Without
        `shape` the last axis gets longer or shorter; a swizzled tile keeps its rows.

        Shapes: constants, of as many bytes.
        Executes: nothing.
        Since: sm_80.
        """
        self.check_held()
        kind, own = need_dtype(dtype), self.type
        if kind.is_bool or own.dtype.is_bool:
            raise Refused("L024", "bits of bools and of other dtypes are not seen as each other")
        whole = own.layout.shape == own.shape and own.order == tuple(range(len(own.shape)))
        if not whole:
            raise Refused(
                "L022",
                f"{self!r} is a window or turned, so its bytes do not lie in a row",
                hint="reinterpret the tile before taking windows",
            )
        row = self.shape[-1] * own.dtype.bytes
        if shape is None:
            extents = (*self.shape[:-1], row // kind.bytes)
        else:
            axes = shape if isinstance(shape, tuple | list) else (shape,)
            extents = tuple(extent_of(n, "shape") for n in axes)
        size, its_row = prod(extents) * kind.bytes, extents[-1] * kind.bytes
        if size != self.bytes or (own.layout.swizzle and its_row != row):
            held = f"{self.bytes:,} bytes in rows of {row}"
            asked = f"{size:,} in rows of {its_row}"
            raise Refused(
                "L024",
                f"{self!r} is not {core.with_article(str(kind))} tile of shape "
                f"{core.shape_text(extents)}",
                notes=(f"it has {held}, and this would have {asked}",),
                hint="allocate it with swizzle=0"
                if prod(extents) * kind.bytes == self.bytes
                else "",
            )
        made = shared_ops.Reinterpret(value=self.value, dtype=kind, shape=extents)
        return self._view(made)

    def gather(self, index: Tile, axis: int = 0) -> Tile:
        """Elements at computed coordinates of an axis: for `axis=0`, `tile[index[i, j], j]`; zero
        where the index is outside.

        Shapes: an i32 tile of the tile's rank, no wider than it on the other axes; the result has
        its shape.
        Executes: the role.
        Since: sm_80.
        PTX: ld.shared.
        """
        at, along = self._index(index, axis)
        made = shared_ops.Gather(source=self.value, index=at.value, axis=along)
        return Tile(builder().emit(made))

    def scatter(self, index: Tile, value: Tile, axis: int = 0) -> None:
        """Write elements to computed coordinates of an axis: for `axis=0`,
        `tile[index[i, j], j] = value[i, j]`; nothing where the index is outside. Of several for one
        place one stays.

        Shapes: index and value alike, as in `gather`.
        Executes: the role.
        Since: sm_80.
        PTX: st.shared.
        """
        at, along = self._index(index, axis)
        held = need_tile(value, "value")
        if held.shape != at.shape or held.dtype != self.dtype:
            raise Refused(
                "T005",
                f"{core.describe(held.value)} does not fit indices of shape "
                f"{core.shape_text(at.shape)} into {self!r}",
                argument="value",
            )
        made = shared_ops.Scatter(target=self.value, value=held.value, index=at.value, axis=along)
        builder().add(made)

    def _index(self, index: Tile, axis: int) -> tuple[Tile, int]:
        """Checked indices, and the axis from 0."""
        self.check_single()
        at = need_tile(index, "index")
        along = core_axis(axis, len(self.shape), repr(self))
        if at.dtype != i32:
            raise Refused(
                "T018",
                f"an index is an i32, and this tile is {at.dtype}",
                argument="index",
                hint="cast it: `.cast(wl.i32)`",
            )
        others = [a for a in range(len(self.shape)) if a != along]
        fits = len(at.shape) == len(self.shape) and all(
            at.shape[a] <= self.shape[a] for a in others
        )
        if not fits:
            raise Refused(
                "T018",
                f"indices of shape {core.shape_text(at.shape)} along axis {along} do not fit "
                f"{self!r}",
                argument="index",
                hint="give one index an element of the result, no more than the tile has on the "
                "other axes",
            )
        return at, along

    def check_single(self) -> None:
        """Refuse several slots, and a tile of an item that was handed back."""
        self.check_held()
        if self.type.slots:
            raise Refused(
                "T015",
                f"{self!r}: choose one, `tiles[i]`",
                hint="write `tiles[i]` with the number of the slot",
            )


def slot_number(index: Any, count: int, owner: str) -> Value:
    """The number of one of `count` things."""
    if isinstance(index, int) and not isinstance(index, bool) and not 0 <= index < count:
        raise Refused("F037", f"number {index} is outside {owner}", argument="[0]")
    return core.convert(index_value(index, "[0]"), i32)


class Behind(Handle):
    """The place behind a shared tile, for `alias=`."""

    attributes = ()
    hint = "give it to `wl.shared(…, alias=…)`"

    def __init__(self, tile: Shared) -> None:
        self.tile = tile

    def __repr__(self) -> str:
        return f"the place behind {self.tile!r}"


@vocabulary
def behind(tile: Shared) -> Behind:
    """The place behind a shared tile, within the memory that it shares: for `alias=` of
    `wl.shared`.

    Shapes: a tile or slots of `wl.shared`, no view.
    Executes: nothing.
    Since: sm_80.
    """
    _need_allocation(tile, "tile")
    return Behind(tile)


def _need_allocation(tile: Any, argument: str) -> Value:
    """The allocation of a tile, which is no view of one."""
    if not isinstance(tile, Shared) or not isinstance(tile.value.owner, shared_ops.Allocation):
        raise Refused(
            "L025",
            f"{tile!r} is no tile of `wl.shared`",
            argument=argument,
            hint="name the allocation; for a view of the same bytes: `tile.reinterpret(dtype)`",
        )
    return tile.value


@vocabulary
def shared(
    shape: Any,
    dtype: DType,
    slots: int = 0,
    swizzle: int | None = None,
    alias: Shared | Behind | None = None,
) -> Shared:
    """A tile in the block's shared memory for the whole kernel, or a ring of `slots` of them.

    `swizzle` is the span in bytes within which 16-byte chunks are mixed (128, 64, 32, or 0 for
    none); copies and products need it to agree, so by default the widest that divides a row is
    taken.

    With `alias=a` it begins where `a` begins, on the same bytes, with `alias=wl.behind(a)` where
    `a` ends (or at the next multiple of its own alignment); slot lies on slot, k slots on one where
    it has k times as many. What is written to one is written over in the other: between uses of
    the two the kernel synchronises, as between two uses of one.

    Shapes: constants.
    Executes: the block, before its roles split.
    Since: sm_80.
    """
    axes = shape if isinstance(shape, tuple | list) else (shape,)
    extents = tuple(extent_of(n, "shape") for n in axes)
    kind = need_dtype(dtype)
    need_count("slots", slots, 0)
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
    need_top("a shared tile")
    if alias is None:
        made = shared_ops.Alloc(dtype=kind, shape=extents, slots=slots, swizzle=swizzle)
    else:
        is_behind = isinstance(alias, Behind)
        base = _need_allocation(alias.tile if isinstance(alias, Behind) else alias, "alias")
        made = shared_ops.Alias(
            dtype=kind, shape=extents, slots=slots, swizzle=swizzle, base=base, behind=is_behind
        )
    return Shared(builder().emit(made))

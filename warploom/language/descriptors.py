"""Descriptors of the tensor copy engine that a kernel makes itself, of parts of a tensor whose
place, extents and strides it learns at run time. Knows no copy."""

from __future__ import annotations

from typing import Any

from warploom.base.dtypes import i32, i64
from warploom.ir.op import Value
from warploom.ir.ops import descriptor
from warploom.ir.types import SharedTile
from warploom.language import core
from warploom.language.context import (
    Handle,
    Refused,
    acting_warps,
    builder,
    current,
    need_all_threads,
    need_count,
    need_one_thread,
    need_top,
    vocabulary,
)
from warploom.language.gathering import block_number
from warploom.language.kept import keep
from warploom.language.shared import Shared, shared, slot_number
from warploom.language.tensor import entries_of
from warploom.language.values import Scalar, Tensor, index_value, kind_of, not_a

_MOST = 64  # a block
_UNIT = 16  # bytes


class Descriptors(Handle):
    """`count` descriptors of a block, all for boxes of one shared tile."""

    def __init__(self, tensor: Tensor, tile: Shared, count: int) -> None:
        self.tensor, self.tile, self.count = tensor, tile, count
        # A parameter each: what a launch brings for it is zero, and of no use to the next launch.
        self.room = keep("descriptors", i64, 0, count, (descriptor.WORDS,))
        self.scratch = shared((2 * descriptor.WORDS,), i32, swizzle=0)
        self.scratch.value.name = "descriptor_in_work"
        self.first = core.binary("mul", block_number().value, count)

    def __repr__(self) -> str:
        plural = "s" if self.count > 1 else ""
        return f"{self.count} descriptor{plural}"

    def __getitem__(self, index: Any) -> Descriptor:
        """One of them."""
        at = slot_number(index, self.count, repr(self))
        return Descriptor(self, core.binary("add", self.first, core.convert(at, i32)))


class Descriptor(Handle):
    """One descriptor. `d[…]` is a window of what it describes, for copies."""

    attributes = ("make", "acquire", "prefetch")
    hint = "windows of it, `d[wl.ds(row, BM), wl.ds(column, BN)]`, go into `wl.copy_async`"

    def __init__(self, owner: Descriptors, number: Value) -> None:
        self.owner, self.number = owner, number

    def __repr__(self) -> str:
        return "a descriptor"

    @property
    def rank(self) -> int:
        """The number of its axes: those of the tile."""
        return len(self.owner.tile.shape)

    def make(
        self, start: Scalar | int, shape: Any, strides: Any = None, acquire: bool = True
    ) -> None:
        """Describe what lies from element `start` of the tensor's memory on, with this shape and
        these strides in elements (row-major where they are left out). Extents are from 1 up, the
        last stride is 1; the byte of `start` and all other strides are multiples of 16 bytes: on
        others the GPU traps and the simulator reports M036.

        The copies that the warp begins after this use it; with `acquire=False` they need
        `d.acquire()` first. Others use it behind what orders them after the `acquire`. It is made
        anew when the copies that used it are done.

        Executes: a role of one warp.
        Since: sm_90.
        PTX: tensormap.replace, tensormap.cp_fenceproxy, fence.proxy.tensormap::generic.
        """
        _need_warp("make a descriptor")
        extents = self._axes("shape", shape)
        steps = extents[1:] if strides is None else self._axes("strides", strides)
        if strides is None:
            steps = [core.convert(n, i64) for n in steps]
            for axis in reversed(range(len(steps) - 1)):
                steps[axis] = core.binary("mul", steps[axis], steps[axis + 1])
        else:
            self._check_strides(steps)
            steps = [core.convert(n, i64) for n in steps[:-1]]
        self._check_start(start)
        owner = self.owner
        current().written.add(owner.room.param)
        builder().add(
            descriptor.Make(
                room=owner.room.value,
                number=self.number,
                tensor=owner.tensor.value,
                start=core.convert(index_value(start, "start"), i64),
                extents=tuple(core.convert(n, i32) for n in extents),
                strides=tuple(steps),
                scratch=owner.scratch.value,
                like=owner.tile.value,
            )
        )
        if acquire:
            self.acquire()

    def acquire(self) -> None:
        """See what `make` has released, which happened before: the copies that the warp begins
        after this use it.

        Executes: every warp of the role.
        Since: sm_90.
        PTX: fence.proxy.tensormap::generic.acquire.
        """
        _need_all("see a descriptor")
        room = self.owner.room.value
        builder().add(descriptor.Acquire(room=room, number=self.number))

    def prefetch(self) -> None:
        """Have the descriptor read ahead of the first copy by it; in `wl.one_thread()`.

        Executes: one thread.
        Since: sm_90.
        PTX: prefetch.tensormap.
        """
        need_one_thread("read it ahead")
        room = self.owner.room.value
        builder().add(descriptor.Prefetch(room=room, number=self.number))

    def __getitem__(self, index: Any) -> MadeWindow:
        """A window: one entry an axis, each `wl.ds` or `a : a + CONST`."""
        starts, sizes = entries_of(index, self.rank, repr(self))
        if None in sizes:
            raise Refused(
                "T006",
                "a window by a descriptor has all the axes of its tile",
                hint="`wl.ds(start, SIZE)` for each; a tile may have axes of 1 element",
            )
        return MadeWindow(self, starts, tuple(n for n in sizes if n is not None))

    def _axes(self, argument: str, given: Any) -> list[Value]:
        """One integer an axis."""
        if not isinstance(given, tuple | list) or len(given) != self.rank:
            found = f"{len(given)} of them" if isinstance(given, tuple | list) else kind_of(given)
            raise Refused(
                "T006",
                f"`{argument}` is one integer an axis, {self.rank} here, not {found}",
                argument=argument,
                notes=(f"the descriptor is for boxes of {self.owner.tile!r}",),
            )
        return [index_value(n, argument) for n in given]

    def _check_strides(self, steps: list[Value]) -> None:
        facts, size = current().facts, self.owner.tensor.dtype.bytes
        if facts.constant(steps[-1]) != 1:
            raise Refused(
                "L010",
                "the copy engine moves rows whose elements are neighbours",
                argument="strides",
                hint="the last stride is the constant 1; describe the transposed tensor, and use "
                "the tile's `.T`",
            )
        for axis, step in enumerate(steps[:-1]):
            number = facts.constant(step)
            if number is not None and (number <= 0 or number * size % _UNIT):
                raise _off_unit("strides", f"a stride of {number * size} bytes (axis {axis})")

    def _check_start(self, start: Any) -> None:
        size = self.owner.tensor.dtype.bytes
        number = start if isinstance(start, int) and not isinstance(start, bool) else None
        if number is not None and (number < 0 or number * size % _UNIT):
            raise _off_unit("start", f"a start at byte {number * size}")


class MadeWindow(Handle):
    """A window of what a descriptor describes: only copies take it."""

    hint = "`wl.copy_async` moves it to a shared tile, or a shared tile to it"

    def __init__(self, made: Descriptor, starts: tuple[Value, ...], sizes: tuple[int, ...]) -> None:
        self.made, self.starts, self.sizes = made, starts, sizes

    def __repr__(self) -> str:
        return f"a window of shape {core.shape_text(self.sizes)} by a descriptor"

    @property
    def tensor(self) -> Tensor:
        """What the descriptor describes a part of."""
        return self.made.owner.tensor

    def check(self, tile: Shared | None) -> None:
        """Refuse a copy that is not of the boxes that the descriptor was made for."""
        like = self.made.owner.tile
        fits = tile is None or _boxes(like.type) == _boxes(tile.type)
        if self.sizes != like.shape or not fits:
            raise Refused(
                "T005",
                f"the descriptor is for boxes of {like!r}",
                notes=(repr(self), *(() if tile is None else (f"the copy is of {tile!r}",))),
                hint="make descriptors for this tile, `wl.descriptors(x, tile)`",
            )


def _boxes(kind: SharedTile) -> tuple[object, ...]:
    """What tiles have in common that are copied in the same boxes."""
    layout = kind.layout
    return kind.dtype, kind.shape, kind.order, layout.swizzle, layout.panel_columns


def _off_unit(argument: str, what: str) -> Refused:
    return Refused(
        "L010",
        f"the copy engine takes multiples of {_UNIT} bytes from 0 on, and this is {what}",
        argument=argument,
        hint="pad rows to a multiple of 16 bytes, or use `wl.load`",
    )


def _need_all(what: str) -> None:
    held = current()
    if held.put is not None or held.send is not None:
        raise Refused(
            "P027",
            f"one thread fills an item, and a whole warp shall {what}",
            hint="put it in front of the `put`",
        )
    need_all_threads(f"a whole warp shall {what}")


def _need_warp(what: str) -> None:
    _need_all(what)
    warps = acting_warps()
    if warps != 1:
        raise Refused(
            "P047",
            f"{warps} warps would {what}",
            hint='put it into a role of one warp, `with wl.role("load", warps=1):`',
        )


def _check_tile(tensor: Tensor, tile: Any) -> SharedTile:
    if not isinstance(tile, Shared):
        raise not_a("a shared tile", tile, "tile")
    kind = tile.type
    if kind.dtype != tensor.dtype:
        raise Refused(
            "T005",
            f"{tile!r} does not fit {core.with_article(tensor.dtype)} tensor",
            argument="tile",
        )
    if kind.order != tuple(range(len(kind.shape))):
        raise Refused(
            "L010",
            "the boxes of a turned tile are those of the tile as it is stored",
            argument="tile",
            hint="describe the tile itself, and use its `.T` where it is read",
        )
    if len(kind.shape) > descriptor.MOST_AXES:
        raise Refused(
            "L010",
            f"the copy engine knows up to {descriptor.MOST_AXES} axes, and this tile has "
            f"{len(kind.shape)}",
            argument="tile",
        )
    return kind


@vocabulary
def descriptors(tensor: Tensor, tile: Shared, count: int = 1) -> Descriptors:
    """`count` descriptors for each block, to be made by the kernel (`d[i].make(start, shape)`) of
    parts of `tensor` whose place, extents and strides it computes or reads: the problems of a
    group, say, whose sizes lie in a table. `wl.copy_async(d[i][wl.ds(m, BM), wl.ds(k, BK)], tile)`
    then copies as by those that a launch makes for windows of its arguments.

    `tile` gives the boxes: every copy by them is of a tile (or of rows of one) of its shape and
    swizzle.

    In a pipe of S stages that one role fills, S + 1 descriptors taken in turn need no wait: when
    one is made again, the copies that used it are done, if each was used.

    Shapes: constants.
    Executes: the block, before its roles split.
    Since: sm_90.
    """
    if not isinstance(tensor, Tensor):
        raise not_a("a tensor", tensor, "tensor")
    if tensor.value is not tensor.root:
        raise Refused(
            "L010",
            "the copy engine knows whole tensors, and this is a part by `rows`",
            argument="tensor",
            hint="give the tensor itself; `make` takes the start and the extents",
        )
    need_count("count", count, 1, _MOST)
    need_top("room for descriptors")
    _check_tile(tensor, tile)
    return Descriptors(tensor, tile, count)

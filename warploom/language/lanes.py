"""Threads by number, and exchange within warps: tiles with one element a thread."""

from __future__ import annotations

from typing import Any

from warploom.base.dtypes import boolean, i32
from warploom.ir.op import Value
from warploom.ir.ops import lanes, sync
from warploom.language import core
from warploom.language.context import (
    Refused,
    acting_warps,
    builder,
    need_all_threads,
    vocabulary,
)
from warploom.language.values import Scalar, Tile, index_value, need_tile


def _number(kind: str) -> Tile:
    need_all_threads("the numbers of all are asked for")
    return Tile(builder().emit(lanes.Number(kind=kind, threads=32 * acting_warps())))


@vocabulary
def thread_id() -> Tile:
    """The number of each thread in its role (in the block, where there are no roles), as a tile
    with one element a thread.

    Shapes: (threads,), i32.
    Executes: every thread.
    Since: sm_80.
    """
    return _number("thread")


@vocabulary
def lane_id() -> Tile:
    """The number of each thread in its warp, 0 to 31, as a tile with one element a thread.

    Shapes: (threads,), i32.
    Executes: every thread.
    Since: sm_80.
    """
    return _number("lane")


@vocabulary
def warp_id() -> Tile:
    """The number of each thread's warp in its role, as a tile with one element a thread.

    Shapes: (threads,), i32.
    Executes: every thread.
    Since: sm_80.
    """
    return _number("warp")


def _one_a_thread(given: Any, argument: str) -> Tile:
    tile, threads = need_tile(given, argument), 32 * acting_warps()
    if tile.shape != (threads,):
        raise Refused(
            "T022",
            f"one element a thread is needed here, a tile of shape {(threads,)}",
            argument=argument,
            notes=(core.describe(tile.value),),
            hint="`wl.thread_id()` and what is computed from it have that shape",
        )
    return tile


@vocabulary
def ballot(value: Tile) -> Tile:
    """In each thread the mask of its warp: bit i says whether `value` holds in lane i.

    Shapes: a bool tile (threads,) gives an i32 tile (threads,).
    Executes: every warp.
    Since: sm_80.
    PTX: vote.sync.ballot.
    """
    need_all_threads("a ballot asks whole warps")
    tile = _one_a_thread(value, "value")
    if tile.dtype != boolean:
        raise Refused(
            "T004",
            f"`ballot` is defined for bool, not for {tile.dtype}",
            argument="value",
            hint="compare it with something, such as `t > 0`",
        )
    return Tile(builder().emit(lanes.Vote(value=tile.value)))


@vocabulary
def shuffle(value: Tile, lane: Tile | Scalar | int) -> Tile:
    """In each thread what lane `lane` (modulo 32) of its warp holds. All dtypes.

    `wl.shuffle(t, wl.lane_id() ^ 1)` swaps neighbours, `wl.shuffle(t, 0)` spreads lane 0.

    Shapes: (threads,); `lane` is an i32 tile of that shape, a scalar or a number.
    Executes: every warp.
    Since: sm_80.
    PTX: shfl.sync.idx.
    """
    need_all_threads("a shuffle is made by whole warps")
    tile = _one_a_thread(value, "value")
    if isinstance(lane, Tile):
        source = _one_a_thread(lane, "lane").value
        if core.dtype_of(source) != i32:
            raise Refused(
                "T015",
                f"a lane is an i32, not {core.dtype_of(source)}",
                argument="lane",
                hint="cast it: `.cast(wl.i32)`",
            )
    else:
        source = _spread(core.convert(index_value(lane, "lane"), i32), tile)
    return Tile(builder().emit(lanes.Read(value=tile.value, lane=source)))


def _spread(number: Value, tile: Tile) -> Value:
    return core.spread(number, tile.shape)


@vocabulary
def warp_sync() -> None:
    """The lanes of each warp meet; orders their accesses to memory.

    Shapes: none.
    Executes: every warp.
    Since: sm_80.
    PTX: bar.warp.sync.
    """
    need_all_threads("the lanes of a warp meet")
    builder().add(sync.WarpSync(why="written in the kernel"))

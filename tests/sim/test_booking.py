"""Ordinary writes before asynchronous accesses: fences and meetings; barriers that nobody made."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.codegen.asynchronous import Asynchronous
from warploom.base.dtypes import i32, i64
from warploom.ir.ops import index, mbarrier, shared_memory, sync, tma
from warploom.sim.program import prepare

Step = Callable[[Asynchronous], None]


def fence(m: Asynchronous) -> None:
    m.build.add(sync.FenceAsync())


def fence_of_one(m: Asynchronous) -> None:
    with m.one_thread():
        fence(m)


def meet(m: Asynchronous) -> None:
    m.build.add(sync.Barrier(threads=32 * m.warps))


def written_out(steps: list[Step], warps: int) -> list[Any]:
    """Findings where every warp writes its part of a tile, `steps` follow, and one thread copies
    the tile to y."""
    m = Asynchronous()
    m.warps = warps
    y = m.tensor("y", i32)
    tile = m.buffer("tile", i32, 32 * warps, align=128)
    number = m.map(y, (32 * warps,))
    warp = m.binary("mul", m.build.emit(index.Warp(rank=1)), m.splat(32, i32))
    offset = m.binary("add", warp, m.build.emit(index.Lane(rank=1)))
    m.build.add(shared_memory.Store(buffer=tile, value=m.splat(7, i32), offset=offset))
    for step in steps:
        step(m)
    with m.one_thread():
        m.build.add(
            tma.StoreBox(
                tensor=y,
                coordinates=(m.build.const(0),),
                address=m.address(tile),
                map=number,
                bytes=128 * warps,
            )
        )
        m.build.add(tma.Commit())
        m.build.add(tma.Wait())
    m.written.append(0)
    out = np.zeros(32 * warps, np.int32)
    found = prepare(m.kernel()).run((1,), [out], checked=True).findings
    assert (out == 7).all()
    return found


@pytest.mark.parametrize("steps", [[fence, meet], [meet, fence], [meet, fence_of_one]])
def test_a_fence_and_a_meeting_order_the_writes_of_all_warps(steps: list[Step]):
    assert not written_out(steps, 4)


@pytest.mark.parametrize(
    ("steps", "codes"),
    [
        ([], ["M016", "R101"]),
        ([meet], ["M016"]),
        ([fence_of_one], ["R101"]),
        ([fence_of_one, meet], ["M016"]),
        ([fence], ["R101"]),
    ],
)
def test_either_alone_is_not_enough(steps: list[Step], codes: list[str]):
    """A warp that the copying thread has not met races with it; what was not fenced after it was
    known lacks the fence."""
    assert [f.code for f in written_out(steps, 4)] == codes


def test_one_warp_needs_no_meeting():
    assert not written_out([fence], 1)
    assert not written_out([fence_of_one], 1)


def test_a_barrier_is_made_before_it_is_used():
    m = Asynchronous()
    m.tensor("y", i64)
    made = m.buffer("full", i64, 2)
    m.build.add(mbarrier.Wait(barrier=m.address(made, 8), parity=m.build.const(0)))
    found = prepare(m.kernel()).run((1,), [np.zeros(1, np.int64)], checked=True).findings
    assert [f.code for f in found] == ["M010"]
    assert "`full[1]`" in found[0].render()


def test_a_barrier_is_made_once():
    m = Asynchronous()
    m.tensor("y", i64)
    made = m.barriers("full", 1, 1)
    m.build.add(mbarrier.Init(barrier=m.address(made), arrivals=1))
    found = prepare(m.kernel()).run((1,), [np.zeros(1, np.int64)], checked=True).findings
    assert [f.code for f in found] == ["M010"]

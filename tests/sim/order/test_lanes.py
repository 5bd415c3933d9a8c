"""Lanes of one warp at one piece of memory: what orders them, and what does not."""

from collections.abc import Callable

import numpy as np
import pytest

from warploom.sim.order.engine import Engine
from warploom.sim.order.history import Does, History
from warploom.sim.order.problems import Kind, Problem

SIZE = 4
ALL = np.full(SIZE, 0xFFFF_FFFF, np.uint32)


def bits(*lanes: int) -> np.ndarray:
    """Element i belongs to lane `lanes[i]`."""
    return np.array([1 << lane for lane in lanes], np.uint32)


OWN, TURNED = bits(0, 1, 2, 3), bits(3, 2, 1, 0)


class Bench:
    """Two warps of one role and a piece of memory."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.engine = Engine(self.found.append)
        self.warps = self.engine.warps(2)
        self.memory = History(SIZE)
        self.sites = 0

    def lanes(self, does: Does, by: np.ndarray, warp: int = 0) -> None:
        """Lanes of a warp access all elements, each by the lanes of a mask."""
        self.sites += 1
        one, also = int(self.warps.lanes[warp]), int(self.warps.alone[warp])
        at = slice(0, SIZE)
        self.engine.access(self.memory, at, does, one, self.sites, also, bits=by)

    def alone(self, does: Does) -> None:
        """The thread that acts for the first warp accesses all elements."""
        self.sites += 1
        thread = int(self.warps.alone[0])
        self.engine.access(self.memory, slice(0, SIZE), does, thread, self.sites)

    def arrive_and_wait(self) -> None:
        """All lanes of both warps arrive at a barrier, and wait for each other."""
        book = self.engine.make("full", 64, "full")
        self.engine.arrive_all(book, self.warps, 32, "arrives")
        book.acquire(self.warps.all, 0)

    @property
    def races(self) -> list[tuple[int, int]]:
        """Pairs of sites that race, for want of a meeting of lanes."""
        assert all(p.kind is Kind.RACE and p.facts["lanes"] for p in self.found)
        return [(p.other, p.site) for p in self.found]


@pytest.mark.parametrize(
    ("first", "then"),
    [(Does.WRITE, Does.READ), (Does.READ, Does.WRITE), (Does.WRITE, Does.WRITE)],
    ids=["read", "overwritten", "written twice"],
)
def test_lanes_that_swap_elements_race(first: Does, then: Does):
    bench = Bench()
    bench.lanes(first, OWN)
    bench.lanes(then, TURNED)
    assert bench.races == [(1, 2)]


@pytest.mark.parametrize("then", [Does.READ, Does.WRITE])
def test_a_lane_knows_what_it_has_done_itself(then: Does):
    bench = Bench()
    bench.lanes(Does.WRITE, OWN)
    bench.lanes(then, OWN)
    assert not bench.races


MEETINGS: dict[str, Callable[[Bench], None]] = {
    "warp sync": lambda b: b.engine.warp_sync(b.warps),
    "barrier": lambda b: b.engine.meet(b.warps),
    "arrivals and waits": Bench.arrive_and_wait,
}


@pytest.mark.parametrize("meeting", MEETINGS.values(), ids=list(MEETINGS))
def test_what_orders_lanes(meeting: Callable[[Bench], None]):
    bench = Bench()
    bench.lanes(Does.WRITE, OWN)
    meeting(bench)
    bench.lanes(Does.READ, TURNED)
    meeting(bench) if meeting is not Bench.arrive_and_wait else bench.engine.meet(bench.warps)
    bench.lanes(Does.WRITE, OWN)
    assert not bench.races
    bench.lanes(Does.READ, TURNED)
    assert bench.races == [(3, 4)]


def test_fences_and_other_steps_order_no_lanes():
    bench = Bench()
    bench.lanes(Does.WRITE, OWN)
    bench.engine.fence(bench.warps.all, "all")
    bench.engine.fence_order(bench.warps.lanes)
    bench.lanes(Does.READ, TURNED)
    assert bench.races == [(1, 2)]


def test_lanes_that_hold_one_value():
    """All store it, each reads it again, all store the next one; nobody may overwrite it."""
    bench = Bench()
    for _ in range(2):
        bench.lanes(Does.WRITE, ALL)
    bench.lanes(Does.READ, ALL)
    assert not bench.races
    bench.lanes(Does.WRITE, ALL)
    assert bench.races == [(3, 4)]


def test_a_value_that_others_hold_too_is_not_overwritten_by_one():
    bench = Bench()
    bench.lanes(Does.WRITE, ALL)
    bench.lanes(Does.WRITE, OWN)
    assert bench.races == [(1, 2)]


def test_readers_of_two_accesses_count_together():
    bench = Bench()
    bench.lanes(Does.READ, OWN)
    bench.lanes(Does.READ, TURNED)
    bench.lanes(Does.WRITE, OWN)
    assert bench.races == [(2, 3)]


def test_the_one_that_acts_alone_is_the_first_lane():
    """What it has done, it knows as the first lane; the others learn it when they meet."""
    bench = Bench()
    bench.engine.warp_sync(bench.warps)
    bench.alone(Does.WRITE)
    bench.lanes(Does.READ, bits(0, 0, 0, 0))
    assert not bench.races
    bench.lanes(Does.READ, OWN)
    assert bench.races == [(1, 3)]
    assert bench.found[0].facts["cell"] == 1


def test_what_the_lanes_have_done_is_known_to_the_one_that_goes_on_alone():
    bench = Bench()
    bench.lanes(Does.WRITE, OWN)
    bench.engine.warp_sync(bench.warps)
    bench.alone(Does.WRITE)
    bench.engine.warp_sync(bench.warps)
    bench.lanes(Does.READ, TURNED)
    assert not bench.races


def test_copies_of_lanes():
    """Each lane waits for its own; the others know of them when they have met after that."""
    bench = Bench()
    engine, thread = bench.engine, int(bench.warps.lanes[0])
    for wait_first in (True, False):
        engine.thread_copy(thread, bench.memory, slice(0, SIZE), Does.WRITE, "copy", OWN)
        engine.copies(thread).close()
        for step in (0, 1):
            if (step == 0) is wait_first:
                engine.wait_copies(thread, 0)
            else:
                engine.warp_sync(bench.warps)
        bench.lanes(Does.READ, TURNED)
        engine.warp_sync(bench.warps)
        assert bool(bench.races) is not wait_first

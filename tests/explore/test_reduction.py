"""Exploration with and without partial-order reduction: the same verdict, the same faults and the
same states at the end, on kernels and on random tapes, most of them wrong."""

from collections.abc import Callable

import pytest

from tests.explore.instances import SMALL, explored
from tests.explore.programs import drawn, edited_ring
from warploom.runtime.launch import Call
from warploom.sim.explore.instance import Instance
from warploom.sim.explore.machine import Machine
from warploom.sim.explore.search import Searched, search

_LIMIT = 30_000


@pytest.mark.parametrize("name", SMALL)
def test_kernels(name: str):
    make, right = SMALL[name]
    one, every = explored(make()), explored(make(), reduced=False)
    assert one.complete
    assert every.complete
    assert [r.code for r in one.findings] == [r.code for r in every.findings]
    assert (not one.findings) == right
    assert one.ends == every.ends
    assert one.deadlocks == every.deadlocks
    assert one.states <= every.states
    assert one.interleavings <= every.interleavings


def test_right_kernels_have_one_interleaving():
    """Synchronisation that always resolves alike has one order of events."""
    right = [make for make, is_right in SMALL.values() if is_right]
    assert len(right) >= 10
    for make in right:
        found = explored(make())
        assert found.interleavings == 1
        assert found.states == found.transitions + 1


def compared(instance: Instance) -> tuple[Searched, Searched] | None:
    """Both searches; None where there are too many states for one of them."""
    one, every = Machine(instance), Machine(instance)
    reduced, whole = search(one, 200_000), search(every, _LIMIT, reduced=False)
    if not whole.complete:
        return None
    assert reduced.complete
    assert reduced.ends == whole.ends
    assert set(one.problems) == set(every.problems)
    return reduced, whole


def judged(draw: Callable[[int], Instance], seeds: range) -> tuple[int, int]:
    """How many were compared, and how many of them had no fault."""
    done = [found for seed in seeds if (found := compared(draw(seed))) is not None]
    return len(done), sum(r.interleavings == 1 and len(r.ends) == 1 for r, _ in done)


@pytest.mark.parametrize(("draw", "least"), [(drawn, 20), (edited_ring, 50)])
def test_random_tapes(draw: Callable[[int], Instance], least: int):
    count, right = judged(draw, range(400))
    assert count > 350
    assert least < right < count - 50


@pytest.mark.slow
@pytest.mark.parametrize("draw", [drawn, edited_ring])
def test_many_random_tapes(draw: Callable[[int], Instance]):
    count, _ = judged(draw, range(400, 4000))
    assert count > 3000


def test_a_call_that_is_not_explored_whole():
    make: Callable[[], Call] = SMALL["ring 5"][0]
    found = explored(make(), limit=5)
    assert not found.complete
    assert [r.code for r in found.findings] == ["K002"]
    assert found.states == 5

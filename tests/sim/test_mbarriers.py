"""Phases of mbarriers: arrivals, bytes, parities; named barriers."""

import pytest

from warploom.sim.barriers import Mbarrier, NamedBarrier


def test_parity_of_a_fresh_barrier():
    barrier = Mbarrier("`full`", "`full`", 1)
    assert barrier.passed(1)
    assert not barrier.passed(0)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_phase_takes_its_arrivals(count: int):
    barrier = Mbarrier("", "", count)
    for phase in range(4):
        assert barrier.phase == phase
        for _ in range(count):
            assert not barrier.passed(phase & 1)
            barrier.arrive(1)
        assert barrier.passed(phase & 1)
        assert not barrier.passed(1 - (phase & 1))


def test_a_phase_waits_for_its_bytes():
    barrier = Mbarrier("", "", 1)
    barrier.expect(300)
    barrier.arrive(1)
    barrier.complete(100)
    assert barrier.missing() == "200 of 300 bytes"
    assert barrier.phase == 0
    barrier.complete(200)
    assert barrier.phase == 1
    assert barrier.missing() == "1 of 1 arrival"


def test_bytes_may_come_before_they_are_announced():
    barrier = Mbarrier("", "", 2)
    barrier.complete(64)
    assert barrier.missing() == "2 of 2 arrivals and the announcement of 64 bytes"
    assert not barrier.overrun()
    barrier.expect(64)
    barrier.arrive(1)
    assert barrier.phase == 0
    barrier.arrive(1)
    assert barrier.phase == 1


def test_bytes_that_nobody_can_announce_any_more():
    barrier = Mbarrier("", "", 1)
    barrier.complete(64)
    barrier.arrive(1)
    assert barrier.overrun()
    barrier.forgive()
    assert barrier.phase == 1


def test_a_named_barrier_opens_for_all_its_threads_and_again():
    barrier = NamedBarrier()
    for generation in range(3):
        barrier.arrive(32, 96)
        assert barrier.generation == generation
        barrier.arrive(64, 96)
        assert barrier.generation == generation + 1

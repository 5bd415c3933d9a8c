"""What the machine of exploration does by the rules of the hardware, on tapes made by hand."""

from math import comb
from typing import Any

import pytest

from tests.explore.programs import Made, Named, instance
from warploom.sim.explore.machine import Fault, Machine
from warploom.sim.explore.search import Searched, search
from warploom.sim.explore.tape import Barrier, Copy, Counter, Event, What


def arrive(at: int = 0, count: int = 1) -> Event:
    return Event(What.ARRIVE, at, count, None)


def wait(at: int, parity: int) -> Event:
    return Event(What.WAIT, at, parity, None)


def announce(at: int, size: int) -> list[Event]:
    site = object()
    return [Event(What.EXPECT, at, 0, site, size), Event(What.ARRIVE, at, 1, site)]


def run(
    *warps: list[Event], counts: tuple[int, ...] = (1,), reduced: bool = False, **given: Any
) -> tuple[Machine, Searched]:
    """All interleavings of some warps of one block; `counts` of its barriers."""
    barriers = [Barrier(Named(f"b{i}"), count, "block", False) for i, count in enumerate(counts)]
    barriers += given.pop("meetings", [])
    blocks = ["block"] * len(warps)
    made = Made(list(warps), barriers, blocks=blocks, actors=[None] * len(warps), **given)
    machine = Machine(instance(made))
    return machine, search(machine, 100_000, reduced)


def faults(machine: Machine) -> set[Fault]:
    return {problem.fault for problem in machine.problems.values()}


@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 3), (2, 2), (3, 4)])
def test_all_interleavings_of_independent_warps_are_counted(left: int, right: int):
    """Two warps that only count, and end: each order once."""
    counters = [Counter(Named("c"), 0), Counter(Named("d"), 0)]
    warps = [[Event(What.ADD, c, 1, None)] * n for c, n in ((0, left), (1, right))]
    machine, found = run(*map(list, warps), counts=(), counters=counters)
    assert not machine.problems
    assert found.interleavings == comb(left + right + 2, left + 1)
    assert found.states == (left + 2) * (right + 2)
    assert len(found.ends) == 1
    _, found = run(*map(list, warps), counts=(), counters=counters, reduced=True)
    assert (found.interleavings, found.states) == (1, left + right + 3)


def test_a_wait_goes_by_the_parity_only():
    """The wait is for the phase before the first; two arrivals later it looks the same."""
    machine, found = run([arrive(), arrive()], [wait(0, 1)])
    assert faults(machine) == {Fault.WAIT}
    (problem,) = machine.problems.values()
    assert set(problem.ways) == {-1, 1}
    assert len(found.ends) == 1


def test_a_wait_that_a_later_phase_undoes_may_never_be_over():
    """Where the wait comes late, the phase after the one it is for has completed."""
    machine, found = run([arrive(), arrive()], [wait(0, 0)])
    assert faults(machine) == {Fault.STUCK}
    assert len(found.ends) == 2


def test_arrivals_of_two_warps_may_come_in_either_phase():
    machine, _ = run([arrive()], [arrive()])
    assert faults(machine) == {Fault.ARRIVAL}


def test_more_arrivals_than_a_phase_takes():
    machine, _ = run([arrive(count=2)])
    assert faults(machine) == {Fault.MANY}


def test_a_phase_waits_for_its_bytes():
    copies = [Copy(0, 16, 0, None, 0), Copy(0, 16, 0, None, 0)]
    begin = [Event(What.ISSUE, n, 0, None) for n in (0, 1)]
    machine, found = run([*announce(0, 32), *begin, wait(0, 0)], begun=copies)
    assert not machine.problems
    assert found.interleavings == 2  # either copy first


def test_bytes_may_come_before_they_are_announced():
    copies = [Copy(0, 16, 0, None, 0)]
    machine, _ = run([Event(What.ISSUE, 0, 0, None), *announce(0, 16), wait(0, 0)], begun=copies)
    assert not machine.problems


def test_bytes_that_nobody_announced():
    copies = [Copy(0, 32, 0, None, 0)]
    begin = Event(What.ISSUE, 0, 0, None)
    machine, _ = run([begin, *announce(0, 16), wait(0, 0)], begun=copies)
    assert Fault.SURPLUS in faults(machine)


def test_a_copy_that_comes_after_the_end():
    copies = [Copy(0, 16, 0, None, 0)]
    machine, _ = run([*announce(0, 16), Event(What.ISSUE, 0, 0, None)], begun=copies)
    assert faults(machine) == {Fault.GONE, Fault.INSIDE}


def test_a_barrier_that_ends_inside_a_phase():
    machine, _ = run([arrive()], counts=(2,))
    assert faults(machine) == {Fault.INSIDE}


def test_a_counter_whose_wait_takes_one_signal_or_another():
    counters = [Counter(Named("c"), 0)]
    until = Event(What.UNTIL, 0, 1, None)
    add = Event(What.ADD, 0, 1, None)
    machine, _ = run([add], [add], [until], counts=(), counters=counters)
    assert faults(machine) == {Fault.SIGNAL}
    both = until._replace(amount=2)
    machine, _ = run([add], [add], [both], counts=(), counters=counters)
    assert not machine.problems


def test_a_flag_that_is_taken_back():
    counters = [Counter(Named("f"), 0)]
    stores = [Event(What.STORE, 0, value, None) for value in (1, 0)]
    machine, found = run(stores, [Event(What.UNTIL, 0, 1, None)], counts=(), counters=counters)
    assert faults(machine) == {Fault.STUCK}
    assert len(found.ends) == 2


def test_words_are_waited_for_by_their_epoch():
    """A word that is sent anew before it is seen is never seen; two words sent together are one."""
    named = [Counter(Named(name), 0, exact=True) for name in ("w", "v")]
    sends = [Event(What.SEND, 0, 1, None), Event(What.SEND, 1, 2, None)]
    receive = Event(What.RECEIVE, 2, 1, None)
    machine, found = run(sends, [receive], counts=(), named=named, sets=[(0, 1)] * 3)
    assert faults(machine) == {Fault.STUCK}
    assert len(found.ends) == 2
    assert len(machine.instance.counters) == 1
    machine, _ = run(sends[:1], [receive], counts=(), named=named, sets=[(0, 1), (), (0, 1)])
    assert not machine.problems


def test_words_of_two_senders_are_waited_for_one_by_one():
    named = [Counter(Named(name), 0, exact=True) for name in ("w", "v")]
    sends = [[Event(What.SEND, n, 1, None)] for n in (0, 1)]
    receive = Event(What.RECEIVE, 2, 1, None)
    machine, _ = run(*sends, [receive], counts=(), named=named, sets=[(0,), (1,), (0, 1)])
    assert not machine.problems
    assert [s.what for s in machine.instance.steps[2]] == [What.UNTIL, What.UNTIL, What.END]


def test_a_meeting_waits_for_all():
    meeting = [Barrier("meeting", 2, None, True)]
    steps = [Event(What.COME, 0, 1, None), Event(What.MEET, 0, 0, None)]
    machine, found = run(list(steps), list(steps), counts=(), meetings=meeting)
    assert not machine.problems
    assert len(found.ends) == 1
    machine, _ = run(list(steps), [], counts=(), meetings=meeting)
    assert faults(machine) == {Fault.STUCK}


def test_the_barrier_of_a_cluster_does_not_wait_for_who_has_ended():
    meeting = [Barrier("cluster", 2, None, True, (0, 1))]
    steps = [Event(What.COME, 0, 1, None), Event(What.MEET, 0, 0, None)]
    machine, _ = run(steps, [], counts=(), meetings=meeting)
    assert not machine.problems


def test_copies_come_in_any_order():
    copies = [Copy(0, 16, 0, None, 0), Copy(1, 16, 0, None, 0)]
    begin = [Event(What.ISSUE, n, 0, None) for n in (0, 1)]
    events = [*announce(0, 16), *announce(1, 16), *begin, wait(1, 0), wait(0, 0)]
    machine, found = run(events, counts=(1, 1), begun=copies)
    assert not machine.problems
    assert found.interleavings == 3  # first 0, then 1; or 1, then 0 before or after the wait

"""The engine on the abstract machine: correct protocols, broken ones, and mutants, under several
schedules."""

from typing import Any

import numpy as np
import pytest

from tests.sim.order.abstract import Program, Result, run
from tests.sim.order.mutants import mutant
from tests.sim.order.protocols import BROKEN, CORRECT
from warploom.sim.order.problems import Kind, Problem

SEEDS = range(9)


def runs(program: Program, seeds: Any = SEEDS) -> list[Result]:
    return [run(program, seed) for seed in seeds]


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_protocol_is_silent_and_its_clocks_are_those_of_every_schedule(name: str):
    found = runs(CORRECT[name])
    assert all(result.clean for result in found), [r.problems for r in found if r.problems]
    assert all(result.clocks == found[0].clocks for result in found)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_protocol_is_found_under_every_schedule(name: str):
    found = runs(BROKEN[name], range(20))
    assert not any(result.clean for result in found)
    # Every seed shares a finding as a reader of the source would say it, or the standstill.
    told = [{_told(p) for p in r.problems} | ({"stuck"} if r.stuck else set()) for r in found]
    assert set.intersection(*told)


_PHASES = {Kind.ARRIVAL, Kind.MANY_ARRIVALS, Kind.EXPECT, Kind.BYTES}


def _told(problem: Problem) -> Any:
    """A finding without stage and phase: those of phases by family of barriers alone."""
    family = str(problem.object).rstrip("0123456789")
    if problem.kind in _PHASES:
        return ("phase", family)
    if not isinstance(problem.object, str):  # memory: either of two accesses may be the later one
        return (problem.kind, frozenset(site[0] for site in (problem.site, problem.other) if site))
    return (problem.kind, family, problem.site[0] if problem.site else "")


CLASSES = {
    "ring without wait": Kind.RACE,
    "ring without warp sync": Kind.WAIT,
    "ring refilled without fence": Kind.FENCE,
    "product not retired": Kind.RACE,
    "empties count one of two": Kind.ARRIVAL,
    "too few bytes announced": Kind.BYTES,
    "consumer stops early": Kind.LEFT,
    "token ring 3/2": Kind.WAIT,
    "skip that only waits": Kind.WAIT,
    "announced after the arrival": Kind.EXPECT,
    "a second arrival of the producer": Kind.MANY_ARRIVALS,
    "meeting one way": Kind.ARRIVAL,
    "grid barrier too low": Kind.SIGNAL,
    "epilogue without fence": Kind.FENCE,
    "epilogue refilled early": Kind.RACE,
    "multicast with local empties": Kind.BYTES,
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_default_schedule_names_the_class(name: str):
    assert CLASSES[name] in run(BROKEN[name]).kinds


def agrees(count: int, draw: int) -> dict[str, int]:
    """Compare the schedules of random mutants; what was seen of each sort."""
    rng = np.random.default_rng(draw)
    names = [name for name, program in CORRECT.items() if any(program.actors.values())]
    seen = {"clean": 0, "found": 0, "stable": 0}
    for _ in range(count):
        name = names[int(rng.integers(len(names)))]
        program = mutant(CORRECT[name], rng)
        found = runs(program, range(6))
        verdicts = {result.clean for result in found}
        assert len(verdicts) == 1, (name, program)
        seen["clean" if True in verdicts else "found"] += 1
        if not any(result.unstable for result in found):
            seen["stable"] += 1
            assert all(r.clocks == found[0].clocks for r in found), (name, program)
            assert all(r.stuck == found[0].stuck for r in found), (name, program)
    return seen


def test_mutants_get_one_verdict_and_stable_ones_one_order():
    seen = agrees(100, 1)
    assert min(seen.values()) > 10


@pytest.mark.slow
def test_two_thousand_mutants():
    seen = agrees(2000, 2)
    assert min(seen.values()) > 400

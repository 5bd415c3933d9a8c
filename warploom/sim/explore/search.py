"""The search: all interleavings of an instance, or one of each class of equivalent ones, depth
first over the distinct states. No state comes twice on a way, as each move takes some warp or copy
further. Knows nothing of what is found."""

from __future__ import annotations

from dataclasses import dataclass, field

from warploom.sim.explore.machine import Machine, Move, State
from warploom.sim.explore.reduction import persistent

LIMIT = 100_000
"""States after which a search gives up, unless told otherwise."""
_FURTHER = 5_000  # states that are still visited once something has been found


@dataclass
class Searched:
    """What a search has visited. `interleavings` that it went along, each from the first state to
    an end; `complete`: there are no others. `ends`: the states in which nothing moves."""

    reduced: bool
    limit: int
    states: int = 0
    transitions: int = 0
    interleavings: int = 0
    complete: bool = True
    ends: set[State] = field(default_factory=set)
    deepest: int = 0
    before: dict[State, tuple[State, Move] | None] = field(default_factory=dict)

    def way(self, state: State) -> list[tuple[State, Move]]:
        """The moves that lead to a state, each with the state that it is taken in."""
        found: list[tuple[State, Move]] = []
        last = self.before[state]
        while last is not None:
            found.append(last)
            last = self.before[last[0]]
        return found[::-1]


@dataclass(slots=True)
class _Place:
    """A state on the way that the search is at: moves still to be taken, interleavings so far."""

    state: State
    moves: list[Move]
    count: int = 0


def search(machine: Machine, limit: int = LIMIT, reduced: bool = True) -> Searched:
    """Visit all states that matter, up to `limit`. Problems are left with the machine."""
    found = Searched(reduced, limit)
    counts: dict[State, int] = {}  # interleavings from a state on, once all of them are known
    first = machine.first()
    stack = [_enter(machine, found, first, None)]
    last = 0  # states when the first problem was there
    while stack:
        place = stack[-1]
        if not place.moves:
            stack.pop()
            counts[place.state] = place.count
            if stack:
                stack[-1].count += place.count
            continue
        move = place.moves.pop()
        state = machine.take(place.state, move)
        found.transitions += 1
        if state in counts:
            place.count += counts[state]
            continue
        last = last or (found.states if machine.problems else 0)
        if found.states >= limit or (last and found.states > last + _FURTHER):
            found.complete = False
            break
        stack.append(_enter(machine, found, state, (place.state, move)))
        found.deepest = max(found.deepest, len(stack) - 1)
    # Where the search stopped early, these are the interleavings that it has gone to their ends.
    found.interleavings = sum(place.count for place in stack) if stack else counts[first]
    return found


def _enter(
    machine: Machine,
    found: Searched,
    state: State,
    before: tuple[State, Move] | None,
) -> _Place:
    found.states += 1
    found.before[state] = before
    moves = machine.moves(state)
    if found.reduced:
        moves = persistent(machine, state, moves, before[1] if before else None)
    if not moves:
        found.ends.add(state)
        machine.end(state)
        return _Place(state, [], 1)
    return _Place(state, moves[::-1])

"""Random tapes: warps that arrive, announce, copy, wait, meet, count and end, mostly wrong ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.sim.explore.instance import Instance
from warploom.sim.explore.tape import Barrier, Copy, Counter, Event, What


@dataclass
class Made:
    """What an instance takes from a tape."""

    events: list[list[Event]]
    barriers: list[Barrier]
    begun: list[Copy] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    blocks: list[Any] = field(default_factory=list)
    actors: list[Any] = field(default_factory=list)
    named: list[Counter] = field(default_factory=list)
    sets: list[tuple[int, ...]] = field(default_factory=list)


class Named:
    """The name of a barrier or counter."""

    def __init__(self, name: str) -> None:
        self.name = self.buffer = name


def instance(made: Made) -> Instance:
    """The instance of a tape; each warp ends."""
    for events in made.events:
        events.append(Event(What.END, 0, 0, None))
    return Instance(made)  # type: ignore[arg-type]


def drawn(seed: int) -> Instance:
    """A small instance: up to three warps in one block or two, that do up to five things each."""
    rng = np.random.default_rng(seed)
    warps = int(rng.integers(2, 4))
    blocks = ["a"] * warps if rng.random() < 0.7 else ["a", "b", "b"][:warps]
    place = [blocks[int(rng.integers(warps))] for _ in range(3)]
    barriers = [
        Barrier(Named(f"b{i}"), int(rng.integers(1, 3)), place[i], False)
        for i in range(int(rng.integers(1, 4)))
    ]
    mbarriers = len(barriers)
    barriers.append(Barrier(Named("meeting"), 2, None, True))
    if len(set(blocks)) > 1:
        barriers.append(Barrier(Named("cluster"), warps, None, True, tuple(range(warps))))
    counters = [Counter(Named("c"), 0), Counter(Named("f"), 0), Counter(Named("w"), 0, exact=True)]
    made = Made([[] for _ in range(warps)], barriers, [], counters, blocks, [None] * warps)
    for events in made.events:
        for _ in range(int(rng.integers(1, 6))):
            _draw(rng, made, events, mbarriers)
    return instance(made)


def edited_ring(seed: int) -> Instance:
    """A right ring of one producer and up to two consumers, with up to two events of it dropped,
    doubled, moved or changed."""
    rng = np.random.default_rng([seed, 1])
    slots, steps, readers = (int(rng.integers(1, high)) for high in (4, 5, 3))
    barriers = [Barrier(Named(f"full{s}"), 1, "a", False) for s in range(slots)]
    barriers += [Barrier(Named(f"empty{s}"), readers, "a", False) for s in range(slots)]
    warps = readers + 1
    made = Made([[] for _ in range(warps)], barriers, [], [], ["a"] * warps, [None] * warps)
    for step in range(steps):
        slot, lap = step % slots, step // slots % 2
        site = object()
        made.begun.append(Copy(slot, 16, 0, None, 0))
        made.events[0] += [
            Event(What.WAIT, slots + slot, lap ^ 1, None),
            Event(What.EXPECT, slot, 0, site, 16),
            Event(What.ARRIVE, slot, 1, site),
            Event(What.ISSUE, step, 0, None),
        ]
        for reader in range(1, warps):
            made.events[reader] += [
                Event(What.WAIT, slot, lap, None),
                Event(What.ARRIVE, slots + slot, 1, None),
            ]
    for _ in range(int(rng.integers(0, 3))):
        _edit(rng, made.events[int(rng.integers(warps))], 2 * slots)
    return instance(made)


def _edit(rng: np.random.Generator, events: list[Event], barriers: int) -> None:
    if not events:
        return
    at, way = int(rng.integers(len(events))), int(rng.integers(4))
    event = events[at]
    if way == 0:
        del events[at]
    elif way == 1 and event.what is not What.ISSUE:  # a copy is begun once
        events.insert(int(rng.integers(len(events) + 1)), event)
    elif way == 2:
        events.insert(int(rng.integers(len(events))), events.pop(at))
    elif event.what is What.WAIT:
        events[at] = event._replace(amount=1 - event.amount)
    elif event.what in (What.ARRIVE, What.EXPECT):
        events[at] = event._replace(at=int(rng.integers(barriers)))


def _draw(rng: np.random.Generator, made: Made, events: list[Event], mbarriers: int) -> None:
    at, way = int(rng.integers(mbarriers)), rng.random()
    if way < 0.3:
        events.append(Event(What.ARRIVE, at, 1, None))
    elif way < 0.65:
        events.append(Event(What.WAIT, at, int(rng.integers(2)), None))
    elif way < 0.8:
        site = object()
        size = int(rng.integers(1, 3)) * 16
        if rng.random() < 0.9:
            events.append(Event(What.EXPECT, at, 0, site, size))
            events.append(Event(What.ARRIVE, at, 1, site))
        if rng.random() < 0.9:
            arrivals = int(rng.random() < 0.2)
            made.begun.append(Copy(at, 0 if arrivals else 16, arrivals, None, 0))
            events.append(Event(What.ISSUE, len(made.begun) - 1, 0, None))
    elif way < 0.86:
        number = int(rng.integers(mbarriers, len(made.barriers)))
        events.append(Event(What.COME, number, 1, None))
        if made.barriers[number].cluster or rng.random() < 0.8:
            events.append(Event(What.MEET, number, 0, None))
    elif way < 0.9:
        done = sum(e.what is What.COMMIT for e in events)
        if done and rng.random() < 0.6:
            events.append(Event(What.RETIRE, 0, int(rng.integers(1, done + 1)), None))
        else:
            events.append(Event(What.COMMIT, 0, done + 1, None))
    elif way < 0.94:
        signal = int(rng.integers(3))
        what = What.STORE if signal == 2 or (signal and rng.random() < 0.6) else What.ADD
        events.append(Event(what, signal, int(rng.integers(1, 3)), None))
    else:
        events.append(Event(What.UNTIL, int(rng.integers(3)), int(rng.integers(1, 4)), None))

"""Who touched each element of a piece of memory, as far as later accesses can conflict with it.

A cell holds the number of a state: the last write and the accesses since then that are not ordered
before one another. Accesses are made tile by tile, so there are few states for many cells. Knows
clocks, not what the memory is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from warploom.sim.order.clocks import CAUSE, FENCED, READS
from warploom.sim.order.lanes import FIRST, LaneMap, Lanes

_MANY = 4096  # states from which the ones that no cell has are dropped


class Does(Enum):
    """What an access does: reductions in memory commute with each other."""

    READ = "read"
    WRITE = "write"
    REDUCE = "reduce"
    BARRIER = "barrier"  # holds a barrier, which only its own operations may touch


BLOCK, CLUSTER, GPU, SYSTEM = range(4)  # scopes, each wider than the one before


class Reach(NamedTuple):
    """How far an atomic access reaches: the threads of its `scope` around the block and cluster of
    the thread that made it."""

    scope: int = GPU
    block: Any = None
    cluster: Any = None

    def narrowed(self, scope: int) -> Reach:
        """The same, but not beyond a scope."""
        return self if self.scope <= scope else self._replace(scope=scope)

    def meets(self, other: Reach) -> bool:
        """Whether the scope of each includes the thread of the other: only then is one step of the
        one seen as one step by the other."""
        if self.block is other.block:
            return True
        within = CLUSTER if self.cluster is other.cluster else GPU
        return self.scope >= within and other.scope >= within


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One access by a component in an epoch. `generic`: by the generic proxy; `whole`: its clock
    holds all that happens before it, as a thread's does. `world` owns the component; `reach` is
    that of an atomic one."""

    component: int
    epoch: int
    does: Does
    generic: bool
    whole: bool
    site: Any
    world: Any = None
    reach: Reach | None = None

    @property
    def is_read(self) -> bool:
        """Whether it is a read by a thread, which is over when the thread goes on."""
        return self.does is Does.READ and self.generic and self.whole

    @property
    def changes(self) -> bool:
        """Whether what was there before is gone."""
        return self.does is Does.WRITE


class Conflict(NamedTuple):
    """An access that conflicts with an earlier one at a cell, as it lacks "order" or a "fence", as
    "lanes" of one warp have not met, as two atomic ones leave each other out ("scope"), or as a
    "barrier" lies there."""

    earlier: Access
    cell: int
    lacks: str


State = tuple[Access | None, tuple[Access, ...]]


class History:
    """The cells of one piece of memory. `fenced` is the row of clocks that its fences fill."""

    __slots__ = ("_lanes", "_limit", "cells", "fenced", "states")

    def __init__(self, cells: int, fenced: int = FENCED) -> None:
        self.cells = np.zeros(cells, np.int32)
        self.states: list[State] = [(None, ())]
        self.fenced = fenced
        self._limit = _MANY
        self._lanes: LaneMap | None = None

    def touch(
        self, at: Any, access: Access, clock: np.ndarray, lanes: Lanes | None = None
    ) -> list[Conflict]:
        """Make an access to cells (indices or a slice) by one who knows `clock`; gives what it
        conflicts with, one entry an earlier access. `lanes`: those of a warp, told apart."""
        held = self.cells[at]
        if held.size == 0:
            return []
        first = int(held.flat[0])
        conflicts: list[Conflict] = []
        if (held == first).all():
            followed = self._follow(first, access, clock, at, held, conflicts)
            if lanes is not None:
                self._tell_apart([first], access, at, held, lanes, conflicts)
            self.cells[at] = followed
        else:
            table = np.zeros(len(self.states), np.int32)
            numbers = _distinct(held, len(self.states)).tolist()
            for number in numbers:
                table[number] = self._follow(number, access, clock, at, held, conflicts)
            if lanes is not None:
                self._tell_apart(numbers, access, at, held, lanes, conflicts)
            self.cells[at] = table[held]
        if len(self.states) > self._limit:
            self._compact()
        return conflicts

    def _follow(
        self,
        number: int,
        access: Access,
        clock: np.ndarray,
        at: Any,
        held: np.ndarray,
        conflicts: list[Conflict],
    ) -> int:
        """The state that follows on a state by an access."""
        write, others = self.states[number]
        earlier = [*others, write] if write is not None else others
        for before in earlier:
            if before.does is Does.BARRIER:
                conflicts.append(Conflict(before, _cell(at, held, number), "barrier"))
                continue
            same = before.does is access.does and access.does is not Does.WRITE
            if same and _commute(before, access):
                continue
            lacks = _lacks(before, access, clock, self.fenced)
            if lacks is not None and not any(c.earlier is before for c in conflicts):
                lacks = "scope" if same else lacks
                conflicts.append(Conflict(before, _cell(at, held, number), lacks))
        if access.does is Does.WRITE:
            state: State = (access, ())
        else:
            kept = tuple(o for o in others if not _covered(o, access, clock))
            state = (write, (*kept, access))
        self.states.append(state)
        return len(self.states) - 1

    def _tell_apart(
        self,
        numbers: list[int],
        access: Access,
        at: Any,
        held: np.ndarray,
        lanes: Lanes,
        conflicts: list[Conflict],
    ) -> None:
        """Look at, and note, which lanes touch cells in states of these numbers."""
        for number in numbers:
            self._apart(number, access, at, held, lanes, conflicts)
        if self._lanes is None:
            self._lanes = LaneMap(len(self.cells))
        again = None
        if not access.changes:
            found = [n for n in numbers if any(_goes_on(o, access) for o in self.states[n][1])]
            if found:
                again = np.isin(held, found)
        self._lanes.note(at, access.component, lanes.bits, access.changes, again)

    def _apart(
        self,
        number: int,
        access: Access,
        at: Any,
        held: np.ndarray,
        lanes: Lanes,
        conflicts: list[Conflict],
    ) -> None:
        """What the warp knows to be over, and not each of its lanes."""
        write, others = self.states[number]
        for before in [*others, write] if write is not None else others:
            if before.does is access.does is not Does.WRITE or before.does is Does.BARRIER:
                continue
            known = lanes.share(before)
            if known is None:
                known = _lacks(before, access, lanes.clock, self.fenced) is None
            if known or any(c.earlier is before for c in conflicts):
                continue
            cells = (held == number) & self._by_others(before, access, at, lanes)
            if cells.any():
                conflicts.append(Conflict(before, _nth(at, int(cells.argmax())), "lanes"))

    def _by_others(self, before: Access, access: Access, at: Any, lanes: Lanes) -> np.ndarray:
        """At which cells other lanes than those that did something before do this."""
        if lanes.share(before) is None:
            return lanes.bits != FIRST
        assert self._lanes is not None
        return self._lanes.apart(before, at, lanes.bits, access.changes)

    def reserve(self, at: Any, access: Access) -> None:
        """A barrier lies in cells from now on."""
        self.cells[at] = len(self.states)
        self.states.append((access, ()))

    def _compact(self) -> None:
        used = _distinct(self.cells, len(self.states))
        table = np.zeros(len(self.states), np.int32)
        table[used] = np.arange(len(used))
        if used[0] != 0:  # state 0 stays that of untouched cells
            used = np.concatenate([[0], used])
            table[used[1:]] = np.arange(1, len(used))
        self.states = [self.states[n] for n in used]
        self.cells = table[self.cells]
        self._limit = max(_MANY, 2 * len(self.states))

    def accesses(self) -> Iterator[tuple[Access, int]]:
        """All accesses that later ones may conflict with, each with the number of its state."""
        for number in _distinct(self.cells, len(self.states)):
            write, others = self.states[number]
            for access in others if write is None else (*others, write):
                yield access, int(number)

    def first_cell(self, state: int) -> int:
        """The first cell in a state."""
        return int((self.cells == state).argmax())


def _lacks(before: Access, access: Access, clock: np.ndarray, fenced: int) -> str | None:
    """What is missing between two accesses: order, a fence, or nothing."""
    at = before.component
    if before.world is not access.world or at >= clock.shape[1]:
        return "order"
    known = clock[CAUSE, at] >= before.epoch
    if not known and not (before.is_read and clock[READS, at] >= before.epoch):
        return "order"
    if before.generic and not access.generic and clock[fenced, at] < before.epoch:
        return "fence"
    return None


def _commute(before: Access, access: Access) -> bool:
    """Whether two reads, or two atomic accesses, leave the same in either order."""
    one, other = before.reach, access.reach
    return one is None or other is None or one is other or one.meets(other)


def _covered(before: Access, access: Access, clock: np.ndarray) -> bool:
    """Whether all that is ordered after an access is ordered after an earlier one too."""
    if before.world is not access.world or before.generic is not access.generic:
        return False
    if before.does is not access.does or before.reach != access.reach:
        return False
    if before.component == access.component:
        return True
    at = before.component
    return access.whole and at < clock.shape[1] and clock[CAUSE, at] >= before.epoch


def _goes_on(before: Access, access: Access) -> bool:
    """Whether an access is another one of the same warp in the same epoch."""
    return before.component == access.component and before.epoch == access.epoch


def _distinct(numbers: np.ndarray, bound: int) -> np.ndarray:
    if bound <= 4 * numbers.size + 64:
        return np.flatnonzero(np.bincount(numbers.ravel(), minlength=1))
    return np.unique(numbers)


def _cell(at: Any, held: np.ndarray, number: int) -> int:
    return _nth(at, int((held.ravel() == number).argmax()))


def _nth(at: Any, place: int) -> int:
    """The cell at a place of those that are touched."""
    if isinstance(at, slice):
        return (at.start or 0) + place
    return int(np.asarray(at).ravel()[place])

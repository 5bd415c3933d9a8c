"""What is explored: for each warp a sequence of steps, made from a tape.

A step is one synchronisation and all that its warp does behind it up to the next one: ordinary
accesses, and copies that begin. Knows neither operations nor clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from warploom.sim.explore.tape import Barrier, Copy, Counter, Event, Tape, What


class Step(NamedTuple):
    """One step of a warp. `needs`: warps that must have gone so many steps; `begins`: copies that
    are under way behind it. For the rest see `Event`."""

    what: What
    at: int
    amount: int
    site: Any
    size: int = 0
    meant: int | None = None
    needs: tuple[tuple[int, int], ...] = ()
    begins: tuple[int, ...] = ()


class Instance:
    """Steps of all warps, and the objects that they name. `first`: copies that are under way before
    the first step of any warp."""

    def __init__(self, tape: Tape) -> None:
        self.barriers: list[Barrier] = tape.barriers
        self.copies: list[Copy] = tape.begun
        self.counters, self._groups = _with_words(tape)
        self.actors: list[Any] = tape.actors
        self.blocks: list[Any] = tape.blocks
        self.first: list[int] = []
        self.steps = self._steps(tape.events)
        self.stores = [False] * len(self.counters)  # flags, not counters
        self.targets: list[list[int]] = [[] for _ in self.counters]
        self.posts: list[list[tuple[int, int]]] = [[] for _ in self.counters]
        # Which steps of each warp come to the barrier of a cluster, by barrier.
        self.comes: dict[int, list[list[int]]] = {
            at: [[] for _ in self.steps] for at, b in enumerate(self.barriers) if b.cluster
        }
        for warp, steps in enumerate(self.steps):
            for place, step in enumerate(steps):
                self._note_signal(step, warp, place)

    def _note_signal(self, step: Step, warp: int, place: int) -> None:
        if step.what is What.COME and step.at in self.comes:
            self.comes[step.at][warp].append(place)
        if step.what is What.UNTIL:
            if step.amount not in self.targets[step.at]:
                self.targets[step.at].append(step.amount)
        elif step.what in (What.ADD, What.STORE):
            self.posts[step.at].append((warp, place))
            self.stores[step.at] |= step.what is What.STORE

    def signature(self) -> Any:
        """What two groups of blocks that do the same have in common."""
        bare = [[s._replace(site=_code(s.site)) for s in own] for own in self.steps]
        kinds = [(b.arrivals, b.meeting, b.cluster) for b in self.barriers]
        copies = [(c.barrier, c.size, c.arrivals, c.meant) for c in self.copies]
        first = [counter.first for counter in self.counters]
        return repr((bare, kinds, copies, first, self.first))

    @property
    def size(self) -> int:
        """Steps of all warps and copies."""
        return sum(map(len, self.steps)) + len(self.copies)

    def members(self, block: Any) -> list[int]:
        """The warps of a block."""
        return [w for w, own in enumerate(self.blocks) if own is block]

    # ---- from events to steps --------------------------------------------------------------

    def _steps(self, events: Sequence[list[Event]]) -> list[list[Step]]:
        parts = [self._of_warp(own) for own in events]
        gone = [counts for _, counts in parts]
        closed = _closed(events)
        made: list[list[Step]] = []
        for warp, (steps, _) in enumerate(parts):
            full = [s._replace(needs=_needs(s, warp, gone, closed)) for s in steps]
            made.append(full)
        return made

    def _of_warp(self, events: Sequence[Event]) -> tuple[list[Step], list[int]]:
        """The steps of a warp, and how many it has gone when an event is over."""
        steps: list[Step] = []
        gone: list[int] = []
        for event in events:
            last = steps[-1] if steps else None
            if event.what is What.ISSUE:
                if last is None:
                    self.first.append(event.at)
                else:
                    steps[-1] = last._replace(begins=(*last.begins, event.at))
            elif last is not None and _announced(last, event):
                steps[-1] = last._replace(amount=event.amount, meant=event.meant)
            elif event.what in (What.SEND, What.RECEIVE):
                what = What.STORE if event.what is What.SEND else What.UNTIL
                for group in self._groups[event.at]:
                    steps.append(Step(what, group, event.amount, event.site))
            elif event.what is not What.COMMIT:
                steps.append(Step(*event))
            gone.append(len(steps))
        return steps, gone


def _code(site: Any) -> int:
    return 0 if site is None else id(site.op)


def _with_words(tape: Tape) -> tuple[list[Counter], list[list[int]]]:
    """Counters and flags, and behind them words of flagged data: words that are always sent and
    received together are one. Gives the numbers of these, by set of words."""
    places: dict[int, list[int]] = {}
    for number, words in enumerate(tape.sets):
        for word in words:
            places.setdefault(word, []).append(number)
    groups: dict[Any, int] = {}
    counters = list(tape.counters)
    found: list[list[int]] = [[] for _ in tape.sets]
    for word, numbers in places.items():
        key = (*numbers, tape.named[word].first)
        if key not in groups:
            groups[key] = len(counters)
            counters.append(tape.named[word])
            for number in dict.fromkeys(numbers):
                found[number].append(groups[key])
    return counters, found


def _announced(last: Step, event: Event) -> bool:
    """Whether an arrival belongs to the announcement before it: they are one instruction."""
    if event.what is not What.ARRIVE or last.what is not What.EXPECT:
        return False
    return last.at == event.at and not last.amount and last.site is event.site


def _closed(events: Sequence[list[Event]]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Where each warp closes a group of products: warp and event, by unit and number of the
    group."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for warp, own in enumerate(events):
        for place, event in enumerate(own):
            if event.what is What.COMMIT:
                found.setdefault((event.at, event.amount), []).append((warp, place))
    return found


def _needs(
    step: Step,
    warp: int,
    gone: Sequence[Sequence[int]],
    closed: dict[tuple[int, int], list[tuple[int, int]]],
) -> tuple[tuple[int, int], ...]:
    """How far other warps must have come before a step."""
    if step.what is What.RETIRE:
        places = closed.get((step.at, step.amount), [])
    elif step.what is What.EXCHANGE and step.amount >= 0:
        places = [(step.amount, step.size)]
    else:
        return ()
    found = [(other, gone[other][place]) for other, place in places if other != warp]
    return tuple((other, count) for other, count in found if count)

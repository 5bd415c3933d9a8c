"""Partial-order reduction: one move that commutes with all that the others can do before it.

Such a move alone is a persistent set: every interleaving from the state on is equivalent to one
that begins with it. What the others can do without it is bounded from above: a wait of theirs goes
on as soon as its phase could have completed, whatever the order. Where no move passes, all are
taken. Knows no search.
"""

from __future__ import annotations

from typing import Any

from warploom.sim.explore.instance import Step
from warploom.sim.explore.machine import BYTES, PENDING, PHASE, Machine, Move, State
from warploom.sim.explore.tape import What
from warploom.sim.order.signals import Signal

_ALWAYS = (What.MEET, What.RETIRE, What.EXCHANGE)  # once possible they stay so, and change nothing
_ARRIVING = (What.ARRIVE, What.EXPECT, What.COME)


def persistent(
    machine: Machine, state: State, moves: list[Move], last: Move | None = None
) -> list[Move]:
    """Moves that need to be taken at a state: one of those possible where that is enough, else
    all. The warp that made the `last` move is tried first."""
    if len(moves) < 2:
        return moves
    if last in moves:
        moves = [last, *(move for move in moves if move != last)]
    ends: list[Move] = []
    others: list[Move] = []
    for move in moves:
        step = machine.step(state, move) if move >= 0 else None
        if step is not None and step.what in _ALWAYS:
            return [move]
        (ends if step is not None and step.what is What.END else others).append(move)
    for move in (*others, *ends):  # the last of a block to end seldom commutes
        if Others(machine, state, move).commute(move):
            return [move]
    return moves


class Others:
    """What all but one warp or copy can do at most while that one stays where it is.

    By barrier: arrivals and bytes that can come, the latest phase that it can be in (`latest`), and
    whether a wait is reached that is possible now (`held`), which a completion could undo. `seen`:
    by warp and barrier, the phase that a warp has certainly seen.
    """

    def __init__(self, machine: Machine, state: State, without: Move) -> None:
        self.machine, self.state, self.without = machine, state, without
        instance = machine.instance
        barriers, counters = len(instance.barriers), len(instance.counters)
        self.at = list(state[: machine.warps])
        self.marks = list(state[machine.marks : machine.values])
        self.arrivals, self.bytes = [0] * barriers, [0] * barriers
        self.announced: list[list[int]] = [[] for _ in range(barriers)]  # bytes, by arrival
        self.bare = [False] * barriers  # bytes are announced without an arrival
        self.latest = [self._number(at, PHASE) for at in range(barriers)]
        self.seen: dict[tuple[int, int], int] = {}
        self.held = [False] * barriers
        self.posts: list[list[Step]] = [[] for _ in range(counters)]
        self.waits: list[set[int]] = [set() for _ in range(counters)]  # targets, by signal
        self.touched: set[int] = set()  # blocks whose barriers others reach
        self.watched = self._barrier_of(without)  # once its phase can complete, nothing is gained
        self._stopped: dict[tuple[str, int], list[int]] = {}  # warps, by what could let them go on
        self._going = [warp for warp in range(machine.warps) if warp != without]
        self._begin()
        while self._going:
            self._advance(self._going.pop())

    def _barrier_of(self, move: Move) -> int:
        """The barrier that a move arrives or waits at; -1 for others."""
        if move < 0:
            return self.machine.instance.copies[-1 - move].barrier
        step = self.machine.step(self.state, move)
        return step.at if step is not None and step.what in (*_ARRIVING, What.WAIT) else -1

    def _begin(self) -> None:
        flying, copy = self.state[self.machine.flying], 0
        while flying:
            if flying & 1 and -1 - copy != self.without:
                self._fly(copy)
            flying >>= 1
            copy += 1

    def _fly(self, number: int) -> None:
        copy = self.machine.instance.copies[number]
        self.bytes[copy.barrier] += copy.size
        self.arrivals[copy.barrier] += copy.arrivals
        self.touched.add(id(self.machine.instance.barriers[copy.barrier].block))
        self._contributed(copy.barrier)

    def _advance(self, warp: int) -> None:
        """Let a warp go on as far as it can."""
        steps = self.machine.instance.steps[warp]
        first = at = self.at[warp]
        while at < len(steps) and self._passes(warp, steps[at]):
            at += 1
            self.at[warp] = at
        if self.watched >= 0 and self.may(self.watched):
            self._going.clear()  # it does not commute
            return
        if at > first:
            self._wake(("warp", warp))
        if at < len(steps):
            for cause in self._causes(steps[at]):
                self._stopped.setdefault(cause, []).append(warp)
        else:
            for barrier in self.machine.instance.comes:
                self._contributed(barrier)  # that of a cluster does not wait for who has ended

    def _causes(self, step: Step) -> list[tuple[str, int]]:
        """What may let a step pass."""
        if step.what in (What.WAIT, What.MEET):
            return [("barrier", step.at)]
        if step.what is What.UNTIL:
            return [("signal", step.at)]
        return [("warp", other) for other, count in step.needs if self.at[other] < count]

    def _wake(self, cause: tuple[str, int]) -> None:
        self._going += self._stopped.pop(cause, ())

    def _contributed(self, barrier: int) -> None:
        """Something has come to a barrier."""
        latest = self._latest(barrier)
        if latest > self.latest[barrier]:
            self.latest[barrier] = latest
            self._wake(("barrier", barrier))

    def may(self, barrier: int) -> bool:
        """Whether the phase of a barrier can complete."""
        return self.latest[barrier] > self._number(barrier, PHASE)

    def _number(self, barrier: int, which: int) -> int:
        return self.state[self.machine.warps + 3 * barrier + which]

    def _latest(self, at: int) -> int:
        """The latest phase that a barrier can be in. Bytes are counted for the first one only: as
        many as its arrivals announce at least."""
        barrier, phase = self.machine.instance.barriers[at], self._number(at, PHASE)
        lengths = self.machine.lengths
        ended = sum(self.at[w] == lengths[w] for w in barrier.cluster)  # come to every phase
        missing = self._number(at, PENDING) - self.arrivals[at] - ended
        if missing > 0:
            return phase
        # Arrivals that the phase takes of those that announce bytes, the fewest of them.
        announced = self.announced[at]
        count = self._number(at, PENDING) - (self.arrivals[at] - len(announced))
        size = sum(sorted(announced)[:count]) if count > 0 else 0
        if self.bytes[at] < self._number(at, BYTES) + size:
            return phase
        return phase + 1 + -missing // max(1, barrier.arrivals - ended)

    def _passes(self, warp: int, step: Step) -> bool:
        """Whether a warp may go beyond a step; notes what it does by it."""
        what, at = step.what, step.at
        if what in _ARRIVING:
            self.arrivals[at] += step.amount
            self.bare[at] |= not step.amount
            if step.size and step.amount:
                self.announced[at] += [step.size // step.amount] * step.amount
            if what is What.COME:
                self.marks[warp] = self._sees(warp, at)
            block = self.machine.instance.barriers[at].block
            if block is not None and block is not self.machine.instance.blocks[warp]:
                self.touched.add(id(block))
            self._contributed(at)
        elif what is What.WAIT:
            return self._waits(warp, step) and self._goes_on(step)
        elif what is What.MEET:
            if self.latest[at] <= self.marks[warp]:
                return False
            self.seen[warp, at] = max(self._sees(warp, at), self.marks[warp] + 1)
        elif what in (What.ADD, What.STORE):
            self.posts[at].append(step)
            self._wake(("signal", at))
        elif what is What.UNTIL:
            self.waits[at].add(step.amount)
            if not self._can_reach(at, step.amount):
                return False
        elif not all(self.at[other] >= count for other, count in step.needs):
            return False
        return self._goes_on(step)

    def _goes_on(self, step: Step) -> bool:
        for copy in step.begins:
            self._fly(copy)
        return True

    def _sees(self, warp: int, at: int) -> int:
        """The earliest phase that a warp can find a barrier in."""
        return self.seen.get((warp, at), self._number(at, PHASE))

    def _waits(self, warp: int, step: Step) -> bool:
        """Whether a wait for a parity can be over, in the earliest phase that ends it."""
        phase = self._sees(warp, step.at)
        phase += phase & 1 == step.amount
        if phase > self.latest[step.at]:
            return False
        self.held[step.at] |= phase == self._number(step.at, PHASE)
        self.seen[warp, step.at] = phase
        return True

    def _value(self, signal: int) -> int:
        return self.state[self.machine.values + signal]

    def _can_reach(self, signal: int, target: int) -> bool:
        """Whether a counter or flag may satisfy a wait."""
        value = self._value(signal)
        if self.machine.met(signal, value, target):
            return True
        if self.machine.instance.stores[signal]:
            # Stores and sums of what is added to them: any of them may be the last.
            return bool(self.posts[signal])
        most = value + sum(max(post.amount, 0) for post in self.posts[signal])
        return not Signal.behind(most, target)

    # ---- does a move commute with all of it ------------------------------------------------

    def commute(self, move: Move) -> bool:
        """Whether the move that was left out commutes with all that the others can do."""
        if move < 0:
            copy = self.machine.instance.copies[-1 - move]
            return self._arrival_commutes(copy.barrier, copy.arrivals, 0, copy.size)
        step = self.machine.step(self.state, move)
        assert step is not None
        what, at = step.what, step.at
        if what in _ARRIVING:
            return self._arrival_commutes(at, step.amount, step.size, 0)
        if what is What.WAIT:
            return not self.may(at)
        if what in (What.ADD, What.STORE):
            return self._post_commutes(step)
        if what is What.UNTIL:
            return not any(p.what is What.STORE or p.amount < 0 for p in self.posts[at])
        assert what is What.END
        return self._end_commutes(move)

    def _end_commutes(self, warp: int) -> bool:
        """Whether nothing comes to a block that has ended, or others of its warps go on anyway."""
        instance = self.machine.instance
        block = instance.blocks[warp]
        if id(block) not in self.touched:
            return True
        others = [w for w in self.machine.members(block) if w != warp]
        return any(self.at[w] < self.machine.lengths[w] for w in others)

    def _arrival_commutes(self, at: int, count: int, announced: int, landed: int) -> bool:
        """Whether this and all contributions of the others come in the same phase in any order, and
        no wait of theirs is undone."""
        total, pending = self.arrivals[at] + count, self._number(at, PENDING)
        if self.may(at) or total > pending:
            return False
        if total == pending:
            # The phase completes once all arrivals are there: then all bytes must be needed.
            needed = self._number(at, BYTES) + sum(self.announced[at]) + announced
            come = self.bytes[at] + landed
            if come > needed or (come == needed and (self.held[at] or self.bare[at])):
                return False
        return not self._may_end(self.machine.instance.barriers[at].block)

    def _may_end(self, block: Any) -> bool:
        """Whether a block may have ended, with what lies in it."""
        return block is not None and self.machine.over(tuple(self.at), block)

    def _post_commutes(self, step: Step) -> bool:
        others, value = self.posts[step.at], self._value(step.at)
        if not others:
            # Nobody else sends: only a wait that this undoes would tell.
            if step.what is What.ADD and step.amount >= 0:
                return True
            return not any(
                self.machine.met(step.at, value, target)
                and not self.machine.met(step.at, step.amount, target)
                for target in self.waits[step.at]
            )
        if self.machine.instance.stores[step.at] or any(p.amount < 0 for p in (*others, step)):
            return False
        most = sum(post.amount for post in others) + step.amount
        for target in self.machine.instance.targets[step.at]:
            short = target - value
            if 0 < short < most:
                return False
        return True

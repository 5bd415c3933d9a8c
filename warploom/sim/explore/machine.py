"""The machine that is explored: what each step does by the rules of the hardware.

A barrier has a phase, pending arrivals and pending bytes; a wait for a parity goes by the last bit
of the phase, whoever has completed it; copies complete in any order. How each step resolved is
noted, and one that resolves in two ways is a problem. Knows no way of choosing steps.

A state is a tuple of integers: how far each warp is, three numbers a barrier, for each warp the
phase that it came to a meeting in, the value of each counter or flag, copies under way as bits.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import Enum
from typing import Any, NamedTuple

from warploom.sim.explore.instance import Instance, Step
from warploom.sim.explore.tape import What
from warploom.sim.order.signals import Signal

State = tuple[int, ...]
Move = int
"""A warp by its number, or copy c as −1 − c."""
PHASE, PENDING, BYTES = range(3)


class Fault(Enum):
    """What exploration finds."""

    ARRIVAL = "an arrival comes in one phase or another"
    WAIT = "a wait is for one phase or another"
    LANDING = "bytes come in one phase or another"
    SIGNAL = "a wait for a counter is over by some signals or by others"
    STORE = "stores to a flag come in one order or another"
    MANY = "more arrivals than a phase takes"
    SURPLUS = "more bytes than were announced"
    GONE = "a barrier of a block that has ended"
    INSIDE = "a barrier ends inside a phase"
    STUCK = "nothing can move"


class Problem(NamedTuple):
    """One fault: where, at which object, and how it resolved in two interleavings. `state` is the
    one that the step was taken in."""

    fault: Fault
    step: Any
    move: Move
    object: Any
    ways: tuple[Any, ...]
    state: State


class Machine:
    """The steps of an instance. `problems` by what tells them apart."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        warps, barriers = len(instance.steps), len(instance.barriers)
        self.warps = warps
        self.marks = warps + 3 * barriers
        self.values = self.marks + warps
        self.flying = self.values + len(instance.counters)
        self.lengths = [len(own) for own in instance.steps]
        self.resolved: dict[Any, Any] = {}
        self.problems: dict[Any, Problem] = {}
        self._blocks = {id(b): instance.members(b) for b in instance.blocks}
        self._state: State = ()
        self._move: Move = 0
        self._step: Any = None

    def first(self) -> State:
        """The state before all steps."""
        instance = self.instance
        held = [0] * self.warps
        for barrier in instance.barriers:
            held += [0, barrier.arrivals, 0]
        held += [0] * self.warps
        held += [counter.first for counter in instance.counters]
        flying = 0
        for copy in instance.first:
            flying |= 1 << copy
        return (*held, flying)

    def members(self, block: Any) -> list[int]:
        """The warps of a block."""
        return self._blocks[id(block)]

    # ---- what can move ---------------------------------------------------------------------

    def moves(self, state: State) -> list[Move]:
        """All that can be done next: steps of warps, completions of copies."""
        found = [w for w in range(self.warps) if self.ready(state, w)]
        flying, copy = state[self.flying], 0
        while flying:
            if flying & 1:
                found.append(-1 - copy)
            flying >>= 1
            copy += 1
        return found

    def step(self, state: State, warp: int) -> Step | None:
        """The next step of a warp; None at its end."""
        at = state[warp]
        return self.instance.steps[warp][at] if at < self.lengths[warp] else None

    def ready(self, state: State, warp: int) -> bool:
        """Whether a warp can take its next step."""
        step = self.step(state, warp)
        if step is None:
            return False
        what = step.what
        if what is What.WAIT:
            return state[self.warps + 3 * step.at] & 1 != step.amount
        if what is What.MEET:
            return state[self.warps + 3 * step.at] > state[self.marks + warp]
        if what is What.UNTIL:
            return self.met(step.at, state[self.values + step.at], step.amount)
        return all(state[other] >= count for other, count in step.needs)

    def met(self, at: int, value: int, target: int) -> bool:
        """Whether a value ends a wait for a counter, a flag or words."""
        if self.instance.counters[at].exact:
            return value == target
        return not Signal.behind(value, target)

    def ended(self, state: State) -> bool:
        """Whether all warps have come to their ends and all copies are done."""
        done = all(state[w] == self.lengths[w] for w in range(self.warps))
        return done and not state[self.flying]

    def over(self, state: State, block: Any) -> bool:
        """Whether all warps of a block have ended."""
        return all(state[w] == self.lengths[w] for w in self._blocks.get(id(block), (-1,)))

    # ---- steps -----------------------------------------------------------------------------

    def take(self, state: State, move: Move) -> State:
        """The state behind a move."""
        held = list(state)
        self._state, self._move = state, move
        if move < 0:
            self._land(held, -1 - move)
        else:
            step = self.instance.steps[move][state[move]]
            self._step = step
            self._act(held, move, step)
            held[move] += 1
            for copy in step.begins:
                held[self.flying] |= 1 << copy
            if step.what in (What.END, What.COME):
                self._open(held)
        return tuple(held)

    def _act(self, held: list[int], warp: int, step: Step) -> None:
        what, at = step.what, step.at
        if what in (What.ARRIVE, What.EXPECT, What.COME):
            phase = held[self.warps + 3 * at + PHASE]
            if self._gone(held, at):
                return
            if what is What.COME:
                held[self.marks + warp] = phase
            self._resolve(("step", warp, held[warp]), Fault.ARRIVAL, at, phase)
            held[self.warps + 3 * at + BYTES] += step.size
            self._arrive(held, at, step.amount)
        elif what is What.WAIT:
            phase = held[self.warps + 3 * at + PHASE] - 1
            self._resolve(("step", warp, held[warp]), Fault.WAIT, at, phase)
        elif what is What.MEET:
            held[self.marks + warp] = 0
        elif what in (What.ADD, What.STORE):
            self._post(held, warp, step)
        elif what is What.UNTIL and self.instance.stores[at]:
            way = self._count(held, at)
            if not self.instance.counters[at].exact:
                way = self._rises(at, step.amount, way)
            self._resolve(("step", warp, held[warp]), Fault.SIGNAL, at, way)

    def _land(self, held: list[int], number: int) -> None:
        copy = self.instance.copies[number]
        self._step = copy
        held[self.flying] &= ~(1 << number)
        if self._gone(held, copy.barrier):
            return
        fault = Fault.ARRIVAL if copy.arrivals else Fault.LANDING
        phase = held[self.warps + 3 * copy.barrier + PHASE]
        self._resolve(("copy", number), fault, copy.barrier, phase)
        held[self.warps + 3 * copy.barrier + BYTES] -= copy.size
        self._arrive(held, copy.barrier, copy.arrivals)

    def _arrive(self, held: list[int], at: int, count: int) -> None:
        """Arrivals, or bytes: the phase completes once nothing is missing."""
        base = self.warps + 3 * at
        if count > held[base + PENDING]:
            self._report(Fault.MANY, at, (count, held[base + PENDING], held[base + PHASE]))
            return
        held[base + PENDING] -= count
        barrier = self.instance.barriers[at]
        if barrier.cluster:
            return  # `_open` looks who is missing
        if held[base + PENDING] == 0 and held[base + BYTES] <= 0:
            if held[base + BYTES] < 0:
                self._report(Fault.SURPLUS, at, (-held[base + BYTES], held[base + PHASE]))
            self._complete(held, at)

    def _complete(self, held: list[int], at: int) -> None:
        base = self.warps + 3 * at
        held[base + PHASE] += 1
        held[base + PENDING] = self.instance.barriers[at].arrivals
        held[base + BYTES] = 0

    def _open(self, held: list[int]) -> None:
        """The barrier of a cluster opens when all that have not ended have come."""
        for at, barrier in enumerate(self.instance.barriers):
            base = self.warps + 3 * at
            if not barrier.cluster or held[base + PENDING] == barrier.arrivals:
                continue
            comes = self.instance.comes[at]
            running = [w for w in barrier.cluster if held[w] < self.lengths[w]]
            if all(bisect_left(comes[w], held[w]) > held[base + PHASE] for w in running):
                self._complete(held, at)

    def _gone(self, held: list[int], at: int) -> bool:
        """Whether a barrier is in a block that has ended: a problem."""
        block = self.instance.barriers[at].block
        if block is None or not self.over(tuple(held), block):
            return False
        self._report(Fault.GONE, at, ())
        return True

    # ---- counters and flags ----------------------------------------------------------------

    def _post(self, held: list[int], warp: int, step: Step) -> None:
        at, place = step.at, self.values + step.at
        old = held[place]
        if step.what is What.STORE or self.instance.stores[at]:
            self._resolve(("step", warp, held[warp]), Fault.STORE, at, self._count(held, at))
        held[place] = step.amount if step.what is What.STORE else old + step.amount
        if self.instance.stores[at]:
            return
        for target in self.instance.targets[at]:
            if not self.met(at, old, target) and self.met(at, held[place], target):
                posts = self.instance.posts[at]
                own = (warp, held[warp])
                prefix = tuple(p for p in posts if held[p[0]] > p[1] or p == own)
                self._resolve(("until", at, target), Fault.SIGNAL, at, prefix)

    def _count(self, held: list[int], at: int) -> int:
        """How many signals have been sent."""
        return sum(held[warp] > place for warp, place in self.instance.posts[at])

    def _rises(self, at: int, target: int, count: int) -> int:
        """How often a flag has come to satisfy a wait, after so many of its stores."""
        steps, rises = self.instance.steps, 0
        order: dict[int, int] = {}
        for warp, place in self.instance.posts[at]:
            number = self.resolved.get(("step", warp, place))
            if number is not None:
                order[number] = steps[warp][place].amount
        met = self.met(at, self.instance.counters[at].first, target)
        for number in range(count):
            now = self.met(at, order.get(number, target), target)
            rises += now and not met
            met = now
        return rises

    def as_meant(self) -> bool:
        """Whether each step and copy resolved as the engine of order took it, so that its order is
        that of all interleavings."""
        steps = self.instance.steps
        for key, way in self.resolved.items():
            if key[0] == "step":
                step = steps[key[1]][key[2]]
                meant = way if step.meant is None else step.meant
            elif key[0] == "copy":
                meant = self.instance.copies[key[1]].meant
            else:
                continue
            if meant != way:
                return False
        return True

    # ---- problems --------------------------------------------------------------------------

    def _resolve(self, key: Any, fault: Fault, at: int, way: Any) -> None:
        """Note how something resolves; a second way is a problem."""
        first = self.resolved.setdefault(key, way)
        if first != way:
            self._report(fault, at, (first, way), key)

    def _report(self, fault: Fault, at: int, ways: tuple[Any, ...], key: Any = None) -> None:
        step = self._step
        key = (fault, at if key is None else key, id(getattr(step.site, "op", None)))
        if key not in self.problems:
            object = self._object(fault, at)
            self.problems[key] = Problem(fault, step, self._move, object, ways, self._state)

    def _object(self, fault: Fault, at: int) -> Any:
        if fault in (Fault.SIGNAL, Fault.STORE):
            return self.instance.counters[at]
        return self.instance.barriers[at]

    def end(self, state: State) -> None:
        """Nothing can move any more: either all have ended, or they wait for ever."""
        if not self.ended(state):
            self.problems.setdefault(
                (Fault.STUCK, state), Problem(Fault.STUCK, None, 0, None, (), state)
            )
            return
        for at, barrier in enumerate(self.instance.barriers):
            _, pending, size = state[self.warps + 3 * at : self.warps + 3 * at + 3]
            if not barrier.meeting and (pending != barrier.arrivals or size):
                ways = (barrier.arrivals - pending, size)
                problem = Problem(Fault.INSIDE, None, 0, barrier, ways, state)
                self.problems.setdefault((Fault.INSIDE, id(barrier.name)), problem)

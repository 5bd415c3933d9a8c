"""A state in which nothing can move, in words: who waits for what, who would still bring it and
where, and the cycle of those who wait for each other. Knows no single operation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from warploom.base.diagnostics import Span
from warploom.passes.place_roles import IDLE
from warploom.sim.actors import Actor
from warploom.sim.deadlock import way_back
from warploom.sim.explore.instance import Step
from warploom.sim.explore.machine import BYTES, PENDING, PHASE, State
from warploom.sim.explore.tape import Copy, What

if TYPE_CHECKING:
    from warploom.sim.explore.reports import Teller

_COME = (What.ARRIVE, What.EXPECT, What.COME)
_MOST_NAMES = 4


class Standstill:
    """Who waits in a state: for each actor the first of its warps that does, and its step."""

    def __init__(self, teller: Teller, state: State) -> None:
        self.teller, self.state = teller, state
        machine = teller.machine
        self.waits: dict[Actor, tuple[int, Step]] = {}
        self.ended: list[Actor] = []
        for warp in range(machine.warps):
            actor, step = teller.actor(warp), machine.step(state, warp)
            if step is not None:
                self.waits.setdefault(actor, (warp, step))
        for warp in range(machine.warps):
            actor = teller.actor(warp)
            if actor not in self.waits and actor.role not in ("", IDLE):
                self.ended.append(actor)
        self.ended = list(dict.fromkeys(self.ended))
        self.helpers = {actor: self._helpers(*wait) for actor, wait in self.waits.items()}

    def _helpers(self, waiting: int, step: Step) -> dict[Actor, list[int]]:
        """Actors that would still bring what a step of a warp waits for, and the lines where."""
        found: dict[Actor, list[int]] = {}
        instance = self.teller.instance
        for warp, steps in enumerate(instance.steps):
            for place in range(self.state[warp], len(steps)):
                later = steps[place]
                if warp != waiting and self._brings(later, step):
                    lines = found.setdefault(self.teller.actor(warp), [])
                    line = self.teller.line(self.teller.site(warp, place))
                    if line not in lines:
                        lines.append(line)
        return found

    def _brings(self, later: Step, step: Step) -> bool:
        if step.what is What.UNTIL:
            return later.what in (What.ADD, What.STORE) and later.at == step.at
        if step.what not in (What.WAIT, What.MEET):
            return False
        if later.what in _COME and later.at == step.at:
            return True
        copies: list[Copy] = [self.teller.instance.copies[c] for c in later.begins]
        return any(copy.barrier == step.at for copy in copies)

    # ---- words -----------------------------------------------------------------------------

    def head(self) -> str:
        """The fault in a few words."""
        hopeless, cycle = self._hopeless(), self._cycle()
        if hopeless is not None:
            return f"{self.teller.name(hopeless)} waits for what nobody brings any more"
        if len(cycle) == 2:
            return f"{self._names(cycle)} wait for each other"
        if len(cycle) > 2:
            return f"{len(cycle)} of {len(self.waits)} wait for each other in a cycle"
        verb = "waits" if len(self.waits) == 1 else "wait"
        return f"{self._names(self.waits)} {verb} for ever"

    def _hopeless(self) -> Actor | None:
        return next((actor for actor, helpers in self.helpers.items() if not helpers), None)

    def _cycle(self) -> list[Actor]:
        """The shortest cycle of those who wait for each other."""
        edges = {a: [b for b in h if b is not a] for a, h in self.helpers.items()}
        found = [way for actor in edges if (way := way_back(actor, edges))]
        return min(found, key=len, default=[])

    def _order(self) -> list[Actor]:
        """Those who wait, those first that explain the others."""
        hopeless = self._hopeless()
        first = [] if hopeless is None else [hopeless]
        return list(dict.fromkeys([*first, *self._cycle(), *self.waits]))

    def _names(self, actors: Iterable[Actor]) -> str:
        found = [self.teller.name(actor) for actor in actors]
        if len(found) > _MOST_NAMES:
            found = [*found[: _MOST_NAMES - 1], f"{len(found) - _MOST_NAMES + 1} others"]
        return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)

    def spans(self) -> list[Span]:
        """Where they wait."""
        found: list[Span] = []
        for actor in self._order():
            warp, _ = self.waits[actor]
            found += self.teller.span(self.teller.site(warp, self.state[warp]), "waits here")
        return found

    def notes(self) -> list[str]:
        """What each waits for and who would bring it, who has ended, and the cycle."""
        found = [line for actor in self._order() for line in self._story(actor)]
        if self.ended:
            found.append(
                f"{self._names(self.ended)} {'has' if len(self.ended) == 1 else 'have'} ended"
            )
        cycle = self._cycle()
        if cycle:
            names = [self.teller.name(actor) for actor in cycle]
            found.append("cycle: " + " -> ".join([*names, names[0]]))
        return found

    def _story(self, actor: Actor) -> list[str]:
        warp, step = self.waits[actor]
        line = self.teller.line(self.teller.site(warp, self.state[warp]))
        told = f"{self.teller.name(actor)} waits at line {line} for {self._missing(step)}"
        helpers = self.helpers[actor]
        if not helpers:
            return [told, "  nobody comes any more"]
        each = [f"{self.teller.name(a)} ({_lines(lines)})" for a, lines in helpers.items()]
        own = "itself" if len(each) == 1 else "themselves"
        if len(each) > _MOST_NAMES:
            each = [*each[: _MOST_NAMES - 1], f"{len(each) - _MOST_NAMES + 1} others"]
        return [told, f"  could come: {', '.join(each)}, waiting {own}"]

    def _missing(self, step: Step) -> str:
        """What a step waits for."""
        machine, instance = self.teller.machine, self.teller.instance
        if step.what in (What.WAIT, What.MEET):
            barrier = instance.barriers[step.at]
            base = machine.warps + 3 * step.at
            phase, pending, size = (self.state[base + k] for k in (PHASE, PENDING, BYTES))
            plural = "s" * (barrier.arrivals > 1)
            lacks = [f"{pending} of {barrier.arrivals} arrival{plural}"] if pending else []
            lacks += [f"{size:,} bytes"] if size > 0 else []
            name = _name(barrier.name)
            which = f"{name}, parity {step.amount}" if step.what is What.WAIT else name
            more = f", which lacks {' and '.join(lacks)}" if lacks else ""
            return f"{which}: it is in phase {phase}{more}"
        if step.what is What.UNTIL:
            value, counter = self.state[machine.values + step.at], instance.counters[step.at]
            exactly = "to have the epoch" if counter.exact else "to be at least"
            return f"{counter.name.name} {exactly} {step.amount}: it is {value}"
        return "other warps"


def _name(name: Any) -> str:
    return name if isinstance(name, str) else name.name


def _lines(lines: list[int]) -> str:
    return f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"

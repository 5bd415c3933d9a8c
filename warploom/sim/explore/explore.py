"""Exploring a launch: one checked run that leaves tapes, then a search over each of them.

The search finds what interleavings can do to synchronisation. Where every step resolved in one way
in all of them, order is the same in all of them too, so that what the run found of races and memory
holds for all. Knows no single operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warploom.base.diagnostics import Report
from warploom.sim.explore import reports
from warploom.sim.explore.choices import choices, orders_atomics
from warploom.sim.explore.instance import Instance
from warploom.sim.explore.machine import Fault, Machine
from warploom.sim.explore.recording import Recording
from warploom.sim.explore.search import LIMIT, Searched, search
from warploom.sim.order_faults import in_order

if TYPE_CHECKING:
    from warploom.sim.program import Program

_DECIDED = ("U101", "U102", "U103", "U105", "U106", "U107", "D001", "M011", "M012")
"""What the search itself decides."""


@dataclass
class Explored:
    """What exploration of one launch has found. `ends` by instance: the states at which it can end,
    for comparison. `groups` of blocks that are resident together, `distinct` of them."""

    reduced: bool
    limit: int
    findings: list[Report] = field(default_factory=list)
    steps: int = 0
    groups: int = 0
    distinct: int = 0
    warps: int = 0
    states: int = 0
    transitions: int = 0
    interleavings: int = 0
    deadlocks: int = 0
    complete: bool = True
    choices: list[dict[str, Any]] = field(default_factory=list)
    ends: list[frozenset[Any]] = field(default_factory=list)

    @property
    def races(self) -> int:
        """Races among the findings."""
        return sum(report.code.startswith("R") for report in self.findings)

    def json(self) -> dict[str, Any]:
        """The numbers as plain data."""
        names = ("reduced", "limit", "complete", "groups", "distinct", "warps", "states")
        names += ("transitions", "interleavings", "races", "deadlocks", "choices")
        made = {name: getattr(self, name) for name in names}
        return made | {"ends": sum(map(len, self.ends))}

    def words(self) -> str:
        """One line: what was visited and what it means."""
        kind = "inequivalent interleaving" if self.reduced else "interleaving"
        number = f"{self.interleavings:,} {kind}{'s' * (self.interleavings != 1)}"
        if self.distinct > 1:
            number += f" of {self.distinct:,} groups of blocks"
        numbers = f"{self.states:,} states, {self.transitions:,} transitions"
        if not self.complete:
            return f"stopped after {numbers}, {number} to the end"
        races = f"{self.races} race{'s' * (self.races != 1)}"
        found = f"{races}, {self.deadlocks} deadlock{'s' * (self.deadlocks != 1)} in {number}"
        held = ", for the choices of this run" if self.choices else ""
        return f"{found}{held}; {numbers}"


def explore(
    program: Program,
    grid: tuple[int, ...],
    args: Sequence[Any],
    *,
    together: bool = False,
    limit: int = LIMIT,
    reduced: bool = True,
) -> Explored:
    """Explore a launch (see `Program.run`), up to `limit` states for each distinct group of
    blocks."""
    kernel = program.kernel
    recording = Recording(orders_atomics(kernel))
    run = program.run(grid, args, checked=True, together=together, recording=recording)
    found = Explored(reduced, limit, steps=run.steps, groups=len(recording.tapes))
    found.choices = [reports.place(op) for op in choices(kernel)]
    # What the run showed before a wait was let go that nothing ended.
    sure = run.findings if recording.sure is None else recording.sure
    made: list[Report] = []
    seen: dict[Any, None] = {}
    meant = True
    for tape in recording.tapes:
        instance = Instance(tape)
        key = instance.signature()
        if key in seen:
            continue
        seen[key] = None
        machine = Machine(instance)
        searched = search(machine, limit, reduced)
        _add(found, machine, searched)
        made += reports.of(kernel.name, instance, machine, searched)
        meant = meant and machine.as_meant()
    found.distinct = len(seen)
    if not made and not meant:
        # The order that the run went by is not that of the hardware, for the reason that it told.
        made += sure
    made += [r for r in sure if not r.code.startswith(_DECIDED)]
    found.findings = in_order(list({_same(r): r for r in reversed(made)}.values())[::-1])
    return found


def _same(report: Report) -> Any:
    return report.code, report.message, report.spans


def _add(found: Explored, machine: Machine, searched: Searched) -> None:
    found.warps = max(found.warps, machine.warps)
    found.states += searched.states
    found.transitions += searched.transitions
    found.interleavings += searched.interleavings
    found.complete = found.complete and searched.complete
    found.ends.append(frozenset(searched.ends))
    stuck = [p for p in machine.problems.values() if p.fault is Fault.STUCK]
    found.deadlocks += len(stuck)

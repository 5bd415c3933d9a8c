"""What is said when nothing can move: who waits for what, who could bring it and why they do not,
and the cycle of those who wait for each other, if there is one. Knows no single operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from warploom.base.diagnostics import Span
from warploom.base.errors import report
from warploom.passes.place_roles import IDLE
from warploom.sim.actors import Actor, Helper
from warploom.sim.sync_faults import block_of

if TYPE_CHECKING:
    from warploom.sim.block import BlockState
    from warploom.sim.cluster import Resident

# Blocks and actors that a report tells of; actors from which a cycle is looked for.
_MOST_BLOCKS = 8
_MOST_NAMES = 4
_MOST_STARTS = 64


class _Standstill:
    """Those who wait, with who could end each wait."""

    def __init__(self, resident: Resident) -> None:
        self.waiting: Sequence[Actor] = resident.scheduler.actors
        self.ended: Sequence[Actor] = resident.scheduler.ended
        if any(actor.role != IDLE for actor in self.waiting):
            self.waiting = [actor for actor in self.waiting if actor.role != IDLE]
        stopped = {actor.block for actor in self.waiting}
        clusters = {block.cluster for block in stopped}
        self.blocks = [b for b in resident.blocks if b.cluster in clusters]
        self.helpers: dict[Actor, list[Helper]] = {}
        self.came: dict[Actor, list[Helper]] = {}
        for actor in self.waiting:
            assert actor.wait is not None
            self.helpers[actor] = _at_work(actor.wait.helpers(actor))
            self.came[actor] = _at_work(actor.wait.came(actor))
        named = {helper.actor.block for held in self.helpers.values() for helper in held}
        self.others = len(named | set(self.blocks)) > 1
        self.one_cluster = len({block.cluster for block in named | stopped}) == 1

    # ---- names -----------------------------------------------------------------------------

    def name(self, actor: Actor) -> str:
        """An actor, with its block where there are several."""
        if not self.others:
            return actor.name
        whose = _place(actor.block, self.one_cluster)
        return f"{actor.name} of {whose}" if actor.role else whose

    def names(self, actors: Iterable[Actor]) -> str:
        """Several of them."""
        found = [self.name(actor) for actor in actors]
        if len(found) > _MOST_NAMES:
            found = [*found[: _MOST_NAMES - 1], f"{len(found) - _MOST_NAMES + 1} others"]
        return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)

    # ---- who waits for whom ----------------------------------------------------------------

    def able(self, actor: Actor) -> list[Actor]:
        """Who could still bring what an actor waits for: those that have not ended, nor have
        brought their part already."""
        part = {helper.actor for helper in self.came[actor]}
        found = dict.fromkeys(helper.actor for helper in self.helpers[actor])
        return [a for a in found if a not in part and a not in self.ended]

    def gone(self, actor: Actor) -> list[Actor]:
        """Who could have brought all of what an actor waits for, and has ended."""
        found = dict.fromkeys(h.actor for h in self.helpers[actor] if h.actor in self.ended)
        return [] if self.came[actor] else list(found)

    def cycle(self) -> list[Actor]:
        """The shortest cycle of actors that wait for each other, none if there is none."""
        edges = {actor: self.able(actor) for actor in self.waiting}
        # Who could help itself shows less than who else could.
        edges = {a: [b for b in able if b is not a] or able for a, able in edges.items()}
        best: list[Actor] = []
        for start in self.waiting[:_MOST_STARTS]:
            found = way_back(start, edges)
            if found and (not best or len(found) < len(best)):
                best = found
        return best

    def hopeless(self) -> Actor | None:
        """One whose wait nobody can end."""
        return next((actor for actor in self.waiting if not self.able(actor)), None)

    # ---- words -----------------------------------------------------------------------------

    def story(self, actor: Actor) -> list[str]:
        """What an actor waits for, and why nobody brings it."""
        wait = actor.wait
        assert wait is not None
        told = [f"{self.name(actor)} waits at line {wait.op.loc.line} for {wait.words()}"]
        came, able = self.came[actor], self.able(actor)
        parts = [f"came: {self._each(came)}"] if came else []
        part = {helper.actor for helper in came}
        away = [h for h in self.helpers[actor] if h.actor not in part]
        stands = [h for h in away if h.actor in able]
        gone = [h for h in away if h.actor in self.ended]
        if stands:
            own = "itself" if len({h.actor for h in stands}) == 1 else "themselves"
            parts.append(f"could come: {self._each(stands)}, waiting {own}")
        if gone:
            parts.append(f"has ended without: {self._each(gone)}")
        if not stands and not gone:
            parts.append("nobody else could come" if came else "nobody could come")
        return [*told, "  " + "; ".join(parts)]

    def _each(self, helpers: list[Helper]) -> str:
        """Actors, with the lines at which they would bring something."""
        lines: dict[Actor, list[int]] = {}
        for helper in helpers:
            held = lines.setdefault(helper.actor, [])
            if helper.op is not None and helper.op.loc.line not in held:
                held.append(helper.op.loc.line)
        found = []
        for lines_at in dict.fromkeys(tuple(held) for held in lines.values()):
            actors = [a for a, held in lines.items() if tuple(held) == lines_at]
            plural = "s" * (len(lines_at) > 1)
            where = f" (line{plural} {', '.join(map(str, lines_at))})" if lines_at else ""
            found.append(self.names(actors) + where)
        return ", ".join(found)

    def head(self, cycle: list[Actor], hopeless: Actor | None) -> str:
        """The fault in a few words."""
        if hopeless is not None:
            ended = self.gone(hopeless)
            alike = [a for a in self.waiting if not self.able(a) and self.gone(a) == ended]
            if not ended:
                return f"{self.name(hopeless)} waits for what nobody brings any more"
            who = f"{self.names(alike)} {'waits' if len(alike) == 1 else 'wait'}"
            have = "has" if len(ended) == 1 else "have"
            return f"{who} for {self.names(ended)}, which {have} ended"
        if len(cycle) == 1:
            return f"{self.name(cycle[0])} waits for itself"
        if len(cycle) == 2:
            return f"{self.names(cycle)} wait for each other"
        if cycle:
            return f"{len(cycle)} of {len(self.waiting)} wait for each other in a cycle"
        return f"{self.names(self.waiting)} wait for ever"


def _at_work(helpers: list[Helper]) -> list[Helper]:
    """Without the warps that only fill a warpgroup."""
    return [helper for helper in helpers if helper.actor.role != IDLE]


def _place(block: BlockState, one_cluster: bool) -> str:
    if one_cluster:
        return f"rank {block.rank}"
    return f"block {block.batch.launch.name_block(int(block.batch.linear[0]))}"


def way_back(start: Actor, edges: dict[Actor, list[Actor]]) -> list[Actor]:
    """The shortest way from an actor along edges back to it."""
    before: dict[Actor, Actor] = {}
    front = [start]
    while front:
        ahead: list[Actor] = []
        for actor in front:
            for other in edges.get(actor, ()):
                if other is start:
                    way = [actor]
                    while way[-1] is not start:
                        way.append(before[way[-1]])
                    return way[::-1]
                if other not in before:
                    before[other] = actor
                    ahead.append(other)
        front = ahead
    return []


def deadlock(resident: Resident) -> None:
    """Nothing can move any more."""
    found = _Standstill(resident)
    cycle, hopeless = found.cycle(), found.hopeless()
    first = [hopeless] if hopeless is not None else cycle
    order = list(dict.fromkeys([*first, *cycle, *found.waiting]))
    shown = set(found.blocks[:_MOST_BLOCKS]) | {actor.block for actor in first[:_MOST_BLOCKS]}
    notes = [] if len(found.blocks) > 1 else [block_of(found.blocks[0].batch)]
    spans: list[Span] = []
    for actor in order:
        if actor.block in shown:
            assert actor.wait is not None
            spans.append(Span.at(actor.wait.op.loc, label="waits here", role=actor.role))
            notes += found.story(actor)
    told = {h.actor for actor in order if actor.block in shown for h in found.helpers[actor]}
    ended = [a for a in found.ended if a.block in shown and a.role not in ("", IDLE)]
    ended = [actor for actor in ended if actor not in told]
    if ended:
        notes.append(f"{found.names(ended)} {'has' if len(ended) == 1 else 'have'} ended")
    if len(found.blocks) > len(shown):
        notes.append(f"and so in {len(found.blocks) - len(shown)} blocks more")
    if cycle:
        names = [found.name(actor) for actor in cycle]
        notes.append("cycle: " + " -> ".join([*names, names[0]]))
    m = resident.blocks[0].batch
    made = report(
        "D001",
        f"`{m.launch.kernel}` cannot go on: {found.head(cycle, hopeless)}",
        *dict.fromkeys(spans),
        notes=notes,
        hint=_hint(found, hopeless, cycle),
    )
    made.facts["block"] = int(order[0].block.batch.linear[0])
    made.facts["cycle"] = [found.name(actor) for actor in cycle]
    wait = order[0].wait
    assert wait is not None
    m.launch.find(made, wait.op.loc)


def _hint(found: _Standstill, hopeless: Actor | None, cycle: list[Actor]) -> str:
    if hopeless is None:
        if len(cycle) < 2:
            return ""
        # Waits of other kinds know no laps.
        laps = [getattr(actor.wait, "first_lap", None) for actor in cycle]
        if all(lap is not None and lap() for lap in laps):
            return (
                "let one of them give before it takes: who waits for a slot to be empty begins "
                "with parity 1, `lap % 2 ^ 1`"
            )
        return "let one of them give before it takes"
    assert hopeless.wait is not None
    if found.came[hopeless] or not found.helpers[hopeless]:
        return hopeless.wait.advice()
    return "let every role go the same number of rounds"

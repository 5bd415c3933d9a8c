"""What exploration finds, as reports in the words of the source: roles, lines, barriers, phases.
Knows no single operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warploom.base.diagnostics import Report, Span
from warploom.base.errors import report
from warploom.ir.op import Op
from warploom.passes.place_roles import IDLE
from warploom.sim.actors import Actor
from warploom.sim.explore.instance import Instance, Step
from warploom.sim.explore.machine import PHASE, Fault, Machine, Problem, State
from warploom.sim.explore.search import Searched
from warploom.sim.explore.standstill import Standstill
from warploom.sim.explore.tape import OWN, Copy, What
from warploom.sim.sync_faults import block_of

_MOST_LINES = 24  # of a trace
_FEW_LINES = 10  # of one that only shows how something else comes about
_MOST_DEADLOCKS = 1  # that are told in full


def place(op: Op) -> dict[str, Any]:
    """Where an operation stands, as plain data."""
    return {
        "file": op.loc.file,
        "line": op.loc.line,
        "column": op.loc.column,
        "operation": op.OPCODE,
    }


def of(kernel: str, instance: Instance, machine: Machine, searched: Searched) -> list[Report]:
    """The reports of one search: a deadlock by the shortest way to one."""
    teller = Teller(kernel, instance, machine, searched)
    stuck = [p for p in machine.problems.values() if p.fault is Fault.STUCK]
    others = [p for p in machine.problems.values() if p.fault is not Fault.STUCK]
    found = [teller.tell(problem) for problem in others]
    if stuck:
        shortest = min(stuck, key=lambda p: len(searched.way(p.state)))
        found.append(teller.deadlock(shortest, len(stuck)))
    if not searched.complete and not found:
        found.append(teller.too_large())
    return found


class Teller:
    """Words for what one search has found."""

    def __init__(
        self, kernel: str, instance: Instance, machine: Machine, searched: Searched
    ) -> None:
        self.kernel, self.instance = kernel, instance
        self.machine, self.searched = machine, searched
        self._several = len(set(map(id, instance.blocks))) > 1

    # ---- steps in words --------------------------------------------------------------------

    def actor(self, warp: int) -> Actor:
        """The role's replica that a warp belongs to."""
        return self.instance.actors[warp]

    def site(self, warp: int, at: int) -> Any:
        """The site of a step, or of the last one before it that has one."""
        for step in reversed(self.instance.steps[warp][: at + 1]):
            if step.site is not None:
                return step.site
        return None

    def name(self, actor: Actor) -> str:
        """An actor, and its block where there are several."""
        whose = block_of(actor.block.batch)
        if not actor.role:
            return whose
        return f"{actor.name} of {whose}" if self._several else actor.name

    def does(self, state: State, move: int) -> tuple[Any, str]:
        """Who makes a move, as something that tells groups of warps apart, and what it does."""
        if move < 0:
            copy = self.instance.copies[-1 - move]
            line = self.line(copy.site)
            done = "arrives" if copy.arrivals else f"brings {copy.size:,} bytes"
            return ("", line), f"a copy of line {line} {done}: {self._object(state, copy)}"
        step = self.instance.steps[move][state[move]]
        return (self.actor(move), self.line(self.site(move, state[move]))), self._deed(state, step)

    def line(self, site: Any) -> int:
        """The line of a site; 0 where there is none."""
        return site.op.loc.line if site is not None else 0

    def _object(self, state: State, thing: Step | Copy) -> str:
        """A barrier, and its phase in a state."""
        at = thing.barrier if isinstance(thing, Copy) else thing.at
        barrier = self.instance.barriers[at]
        phase = state[self.machine.warps + 3 * at + PHASE]
        return f"{_name(barrier.name)}, phase {phase}"

    def _deed(self, state: State, step: Step) -> str:
        what = step.what
        if what is What.EXPECT:
            words = f"announces {step.size:,} bytes and arrives at {self._object(state, step)}"
        elif what is What.ARRIVE:
            words = f"arrives at {self._object(state, step)}"
        elif what is What.WAIT:
            phase = state[self.machine.warps + 3 * step.at] - 1
            done = f"phase {phase} is over" if phase >= 0 else "nothing has begun"
            name = _name(self.instance.barriers[step.at].name)
            words = f"waits for parity {step.amount} of {name}: {done}"
        elif what in (What.COME, What.MEET):
            barrier = self.instance.barriers[step.at]
            verb = "comes to" if what is What.COME else "goes on at"
            words = f"{verb} {_name(barrier.name)}" if barrier.name != OWN else ""
        elif what in (What.ADD, What.STORE):
            verb = "adds" if what is What.ADD else "stores"
            words = f"{verb} {step.amount} to {self.instance.counters[step.at].name.name}"
        elif what is What.UNTIL:
            name = self.instance.counters[step.at].name.name
            words = f"has waited for {name} to be {step.amount}"
        else:
            words = "ends" if what is What.END else ""
        return words

    def way(self, end: State) -> list[tuple[State, int]]:
        """The moves that lead to a state, in an order in which warps of one role go together as far
        as that leads to the same state."""
        found = self.searched.way(end)
        left = [move for _, move in found]
        state, ordered = self.machine.first(), []
        last: tuple[Any, str] | None = None
        while left:
            possible = self.machine.moves(state)
            usable = [move for move in dict.fromkeys(left) if move in possible]
            if not usable:
                return found
            told = {move: self.does(state, move) for move in usable}
            same = [move for move in usable if last is not None and told[move] == last]
            near = [move for move in usable if last is not None and told[move][0][0] is last[0][0]]
            move = (same or near or usable)[0]
            ordered.append((state, move))
            last = told[move]
            left.remove(move)
            state = self.machine.take(state, move)
        return ordered if state == end else found

    def other_way(self, problem: Problem) -> list[str]:
        """How the second of two interleavings comes to what differs in it."""
        state, move = problem.state, problem.move
        last = self._told(*self.does(state, move), [move] if move >= 0 else [])
        return ["the other one goes:", *self.trace(state, _FEW_LINES), f"then {last}"]

    def trace(self, state: State, most: int = _MOST_LINES) -> list[str]:
        """The moves that lead to a state, a line for all warps that do the same in a row. Meetings
        of the warps of one role are left out."""
        lines: list[tuple[Any, str, list[int]]] = []
        for before, move in self.way(state):
            (who, line), words = self.does(before, move)
            if not words or (who and who.role == IDLE):
                continue
            warps = [move] if move >= 0 else []
            if lines and lines[-1][:2] == ((who, line), words):
                lines[-1][2].extend(warps)
            else:
                lines.append(((who, line), words, warps))
        shown = [self._told(*entry) for entry in lines]
        if len(shown) > most:
            shown = [f"… {len(shown) - most} lines before", *shown[-most:]]
        return shown

    def _told(self, who: tuple[Any, int], words: str, warps: list[int]) -> str:
        actor, line = who
        if not warps:
            return words
        name = self.name(actor)
        if actor.warps > 1 or len(warps) > 1:
            name += f" ({len(set(warps))} of {actor.warps} warps)"
        at = f"line {line}: " if line else ""
        return f"{at}{name} {words}"

    # ---- reports ---------------------------------------------------------------------------

    def make(
        self, code: str, message: str, spans: list[Span], notes: list[str], hint: str
    ) -> Report:
        """A report of a listed code."""
        return report(code, message, *dict.fromkeys(spans), notes=notes, hint=hint)

    def span(self, site: Any, label: str) -> list[Span]:
        """The place of a site, if it has one."""
        if site is None:
            return []
        return [Span.at(site.op.loc, label=label, role=site.m.actor.role)]

    def last_use(self, problem: Problem) -> list[Span]:
        """Where a barrier is arrived at last."""
        found: list[Span] = []
        at = self.instance.barriers.index(problem.object)
        for steps in self.instance.steps:
            uses = [s for s in steps if s.at == at and s.what in (What.ARRIVE, What.EXPECT)]
            if uses:
                found += self.span(uses[-1].site, "the last arrival")
        return found

    def tell(self, problem: Problem) -> Report:
        """The report of a problem other than a deadlock."""
        return _TELLERS[problem.fault](self, problem)

    def deadlock(self, problem: Problem, count: int) -> Report:
        """Nothing can move any more."""
        state, found = problem.state, Standstill(self, problem.state)
        told, trace = found.notes(), self.trace(state)
        if trace:
            told += [f"the shortest way there, {len(self.searched.way(state))} steps:", *trace]
        if count > 1:
            told.append(f"and {count - 1:,} other states in which nothing can move")
        every = self.searched.complete and count == len(self.searched.ends)
        which = "can go on in no interleaving" if every else "cannot go on in some interleavings"
        return self.make(
            "D001", f"`{self.kernel}` {which}: {found.head()}", found.spans(), told, ""
        )

    def too_large(self) -> Report:
        """The search gave up."""
        searched, instance = self.searched, self.instance
        span: list[Span] = []
        for warp, steps in enumerate(instance.steps):
            site = self.site(warp, len(steps) - 1) if steps else None
            if site is not None and not span:
                span = self.span(site, "")
        notes = [
            f"{len(instance.steps)} warps take {instance.size - len(instance.copies):,} steps, and "
            f"{len(instance.copies):,} copies complete",
            f"covered: {searched.states:,} states, {searched.transitions:,} transitions, "
            f"{searched.interleavings:,} interleavings to their ends; nothing was found in them",
        ]
        hint = f"a smaller example, or `--limit` above {searched.limit:,}"
        message = f"`{self.kernel}` is too large to explore with {searched.limit:,} states"
        return self.make("K002", message, span[:1], notes, hint)


def _name(name: Any) -> str:
    return name if isinstance(name, str) else name.name


def _buffer(name: Any) -> str:
    return name if isinstance(name, str) else name.buffer


def _two(problem: Problem, words: str) -> str:
    one, other = problem.ways
    return f"{_name(problem.object.name)}: {words} {one} in one interleaving, {other} in another"


def _arrival(teller: Teller, problem: Problem) -> Report:
    message = f"an arrival at {_buffer(problem.object.name)} comes in one phase or in the next"
    spans = teller.span(problem.step.site, "this arrival")
    hint = "wait for the phase, or for what follows on it, before the arrival of the next one"
    notes = [_two(problem, "it is of phase"), *teller.other_way(problem)]
    return teller.make("U101", message, spans, notes, hint)


def _wait(teller: Teller, problem: Problem) -> Report:
    message = f"a wait at {_buffer(problem.object.name)} is for one phase or for another"
    spans = teller.span(problem.step.site, "waits here")
    notes = [_two(problem, "it goes on after phase")]
    notes.append("a parity tells a phase from the next one, not from the one after that")
    notes += teller.other_way(problem)
    hint = "let each who waits also hand the slot back, and count those arrivals"
    return teller.make("U102", message, spans, notes, hint)


def _landing(teller: Teller, problem: Problem) -> Report:
    message = f"the bytes of a copy come to one phase of {_buffer(problem.object.name)} or another"
    spans = teller.span(problem.step.site, "this copy")
    hint = "announce the bytes by the arrival that the phase waits for, before the copy"
    notes = [_two(problem, "they are of phase"), *teller.other_way(problem)]
    return teller.make("M012", message, spans, notes, hint)


def _signal(teller: Teller, problem: Problem) -> Report:
    name = problem.object.name.name
    waits = problem.step.what is What.UNTIL
    spans = teller.span(problem.step.site, "waits here" if waits else "this signal")
    if problem.object.exact:
        message = f"a wait for {name} is over by what was sent in one round or in another"
        one, other = problem.ways
        note = (
            f"{name}: it takes number {one} of what is sent in one interleaving, {other} in another"
        )
        return teller.make("U107", message, spans, [note], _TWO_BUFFERS)
    message = f"a wait for {name} is over by some signals or by others"
    note = f"{name}: which signals come first differs between two interleavings"
    hint = "let nobody signal for the next round before it has waited for this one"
    return teller.make("U105", message, spans, [note], hint)


_TWO_BUFFERS = "let two buffers take turns, and epochs never come again"


def _store(teller: Teller, problem: Problem) -> Report:
    name = problem.object.name.name
    message = f"signals at {name} come in one order or in another"
    spans = teller.span(problem.step.site, "this signal")
    one, other = problem.ways
    note = f"{name}: {one} signals come before it in one interleaving, {other} in another"
    hint = "let the one who waits answer, and wait for the answer before the next signal"
    if problem.object.exact:
        return teller.make("U107", message, spans, [note], _TWO_BUFFERS)
    return teller.make("U106", message, spans, [note], hint)


def _many(teller: Teller, problem: Problem) -> Report:
    count, pending, phase = problem.ways
    message = f"{_buffer(problem.object.name)} gets more arrivals than a phase takes"
    note = f"{_name(problem.object.name)}: phase {phase} lacks {pending}, and {count} come here"
    spans = teller.span(problem.step.site, "this arrival")
    hint = "let as many threads arrive as the barrier was made for, once a phase"
    return teller.make("M011", message, spans, [note], hint)


def _surplus(teller: Teller, problem: Problem) -> Report:
    size, phase = problem.ways
    message = f"{_buffer(problem.object.name)} gets more bytes than were announced"
    note = f"{_name(problem.object.name)}, phase {phase}: {size:,} bytes more"
    label = "this copy" if isinstance(problem.step, Copy) else "this arrival"
    spans = teller.span(problem.step.site, label)
    hint = "announce the bytes of all copies of a phase: whole boxes, also at the edges"
    return teller.make("M012", message, spans, [note], hint)


def _gone(teller: Teller, problem: Problem) -> Report:
    message = f"{_buffer(problem.object.name)} is used when its block may have ended"
    label = "this copy" if isinstance(problem.step, Copy) else "this arrival"
    spans = teller.span(problem.step.site, label)
    hint = "let the block wait for it, or all blocks of the cluster meet at their ends"
    return teller.make("M031", message, spans, [_name(problem.object.name)], hint)


def _inside(teller: Teller, problem: Problem) -> Report:
    came, size = problem.ways
    message = f"the block ends while {_buffer(problem.object.name)} is inside a phase"
    note = f"{_name(problem.object.name)} has got {came} of {problem.object.arrivals} arrivals"
    if size > 0:
        note += f" and lacks {size:,} bytes"
    spans = teller.last_use(problem)
    return teller.make(
        "U103", message, spans, [note], "let every role go the same number of rounds"
    )


_TELLERS: dict[Fault, Callable[[Teller, Problem], Report]] = {
    Fault.ARRIVAL: _arrival,
    Fault.WAIT: _wait,
    Fault.LANDING: _landing,
    Fault.SIGNAL: _signal,
    Fault.STORE: _store,
    Fault.MANY: _many,
    Fault.SURPLUS: _surplus,
    Fault.GONE: _gone,
    Fault.INSIDE: _inside,
}

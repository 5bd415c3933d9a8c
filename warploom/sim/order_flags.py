"""Events of flags and counters in global memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from warploom.ir.ops import flags
from warploom.ir.ops.sync import SCOPES
from warploom.sim.actors import Actor, Helper
from warploom.sim.booking import Piece, Site
from warploom.sim.cells import element_cells
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.memory import Memory
from warploom.sim.order.history import Does, Reach
from warploom.sim.order.signals import Signal
from warploom.sim.order_table import before, orders, who_executes
from warploom.sim.rules.flags import FlagWait, element_of, stopped

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


class Flag(NamedTuple):
    """An element that signals are sent by, in words of the source."""

    memory: Memory
    element: int

    @property
    def name(self) -> str:
        """`flags[3]`, elements counted from the tensor's first."""
        return f"`{self.memory.name}[{self.element}]`"


def _signal(
    m: Batch, op: flags.Post | flags.Poll, memory: Memory, place: int, who: str
) -> tuple[Signal, int, Reach]:
    """The signals at an element, the thread that executes this and how far it reaches. Its access
    conflicts with ordinary ones, and with signals and waits whose scopes leave it out."""
    booking = m.state.booking
    piece: Piece = booking.tensor(memory)
    cells = element_cells(np.array([place]), memory, piece)
    thread = int(booking.threads(m.actor, who)[0])
    engine, scope = booking.engine, SCOPES.index(op.scope)
    engine.access(piece.history, cells, Does.REDUCE, thread, Site.here(m, op), scope=scope)
    name = Flag(memory, place - memory.origin)
    key = (id(piece.history), int(cells[0]))
    found = engine.signal(key, name, int(memory.flat[place]))
    return found, thread, engine.reach(thread, scope)


@orders(flags.Post)
def post(t: Translator, op: flags.Post, step: Step) -> Step:
    find, v, who = element_of(t, op), t.slot(op.value), who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        found = find(s, m)
        if found is None:
            return
        signal, thread, reach = _signal(m, op, *found, who)
        engine = m.state.booking.engine
        told = reach if op.order == "release" else engine.fenced(thread, reach)
        tell = signal.add if op.kind == "add" else signal.store
        tell(thread, int(s[v]), Site.here(m, op), told)

    return before(step, event)


class MeantFlag(FlagWait):
    """A wait for the signals that it means."""

    __slots__ = ("wait",)

    def ready(self) -> bool:
        return self.wait.ready() or stopped(self.stop)

    def came(self, waiter: Actor) -> list[Helper]:
        """Who has signalled, where others have not: all of them may yet do so again."""
        sites = [sent.site for sent in self.wait.prefix]
        found = dict.fromkeys(Helper(site.m.actor, site.op) for site in sites)
        actors = {helper.actor for helper in found}
        all_came = actors.issuperset(helper.actor for helper in self.helpers(waiter))
        return [] if all_came else list(found)


@orders(flags.Poll)
def poll(t: Translator, op: flags.Poll, step: Resumable) -> Step:
    find, target, who = element_of(t, op), t.slot(op.target), who_executes(t)
    stop = t.optional(op.stop)
    resumed = step.start

    def start(s: Slots, m: Batch) -> Run:
        found = find(s, m)
        if found is None:
            return
        if m.state.booking.tensor(found[0]) is None:
            # Nobody in this launch writes it: what it holds was there before, or never comes.
            memory, place = found
            name, held = Flag(memory, place - memory.origin), int(memory.flat[place])
            threads = m.state.booking.threads(m.actor, who)
            m.state.booking.engine.begin_look(name, held, threads, int(s[target]), Site.here(m, op))
            yield from resumed(s, m)
            return
        if m.state.shuffles:
            yield None
        signal, thread, reach = _signal(m, op, *found, who)
        value, site = int(s[target]), Site.here(m, op)
        threads = m.state.booking.threads(m.actor, who)
        m.state.booking.engine.begin_poll(signal, threads, value, site)
        wait = signal.begin_wait(thread, value, site)
        if not wait.ready():
            waits = MeantFlag(op, *found, value, s[stop] if stop >= 0 else None)
            waits.wait = wait
            yield waits
            if not wait.ready():
                return  # it has given up, and knows nothing
        m.state.booking.engine.hear(threads, reach, wait.prefix, op.order == "acquire")

    return Resumable(start)

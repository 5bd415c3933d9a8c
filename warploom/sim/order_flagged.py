"""Events of flagged data. Who waits for words gets what the stores wrote that it means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.ir.ops import flagged
from warploom.ir.ops.sync import SCOPES
from warploom.sim import faults
from warploom.sim.booking import ALL, Piece, Site
from warploom.sim.cells import element_cells
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.order.history import Does
from warploom.sim.order.words import Receipt, WordBook
from warploom.sim.order_flags import Flag
from warploom.sim.order_table import before, orders, who_executes
from warploom.sim.rules.flagged import Access, Sending, Taking, Words, WordsWait
from warploom.sim.rules.flags import stopped
from warploom.sim.shadow import written

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


def _book(m: Batch) -> WordBook:
    return m.state.booking.engine.words


def _by_warp(m: Batch, words: Words, who: str) -> list[tuple[int, np.ndarray]]:
    """Threads, and which of the words each accesses: indices into the flattened places."""
    warps = m.state.booking.warps(m.actor)
    threads = warps.lanes if who == ALL else m.state.booking.threads(m.actor, who)
    numbers = np.arange(words.places.size).reshape(words.places.shape)
    found = []
    for warp, thread in enumerate(threads):
        column = warp if words.places.shape[-2] > 1 else 0
        chosen = words.flags[..., column, :]
        found.append((int(thread), numbers[..., column, :][chosen].reshape(-1)))
    return found


def _touch(m: Batch, op: Any, words: Words, places: np.ndarray, thread: int) -> Piece | None:
    """Book the access of one warp to words, which conflicts with ordinary ones and with those that
    leave it out; nothing conflicts where nobody writes the tensor (None)."""
    booking, memory = m.state.booking, words.memory
    piece: Piece | None = booking.tensor(memory)
    if piece is not None:
        both = np.concatenate([places, places + 1]) if words.long else places
        cells, scope = element_cells(both, memory, piece), SCOPES.index(op.scope)
        booking.engine.access(
            piece.history, cells, Does.REDUCE, thread, Site.here(m, op), scope=scope
        )
    return piece


def _access(m: Batch, op: Any, words: Words, places: np.ndarray, thread: int) -> list[Any]:
    """The words that one warp accesses."""
    memory, piece = words.memory, _touch(m, op, words, places, thread)
    start, of = (0, id(memory)) if piece is None else (piece.start, id(piece.history))
    low, high = words.low(places), words.high(places)
    tags = Words.epoch(high)
    book, made = _book(m), []
    for number, place in enumerate(map(int, places)):
        key = (of, start + place * memory.itemsize)
        name = Flag(memory, place - memory.origin)
        content = (int(low[number]), int(high[number]))
        made.append(book.word(key, name, int(tags[number]), content))
    return made


@orders(flagged.Put)
def put(t: Translator, op: flagged.Put, step: Step) -> Step:
    sending, who, scope = Sending(t, op), who_executes(t), SCOPES.index(op.scope)

    def event(s: Slots, m: Batch) -> None:
        words, low, high = sending.elements(s, m)
        places, low, high = words.places.reshape(-1), low.reshape(-1), high.reshape(-1)
        engine = m.state.booking.engine
        for thread, chosen in _by_warp(m, words, who):
            if chosen.size:
                made = _access(m, op, words, places[chosen], thread)
                contents = [(int(low[n]), int(high[n])) for n in chosen]
                told = engine.fenced(thread, engine.reach(thread, scope))
                _book(m).send(thread, made, sending.epoch(s), contents, Site.here(m, op), told)

    return before(step, event)


def _find_unwritten(m: Batch, op: flagged.Take, words: Words, receipts: list[Any]) -> None:
    """What nobody has written may have any epoch."""
    memory = words.memory
    if memory.shadow is None:
        return
    places = words.places.reshape(-1)
    for _, chosen, receipt in receipts:
        at = places[chosen[receipt.old]] if receipt.old else places[:0]
        bad = memory.shadow.flat[at] != written(memory)
        if bad.any():
            loose, where = np.ones((1, 1, 1), bool), at[bad][:1].reshape(1, 1, 1)
            origin = faults.Origin(m, op, memory, where, loose)
            faults.unwritten(m, op, "is taken for what was sent", origin, loose)


class MeantWords(WordsWait):
    """A wait for the stores that it means, warp by warp."""

    __slots__ = ("receipts",)

    def ready(self) -> bool:
        """Whether all have come."""
        return self.come or stopped(self.stop)

    @property
    def come(self) -> bool:
        """Whether all have come: it has not given up."""
        return all(receipt.ready() for _, _, receipt in self.receipts)

    def take(self) -> None:
        """All have come."""
        low, high = self.low.reshape(-1), self.high.reshape(-1)
        for _, chosen, receipt in self.receipts:
            for number, content in zip(chosen, receipt.content, strict=True):
                low[number], high[number] = content


@orders(flagged.Look)
def look(t: Translator, op: flagged.Look, step: Step) -> Step:
    """What it finds counts only where `flagged.take` says so, but it reaches as far as it says."""
    access, who = Access(t, op), who_executes(t)

    def event(s: Slots, m: Batch) -> None:
        words = access.words(s, m)
        places = words.places.reshape(-1)
        for thread, chosen in _by_warp(m, words, who):
            if chosen.size:
                _touch(m, op, words, places[chosen], thread)

    return before(step, event)


@orders(flagged.Take)
def take(t: Translator, op: flagged.Take, step: Step) -> Step:
    taking, who, scope = Taking(t, op), who_executes(t), SCOPES.index(op.scope)

    def start(s: Slots, m: Batch) -> Run:
        if m.state.shuffles:
            yield None
        words, epoch = taking.begin(s, m)
        places = words.places.reshape(-1)
        receipts: list[tuple[int, np.ndarray, Receipt]] = []
        for thread, chosen in _by_warp(m, words, who):
            made = _access(m, op, words, places[chosen], thread) if chosen.size else []
            receipt = _book(m).receive(thread, made, epoch, Site.here(m, op))
            receipts.append((thread, chosen, receipt))
        wait = MeantWords(op, words, epoch, taking.stop(s))
        wait.receipts = receipts
        if not wait.ready():
            yield wait
        wait.take()
        _find_unwritten(m, op, words, receipts)
        taking.finish(s, wait)
        if not wait.come:
            return
        for thread, _, receipt in receipts:
            engine = m.state.booking.engine
            reach = engine.reach(thread, scope)
            engine.hear(np.array([thread]), reach, receipt.prefix, acquires=False)

    return Resumable(start)

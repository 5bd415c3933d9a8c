"""Words of flagged data: who wrote which epoch to a word, and who means it.

A wait means the store that its thread has seen last, if that has the epoch, else the first later
one that has. It comes before every store behind that one: else the word may be written anew before
it is seen. Knows neither the values' types nor who polls.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warploom.sim.order.clocks import SEEN, Clocks, entry
from warploom.sim.order.problems import Found, Kind, Problem
from warploom.sim.order.signals import Sent, Signal, Told

# Stores of a word that are remembered: who means an older one was reported when it went.
_DEPTH = 4


@dataclass(slots=True)
class Stored:
    """One store: the epoch and what the word then holds, and who sent it with what he knew (None:
    it was there before)."""

    tag: int
    content: tuple[int, int]
    sent: Sent | None


@dataclass(slots=True, eq=False)
class _Word:
    name: Any
    stores: list[Stored]
    takers: list[tuple[int, int, Any]] = field(default_factory=list)  # of the newest store
    waiting: list[tuple[Receipt, int]] = field(default_factory=list)


class Receipt:
    """A wait of one thread for words, until each has its epoch."""

    __slots__ = ("_clock", "_missing", "_sent", "content", "old", "site", "tag")

    def __init__(self, count: int, tag: int, clock: tuple[int, int], site: Any) -> None:
        self.tag, self.site, self._clock, self._missing = tag, site, clock, count
        self.content: list[tuple[int, int]] = [(0, 0)] * count
        self._sent: dict[int, Sent] = {}
        self.old: list[int] = []  # which words had the epoch before anybody sent one

    def ready(self) -> bool:
        """Whether all have come."""
        return not self._missing

    @property
    def prefix(self) -> list[Sent]:
        """What was sent to these words that it means."""
        return list(self._sent.values())

    def meets(self, word: _Word, number: int, made: Stored) -> None:
        """The store that a word's wait means is there."""
        self.content[number] = made.content
        if made.sent is None:
            self.old.append(number)
        else:
            self._sent[id(made.sent)] = made.sent
        self._missing -= 1
        if word.stores[-1] is made:
            word.takers.append((*self._clock, self.site))


class WordBook:
    """All words of one launch."""

    def __init__(self, clocks: Clocks, found: Found) -> None:
        self.clocks, self.found = clocks, found
        self._words: dict[Hashable, _Word] = {}

    def word(self, key: Hashable, name: Any, tag: int, content: tuple[int, int]) -> _Word:
        """The word of a key, with what it held when it was first named."""
        made = self._words.get(key)
        if made is None:
            made = self._words[key] = _Word(name, [Stored(tag, content, None)])
        return made

    def send(
        self,
        thread: int,
        words: Sequence[_Word],
        tag: int,
        contents: Sequence[tuple[int, int]],
        site: Any,
        told: list[Told],
    ) -> None:
        """A thread writes words with one epoch. One finding is enough for all of them."""
        clocks = self.clocks
        seen = clocks.rows[thread, SEEN].copy()
        who = int(clocks.own[thread]), clocks.epoch(thread)
        sent = Sent(*who, 0, tag, clocks.release(np.array([thread])), site, told)
        found = False
        for word, content in zip(words, contents, strict=True):
            found = found or self._check(word, seen, site)
            made = Stored(tag, content, sent)
            word.stores = [*word.stores[1 - _DEPTH :], made]
            word.takers = []
            waiting, word.waiting = word.waiting, []
            for receipt, number in waiting:
                if receipt.tag == tag:
                    receipt.meets(word, number, made)
                else:
                    word.waiting.append((receipt, number))

    def _check(self, word: _Word, seen: np.ndarray, site: Any) -> bool:
        """Whether a store is not known to follow the one before, or one who takes what that has
        left: a finding."""
        last = word.stores[-1]
        others = [where for c, at, where in word.takers if entry(seen, c) < at]
        if last.sent is not None and not Signal.is_before(last.sent, seen):
            others = [last.sent.site]
        if not others:
            return False
        self._tell(word, site, others[0], last.tag)
        return True

    def receive(self, thread: int, words: Sequence[_Word], tag: int, site: Any) -> Receipt:
        """A thread begins to wait until words have an epoch."""
        clocks = self.clocks
        seen = clocks.rows[thread, SEEN].copy()
        made = Receipt(len(words), tag, (int(clocks.own[thread]), clocks.epoch(thread)), site)
        clocks.tick(np.array([thread]))
        told = False
        for number, word in enumerate(words):
            stores = word.stores
            first = max((n for n, s in enumerate(stores) if _sees(seen, s)), default=0)
            at = next((n for n in range(first, len(stores)) if stores[n].tag == tag), None)
            if at is None:
                word.waiting.append((made, number))
                continue
            made.meets(word, number, stores[at])
            if at + 1 < len(stores) and not told:
                told = True
                later = stores[at + 1].sent
                self._tell(word, None if later is None else later.site, site, tag)
        return made

    def _tell(self, word: _Word, site: Any, other: Any, tag: int) -> None:
        self.found(Problem(Kind.WORD, site, other, word, {"tag": tag}))


def _sees(seen: np.ndarray, made: Stored) -> bool:
    return made.sent is None or Signal.is_before(made.sent, seen)

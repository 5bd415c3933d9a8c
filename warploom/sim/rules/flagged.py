"""Flagged data: words that are never torn. Who wants them waits until each has the epoch; what a
word held then is what it gives, whatever comes later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warploom.base.dtypes import DType
from warploom.ir.op import Op
from warploom.ir.ops import flagged, watch
from warploom.sim import faults
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.memory import Memory
from warploom.sim.registry import simulates
from warploom.sim.rules.flags import AtTensor, stopped
from warploom.sim.rules.global_memory import Global
from warploom.sim.shadow import written
from warploom.sim.values import carrier, dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_HALF = np.int64(0xFFFF_FFFF)


class Words:
    """The words of one access: places of their first elements, and which of them are meant, in one
    shape. `long`: of two elements, the epoch in the second."""

    __slots__ = ("flags", "long", "memory", "places")

    def __init__(self, memory: Memory, places: np.ndarray, flags: np.ndarray, long: bool) -> None:
        self.memory, self.places, self.flags, self.long = memory, places, flags, long

    def low(self, at: np.ndarray) -> np.ndarray:
        """First elements."""
        return self.memory.flat[at]

    def high(self, at: np.ndarray) -> np.ndarray:
        """The elements with the epoch."""
        return self.memory.flat[at + 1] if self.long else self.memory.flat[at]

    @staticmethod
    def epoch(high: np.ndarray) -> np.ndarray:
        """The epoch of words."""
        return (high >> 32).astype(np.int32)


class Access:
    """How an operation finds its words."""

    def __init__(
        self, t: Translator, op: flagged.Put | flagged.Look | flagged.Take | watch.Words
    ) -> None:
        self.op, self.long = op, _is_long(op)
        self.place = Global(t, op).place

    def words(self, s: Slots, m: Batch) -> Words:
        """Its words, at this time."""
        at = self.place(s, m)
        places = at.plan.elements + at.span.shift
        flags = np.array(True) if at.mask is None else dense(at.mask)
        places, flags = np.broadcast_arrays(places, flags)
        if self.long and (flags & ((places + at.memory.unit) % 2 != 0)).any():
            faults.misaligned(m, self.op, at.memory, 2, places, flags)
        return Words(at.memory, places, flags, self.long)


def _is_long(op: flagged.Put | flagged.Look | flagged.Take | watch.Words) -> bool:
    if isinstance(op, flagged.Put):
        return op.second is not None
    return op.long if isinstance(op, flagged.Look | watch.Words) else op.behind is not None


def _bits(array: np.ndarray) -> np.ndarray:
    """32-bit values as numbers from 0 up."""
    return np.ascontiguousarray(array).view(np.uint32).astype(np.int64)


class Sending:
    """What a `flagged.put` writes."""

    def __init__(self, t: Translator, op: flagged.Put) -> None:
        self.op, self.access = op, Access(t, op)
        self.values = [t.slot(v) for v in op.values]
        self.number = t.slot(op.epoch)

    def epoch(self, s: Slots) -> int:
        """The epoch as an i32."""
        return int(np.int32(s[self.number]))

    def elements(self, s: Slots, m: Batch) -> tuple[Words, np.ndarray, np.ndarray]:
        """The words with their first and their last elements, which are the same where short."""
        words = self.access.words(s, m)
        parts = [_bits(dense(s[v])) for v in self.values]
        tag = np.int64(self.epoch(s)) << 32
        if not words.long:
            low = high = tag | parts[0]
        else:
            low = parts[1] << 32 | parts[0]
            high = tag | (parts[2] if len(parts) > 2 else 0)
        shape = np.broadcast_shapes(words.places.shape, low.shape, high.shape)
        words.places = np.broadcast_to(words.places, shape)
        words.flags = np.broadcast_to(words.flags, shape)
        return words, np.broadcast_to(low, shape), np.broadcast_to(high, shape)


@simulates(flagged.Put)
def put(t: Translator, op: flagged.Put) -> Step:
    sending = Sending(t, op)

    def step(s: Slots, m: Batch) -> None:
        words, low, high = sending.elements(s, m)
        memory, at = words.memory, words.places[words.flags]
        if not memory.writable:
            faults.read_only(m, op, memory)
            return
        memory.flat[at] = low[words.flags]
        if words.long:
            memory.flat[at + 1] = high[words.flags]
        if memory.shadow is not None:
            memory.shadow.flat[at] = written(memory)
            if words.long:
                memory.shadow.flat[at + 1] = written(memory)

    return step


@simulates(flagged.Look)
def look(t: Translator, op: flagged.Look) -> Step:
    access, results = Access(t, op), [t.slot(r) for r in op.results]

    def step(s: Slots, m: Batch) -> None:
        words = access.words(s, m)
        at = np.where(words.flags, words.places, 0)
        for d, read in zip(results, (words.low, words.high), strict=False):
            found = read(at) if words.memory.size else np.zeros(at.shape, np.int64)
            s[d] = np.where(words.flags, found, 0)

    return step


class WordsWait(AtTensor):
    """An actor that waits for words to have an epoch. `low` and `high` are what it has taken."""

    __slots__ = ("epoch", "high", "low", "missing", "places", "stop")

    def __init__(self, op: Op, places: Words, epoch: int, stop: Memory | None = None) -> None:
        self.op, self.places, self.epoch, self.stop = op, places, epoch, stop
        self.missing = places.flags.copy()
        self.low = np.zeros(places.places.shape, np.int64)
        self.high = np.zeros(places.places.shape, np.int64)

    def ready(self) -> bool:
        """Whether all have come; takes those that have."""
        at = self.places.places[self.missing]
        high = self.places.high(at)
        come = Words.epoch(high) == self.epoch
        chosen = np.nonzero(self.missing)
        taken = tuple(axis[come] for axis in chosen)
        self.low[taken] = self.places.low(at[come])
        self.high[taken] = high[come]
        self.missing[taken] = False
        return not self.missing.any() or stopped(self.stop)

    @property
    def count(self) -> int:
        """How many are missing."""
        return int(self.missing.sum())

    @property
    def first(self) -> int:
        """The element of the first that is missing."""
        return int(self.places.places[self.missing][0]) - self.places.memory.origin

    @property
    def held(self) -> int:
        """The epoch that it has."""
        return int(Words.epoch(self.places.high(self.places.places[self.missing][:1]))[0])

    def words(self) -> str:
        more = f" (and {self.count - 1} more)" if self.count > 1 else ""
        return (
            f"element {self.first} of `{self.places.memory.name}`{more} to have the epoch "
            f"{self.epoch}: it has {self.held}, and nobody who runs will send it"
        )

    def values(self, kinds: tuple[DType, ...]) -> list[np.ndarray]:
        """The values of the words, zero where none is meant."""
        halves = [self.low & _HALF, (self.low >> 32) & _HALF, self.high & _HALF]
        found = []
        for half, kind in zip(halves, kinds, strict=False):
            bits = np.where(self.places.flags, half, 0).astype(np.uint32)
            found.append(bits.view(carrier(kind)))
        return found


class Taking:
    """What a `flagged.take` waits for and gives."""

    def __init__(self, t: Translator, op: flagged.Take) -> None:
        self.op, self.access = op, Access(t, op)
        self.number = t.slot(op.epoch)
        self.results = [t.slot(r) for r in op.results]
        self._stop = t.optional(op.stop)

    def begin(self, s: Slots, m: Batch) -> tuple[Words, int]:
        """The words and the epoch."""
        return self.access.words(s, m), int(np.int32(s[self.number]))

    def stop(self, s: Slots) -> Memory | None:
        """The word that ends waits, if there is one."""
        return s[self._stop] if self._stop >= 0 else None

    def finish(self, s: Slots, wait: WordsWait) -> None:
        """All have come."""
        for d, value in zip(self.results, wait.values(self.op.kinds), strict=True):
            s[d] = value


@simulates(flagged.Take)
def take(t: Translator, op: flagged.Take) -> Step:
    taking = Taking(t, op)

    def start(s: Slots, m: Batch) -> Run:
        if m.state.shuffles:
            yield None
        wait = WordsWait(op, *taking.begin(s, m), taking.stop(s))
        if not wait.ready():
            yield wait
        taking.finish(s, wait)

    return Resumable(start)

"""Waits that are watched. Time passes here when nothing else can move: then the first actor with a
limit gives up, and with it all others. Warps of a role are noted together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from warploom.ir import watch as words
from warploom.ir.op import Op
from warploom.ir.ops import watch
from warploom.ir.roles import split_of
from warploom.sim.actors import Left, Limited, Wait
from warploom.sim.barriers import Mbarrier
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.memory import Memory
from warploom.sim.registry import simulates
from warploom.sim.rules.flagged import Access, WordsWait
from warploom.sim.rules.flags import FlagWait, element_of
from warploom.sim.rules.mbarrier import BarrierWait
from warploom.sim.rules.sync import AtNamed

if TYPE_CHECKING:
    from warploom.sim.translate import Translator

_SLOT_BYTES = 8
Noted: TypeAlias = tuple[int, int, int]  # what is waited for, and what is seen there
_Ops: TypeAlias = watch.Barrier | watch.Flag | watch.Words | watch.Meet | watch.At | watch.End


class Notes:
    """The section of a block, where the tensor has one."""

    __slots__ = ("at", "flat", "m")

    def __init__(self, memory: Memory, m: Batch, block: int, size: int) -> None:
        self.m, self.flat = m, memory.flat[memory.origin :]
        at = words.HEAD + block * size
        self.at = at if at + size <= len(self.flat) else -1

    @property
    def stopped(self) -> bool:
        """Whether some warp has given up."""
        return bool(self.flat[words.STOPPED])

    def add(self, word: int, number: int) -> int:
        """Count up a word of the section; what it was."""
        if self.at < 0:
            return 0
        before = int(self.flat[self.at + word])
        self.flat[self.at + word] = before + number
        return before

    def row(self, first: int, place: int, a: int = 0, b: int = 0, seen: int | None = None) -> None:
        """Note where the warps of the actor are; `first` is its first one in the block. With `seen`
        they leave there."""
        if self.at < 0:
            return
        left = int(seen is not None)
        for warp in range(first, first + self.m.actor.warps):
            at = self.at + words.ROWS + words.ROW * warp
            self.flat[at : at + words.ROW] = [place << 1 | left, a, b, seen or 0]


class Watched:
    """What the rules of this family know of an operation while they are built."""

    __slots__ = ("acting", "firsts", "op", "size", "slot")

    def __init__(self, t: Translator, op: _Ops) -> None:
        self.op, self.slot, self.acting = op, t.slot(op.watch), t.acting
        self.size = words.words(op.warps, op.barriers)
        split = split_of(t.kernel)
        self.firsts = {"": 0}
        if split is not None:
            self.firsts |= dict(zip(split.names, split.first, strict=True))

    def notes(self, s: Slots, m: Batch) -> Notes:
        """The notes of the block."""
        return Notes(s[self.slot], m, int(m.linear[0]), self.size)

    def first(self, m: Batch) -> int:
        """The first warp of the actor."""
        return self.firsts[m.actor.role] + m.actor.replica * m.actor.warps

    def until(self, s: Slots, m: Batch, wait: Wait, noted: Callable[[], Noted]) -> Run:
        """Wait with a limit; an actor for which nothing comes notes it and leaves."""
        assert not isinstance(self.op, watch.End)
        notes = self.notes(s, m)
        a, b, _ = noted()
        notes.row(self.first(m), self.op.place, a, b)
        if not wait.ready():
            yield Limited(wait, lambda: notes.stopped)
        if not wait.ready():
            self.leave(notes, m, *noted())

    def leave(self, notes: Notes, m: Batch, a: int, b: int, seen: int) -> None:
        """Let the actor leave the kernel here."""
        assert not isinstance(self.op, watch.End)
        notes.flat[words.STOPPED] = 1
        notes.row(self.first(m), self.op.place, a, b, seen)
        notes.add(words.GONE, self.acting)
        m.state.abandoned = True
        raise Left


def index_of(op: watch.Barrier | watch.Arrive, s: Slots, offset: int) -> int:
    """The number of an mbarrier in its block."""
    return op.first + (int(s[offset]) // _SLOT_BYTES if offset >= 0 else 0)


@simulates(watch.Barrier)
def barrier(t: Translator, op: watch.Barrier) -> Step:
    held, a, p, offset = (
        Watched(t, op),
        t.slot(op.barrier),
        t.slot(op.parity),
        t.optional(op.offset),
    )

    def start(s: Slots, m: Batch) -> Run:
        address = m.state.byte_at(s[a])
        found = m.state.barriers.get(address)
        if found is None:
            return  # the wait itself reports it
        parity = int(s[p]) & 1
        number = index_of(op, s, offset) if op.first >= 0 else -1 - address
        wait = BarrierWait(m, op, found, s[a], parity)
        yield from held.until(s, m, wait, lambda: (number, parity, word_of(found)))

    return Resumable(start)


def word_of(barrier: Mbarrier) -> int:
    """The word that shared memory would hold."""
    return words.written_word(barrier.pending, barrier.bytes, barrier.count, barrier.phase)


@simulates(watch.Flag)
def flag(t: Translator, op: watch.Flag) -> Step:
    held, find, target = Watched(t, op), element_of(t, op), t.slot(op.target)

    def start(s: Slots, m: Batch) -> Run:
        found = find(s, m)
        if found is None:
            return
        memory, at = found
        wait = FlagWait(op, memory, at, int(s[target]))
        element = at - memory.origin
        noted = (element, wait.target)
        yield from held.until(s, m, wait, lambda: (*noted, int(memory.flat[at])))

    return Resumable(start)


@simulates(watch.Words)
def wanted(t: Translator, op: watch.Words) -> Step:
    held, access, epoch = Watched(t, op), Access(t, op), t.slot(op.epoch)

    def start(s: Slots, m: Batch) -> Run:
        wait = WordsWait(op, access.words(s, m), int(np.int32(s[epoch])))

        def noted() -> Noted:
            """The first that is missing, its epoch, and how many more there are."""
            return wait.first, wait.epoch, (wait.count - 1) << 32 | wait.held & 0xFFFFFFFF

        if not wait.ready():
            yield from held.until(s, m, wait, noted)

    return Resumable(start)


class Come(AtNamed):
    """An actor that waits until enough threads have been counted."""

    __slots__ = ("notes", "op", "target", "threads")

    def __init__(self, op: watch.Meet, notes: Notes, number: int, before: int) -> None:
        self.op: Op = op
        self.notes, self.number, self.threads = notes, number, op.threads
        self.target = (before // op.threads + 1) * op.threads

    def ready(self) -> bool:
        return self.notes.at < 0 or self._come() >= self.target

    def _come(self) -> int:
        return int(self.notes.flat[self.notes.at + words.COME + self.number])

    def words(self) -> str:
        come = self._come() % self.threads
        return f"barrier {self.number}: {come} of {self.threads} threads have come"


@simulates(watch.Meet)
def meet(t: Translator, op: watch.Meet) -> Step:
    held = Watched(t, op)

    def start(s: Slots, m: Batch) -> Run:
        notes = held.notes(s, m)
        number = op.id + (m.actor.replica if op.per_replica else 0)
        wait = Come(op, notes, number, notes.add(words.COME + number, held.acting))
        if op.waits:
            yield from held.until(s, m, wait, lambda: (number, op.threads, 0))

    return Resumable(start)


@simulates(watch.Arrive)
def arrive(t: Translator, op: watch.Arrive) -> Step:
    slot, rank, offset = t.slot(op.watch), t.optional(op.rank), t.optional(op.offset)
    size, rows = words.words(op.warps, op.barriers), words.barrier_rows(op.warps)
    count, announced = op.count * t.acting, op.bytes * t.acting

    def step(s: Slots, m: Batch) -> None:
        block = m
        if rank >= 0:
            peers, number = m.state.cluster.blocks, int(s[rank])
            if not 0 <= number < len(peers):
                return  # the arrival itself reports it
            block = peers[number].batch
        notes = Notes(s[slot], m, int(block.linear[0]), size)
        index = index_of(op, s, offset)
        if index >= op.barriers:
            return  # the arrival itself reports it
        row = rows + words.BARRIER_ROW * index
        phase = notes.add(row, count) // op.arrivals
        if announced and notes.at >= 0:
            held = int(notes.flat[notes.at + row + 1])
            notes.flat[notes.at + row + 1] = max(held, phase << words.BYTE_BITS) + announced

    return step


@simulates(watch.At)
def at(t: Translator, op: watch.At) -> Step:
    held = Watched(t, op)

    def step(s: Slots, m: Batch) -> None:
        notes = held.notes(s, m)
        if not op.leaves:
            notes.row(held.first(m), op.place)
        notes.add(words.GONE, -held.acting if op.leaves else held.acting)
        if op.leaves and notes.stopped:
            held.leave(notes, m, 0, 0, 0)

    return step


@simulates(watch.End)
def end(t: Translator, op: watch.End) -> Step:
    held = Watched(t, op)

    def step(s: Slots, m: Batch) -> None:
        notes = held.notes(s, m)
        notes.row(held.first(m), 0, seen=0)
        notes.add(words.GONE, held.acting)

    return step


@simulates(watch.Delay)
def delay(t: Translator, op: watch.Delay) -> Step:
    steps = t.slot(op.at)

    def start(s: Slots, m: Batch) -> Run:
        step = int(s[steps])
        s[steps] = np.int32(step + 1)
        drawn = words.delay(op.seed, op.place, int(m.linear[0]), m.actor.number, step)
        for _ in range(0 if drawn & 1 else 1 + (drawn >> 8) % 4):
            yield None

    return Resumable(start)

"""A watched launch that stood still, put back together from its notes: actors at their waits,
barriers as they were. What is said of it is then what the simulator says of a deadlock.

Knows no device: the notes may be those of a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from warploom.base.diagnostics import Report
from warploom.base.dtypes import i32, i64
from warploom.ir import cluster as clusters
from warploom.ir import watch as words
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Value
from warploom.ir.ops import watch
from warploom.ir.roles import split_of
from warploom.passes.insert_watch import rings_of
from warploom.sim.actors import Around, Schedule, Wait
from warploom.sim.barriers import Mbarrier, NamedBarrier
from warploom.sim.block import BlockState
from warploom.sim.cluster import Cluster, Resident
from warploom.sim.deadlock import deadlock
from warploom.sim.machine import Arena, Batch, Launch
from warploom.sim.memory import Memory
from warploom.sim.rules.cluster import Together
from warploom.sim.rules.flagged import Words, WordsWait
from warploom.sim.rules.flags import FlagWait
from warploom.sim.rules.mbarrier import BarrierWait
from warploom.sim.rules.sync import Meeting
from warploom.sim.translate import Translator

_SLOT_BYTES = 8
_KINDS = (watch.Barrier, watch.Flag, watch.Words, watch.Meet, watch.At)
_Waits: TypeAlias = watch.Barrier | watch.Flag | watch.Words | watch.Meet | watch.At


@dataclass(frozen=True, slots=True)
class Row:
    """What a warp noted: whether it left, at which place, what it waited for and saw there."""

    left: bool
    place: int
    a: int
    b: int
    seen: int


class Unread(Mbarrier):
    """An mbarrier of whose phase bytes are missing, and nobody knows how many."""

    __slots__ = ("word",)

    def missing(self) -> str:
        """What the current phase lacks, in words."""
        word = f"0x{self.word & (1 << 64) - 1:016x}"
        return f"some of {self.expected:,} bytes (the barrier's word is {word})"


class _Some(Around):
    """The wait of some warps of a role, where its others stand elsewhere."""

    __slots__ = ("warps",)

    def __init__(self, wait: Wait, warps: Sequence[int]) -> None:
        super().__init__(wait)
        self.warps = warps

    def ready(self) -> bool:
        return False

    def words(self) -> str:
        plural = "s" * (len(self.warps) > 1)
        return f"{self.wait.words()} (warp{plural} {', '.join(map(str, self.warps))})"


class Stopped:
    """The notes of one launch."""

    def __init__(self, kernel: Kernel, grid: tuple[int, int, int], notes: np.ndarray) -> None:
        self.kernel, self.notes = kernel, notes
        self.launch = Launch(kernel.name, grid, checked=True)
        self.rings, self.barriers = rings_of(kernel)
        self.size = words.words(kernel.warps, self.barriers)
        self.places = {op.place: op for op in walk(kernel.body) if isinstance(op, _KINDS)}
        self.translator = Translator(kernel, checked=False)
        self.translator.steps(kernel.body)
        split = split_of(kernel)
        within = [op for body in split.bodies for op in walk(body)] if split is not None else []
        self.of_roles = {op.place for op in within if isinstance(op, _KINDS)}

    def rows(self, block: int) -> list[Row]:
        """The rows of the warps of a block."""
        at = words.HEAD + block * self.size + words.ROWS
        held = self.notes[at : at + words.ROW * self.kernel.warps].reshape(-1, words.ROW)
        return [Row(bool(r[0] & 1), r[0] >> 1, *r[1:]) for r in held.tolist()]

    def has(self, block: int) -> bool:
        """Whether a block has notes in which some warp waits."""
        end = words.HEAD + (block + 1) * self.size
        return end <= len(self.notes) and any(row.left and row.place for row in self.rows(block))

    def report(self, together: bool, caught: bool) -> Report | None:
        """The deadlock: of the first cluster that stands still, or of all where blocks wait for
        each other (`together`). `caught`: the launch was stopped, so that warps may stand where
        they came to without having left."""
        held = [blocks for blocks in self.clusters() if any(map(self.has, blocks))]
        if not held:
            return None
        resident = Resident(Schedule())
        for blocks in held if together else held[:1]:
            batches = [Batch(self.launch, np.array([b]), Arena(1, 0, False), 0) for b in blocks]
            made = Cluster(self.translator, batches, resident)
            for state, block in zip(made.blocks, blocks, strict=True):
                if words.HEAD + (block + 1) * self.size <= len(self.notes):
                    self.block(state, self.rows(block), caught)
            made.gathering.come = {a for a in made.running if isinstance(a.wait, Together)}
        if not resident.scheduler.actors:
            return None
        deadlock(resident)
        return self.launch.findings[0]

    def clusters(self) -> list[list[int]]:
        """The blocks of the grid, cluster by cluster."""
        if self.kernel.cluster == (1, 1, 1):
            return [[block] for block in range(prod(self.launch.grid))]
        return [list(blocks) for blocks in clusters.of_grid(self.launch.grid, self.kernel.cluster)]

    def block(self, state: BlockState, rows: list[Row], caught: bool) -> None:
        """Put the actors of a block at their places: roles, or all warps where these had not
        begun."""
        split = split_of(self.kernel)
        begun = any(row.place in self.of_roles or row == _ENDED for row in rows)
        if split is None or not begun:
            self.actor(state, "", 0, 0, rows, caught)
            return
        parts = zip(split.names, split.first, split.warps, split.replicas, strict=True)
        for name, first, warps, replicas in parts:
            state.replicas[name] = replicas
            for number in range(replicas):
                at = first + number * warps
                self.actor(state, name, number, at, rows[at : at + warps], caught)

    def actor(
        self, state: BlockState, role: str, replica: int, first: int, rows: list[Row], caught: bool
    ) -> None:
        """The actors that stand for the warps of a role: one for each place where some wait."""
        scheduler = state.cluster.scheduler
        found: dict[tuple[int, int, int], list[int]] = {}
        for warp, row in enumerate(rows):
            if row.place and (row.left or caught):
                found.setdefault((row.place, row.a, row.b), []).append(warp)
        if len(found) > 1:
            # Who waits for the other warps of its own role does so because of these.
            others = {k: w for k, w in found.items() if not self.is_own(k[0], len(rows))}
            found = others or found
        for (place, a, b), warps in found.items():
            made = state.actor(role, replica, len(rows), 0)
            wait = self.wait(state, self.places[place], a, b, rows[warps[0]].seen)
            split = len(found) > 1
            made.wait = _Some(wait, [first + w for w in warps]) if split else wait
            state.begin(made)
        if all(row == _ENDED for row in rows):
            made = state.actor(role, replica, len(rows), 0)
            scheduler.ended.append(made)

    def is_own(self, place: int, warps: int) -> bool:
        """Whether a place is a barrier of one role."""
        op = self.places[place]
        return isinstance(op, watch.Meet) and op.threads == 32 * warps

    def wait(self, state: BlockState, op: _Waits, a: int, b: int, seen: int) -> Wait:
        """What a warp waited for."""
        match op:
            case watch.Barrier():
                address, barrier = self.mbarrier(state, a, b, seen)
                return BarrierWait(state.batch, op, barrier, state.window + address, b)
            case watch.Flag():
                raw = np.array([seen], np.int32).view(np.uint8)
                return FlagWait(op, Memory(raw, i32, -a, op.tensor.name), 0, b)
            case watch.Words():
                held, count = np.int64(seen & 0xFFFFFFFF) << 32, 1 + (seen >> 32)
                memory = Memory(np.array([held]).view(np.uint8), i64, -a, op.tensor.name)
                places = np.zeros(count, np.int64)
                return WordsWait(op, Words(memory, places, places == 0, long=False), b)
            case watch.Meet():
                at = words.HEAD + int(state.batch.linear[0]) * self.size + words.COME + a
                come = int(self.notes[at]) % op.threads
                return Meeting(op, a, NamedBarrier(come, op.threads))
            case _:
                return Together(op, state.cluster)

    def mbarrier(
        self, state: BlockState, number: int, parity: int, word: int
    ) -> tuple[int, Mbarrier]:
        """Where an mbarrier lies, and its state while somebody waits for this parity."""
        if number < 0:
            address, count, come, announced = -1 - number, words.read_word(word).arrivals, 0, 0
        else:
            buffer, first, count = self.ring(number)
            placed = next(p for p in self.translator.placed if p.buffer is buffer)
            address = placed.at + _SLOT_BYTES * (number - first)
            at = words.HEAD + int(state.batch.linear[0]) * self.size
            at += words.barrier_rows(self.kernel.warps) + words.BARRIER_ROW * number
            come, announced = (int(w) for w in self.notes[at : at + words.BARRIER_ROW])
        phase = come // count
        phase -= (phase & 1) != parity
        read = words.read_word(word)
        pending = min(max((phase + 1) * count - come, 0), count) if number >= 0 else read.pending
        told = (read.arrivals, read.pending) == (count, pending) and (pending or read.lacks)
        made = (Mbarrier if told or pending else Unread)(
            state.name_of(address), state.buffer_of(address), count
        )
        made.phase, made.pending = phase, pending
        held = announced >> words.BYTE_BITS == phase
        made.expected = announced & (1 << words.BYTE_BITS) - 1 if held else 0
        made.bytes = read.lacks if told else 0
        if isinstance(made, Unread):
            made.word = word
        return address, made

    def ring(self, number: int) -> tuple[Value, int, int]:
        """The buffer of an mbarrier, the number of its first one, and arrivals of a phase."""
        buffer = max(
            (b for b, ring in self.rings.items() if ring.first <= number),
            key=lambda b: self.rings[b].first,
        )
        return buffer, self.rings[buffer].first, self.rings[buffer].arrivals


_ENDED = Row(True, 0, 0, 0, 0)


def report_of(
    kernel: Kernel,
    grid: tuple[int, int, int],
    notes: np.ndarray,
    *,
    together: bool = False,
    caught: bool = False,
) -> Report | None:
    """The deadlock that the notes of a watched launch tell of, if its warps left; `kernel` is the
    watched one, at the stage of the machine."""
    if not notes[words.STOPPED]:
        return None
    return Stopped(kernel, grid, notes).report(together, caught)

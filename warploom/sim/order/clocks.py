"""Vector clocks of threads, with a component for each thread and each asynchronous agent.

A thread has five clocks, rows of one array. CAUSE: what happens-before it, which decides races.
SEEN: that and what it knows to be over without acquiring it, which decides stability. FENCED and
FENCED_GLOBAL: which ordinary accesses to shared and global memory asynchronous ones may follow.
READS: what is known besides CAUSE as far as it is reads: they are over.
Knows nothing of barriers and memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from warploom.sim.order.lanes import Lanes

CAUSE, SEEN, FENCED, FENCED_GLOBAL, READS = range(5)
ROWS = 5
_WIDTH = 64


class Clocks:
    """Clocks of all threads: `rows[thread, row, component]`, epochs that count from 1.

    Components of agents that nothing refers to any more are used again, with later epochs: `live`
    gives those that something refers to.
    """

    def __init__(self, live: Callable[[], Iterable[int]] = tuple) -> None:
        self.rows = np.zeros((8, ROWS, _WIDTH), np.int32)
        self.own = np.zeros(8, np.intp)  # component of each thread
        self.count = 0
        self._live = live
        self._next = 0
        self._free: list[int] = []
        self._agents: list[int] = []  # components in use by agents that may be given back
        self._epochs: dict[int, int] = {}
        self._marks: dict[bytes, np.ndarray] = {}  # of groups of threads: their epochs in `rows`
        self.threads: set[int] = set()  # their components
        # Of the lanes of a warp: components of what they do and of copies that they begin, and the
        # epochs of those up to which every lane knows of the others.
        self.parts = np.zeros((8, 2), np.intp)
        self.common = np.zeros((8, 2), np.int32)

    @property
    def width(self) -> int:
        """Components that a clock has room for."""
        return self.rows.shape[2]

    def thread(self) -> int:
        """A new thread, which has seen nothing."""
        if self.count == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
            self.own = np.concatenate([self.own, np.zeros_like(self.own)])
            self.parts = np.concatenate([self.parts, np.zeros_like(self.parts)])
            self.common = np.concatenate([self.common, np.zeros_like(self.common)])
        number = self.count
        self.count += 1
        self.own[number] = self.component()
        self.parts[number] = self.own[number]
        self.threads.add(int(self.own[number]))
        self.rows[number, : SEEN + 1, self.own[number]] = 1
        return number

    def component(self) -> int:
        """A component that is never given back."""
        number = self._next
        self._next += 1
        if number == self.width:
            self._widen()
        return number

    def _widen(self) -> None:
        self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)], axis=2)
        self._marks.clear()

    def agent(self) -> tuple[int, int]:
        """A component for one asynchronous agent, and the epoch that stands for it."""
        if not self._free and self._next >= self.width:
            self._collect()
        component = self._free.pop() if self._free else self.component()
        epoch = self._epochs[component] = self._epochs.get(component, 0) + 1
        self._agents.append(component)
        return component, epoch

    def _collect(self) -> None:
        live = set(self._live())
        self._free = [c for c in self._agents if c not in live]
        self._agents = [c for c in self._agents if c in live]
        if len(self._free) < self.width // 4:
            self._widen()

    # ---- what threads do -------------------------------------------------------------------

    def epoch(self, thread: int) -> int:
        """The epoch that a thread is in."""
        return int(self.rows[thread, CAUSE, self.own[thread]])

    def tick(self, threads: np.ndarray) -> None:
        """Begin new epochs, so that what comes now is not part of what was published."""
        if len(threads) == 1:
            self._tick_one(threads[0])
            return
        key = threads.tobytes()
        at = self._marks.get(key)
        if at is None:
            first = threads * (ROWS * self.width) + self.own[threads]
            at = np.concatenate([first + row * self.width for row in (CAUSE, SEEN)])
            self._marks[key] = at
        self.rows.reshape(-1)[at] += 1

    def _tick_one(self, thread: int) -> None:
        self.rows[thread, : SEEN + 1, self.own[thread]] += 1

    def release(self, threads: np.ndarray) -> np.ndarray:
        """What threads know together at this point; they go on in new epochs."""
        known = self.known(threads)
        self.tick(threads)
        return known

    def unordered(self, known: np.ndarray) -> np.ndarray:
        """What an arrival without order publishes: all that has been seen, but of accesses only
        those of agents, which are over."""
        made = known.copy()
        made[CAUSE, list(self.threads)] = 0
        made[SEEN + 1 :] = 0
        return made

    def seen(self, thread: int) -> np.ndarray:
        """What a copy publishes of what its issuer knows: what has been seen."""
        known = np.zeros((ROWS, self.width), np.int32)
        known[SEEN] = self.rows[thread, SEEN]
        return known

    def read(self, thread: int) -> np.ndarray:
        """The same of a store that is done later: also what agents have done, and what has been
        read."""
        known = self.rows[thread].copy()
        known[READS] = np.maximum(known[READS], known[CAUSE])
        known[CAUSE, list(self.threads)] = 0
        return known

    def lanes(self, thread: int, bits: np.ndarray) -> Lanes:
        """The lanes of a warp, of which `bits` make an access to each cell."""
        parts, common = self.parts[thread].tolist(), self.common[thread].tolist()
        return Lanes(bits, self.rows[thread], tuple(parts), tuple(common))

    def known(self, threads: np.ndarray) -> np.ndarray:
        """What threads know together."""
        if len(threads) == 1:
            return self.rows[threads[0]].copy()
        return np.maximum.reduce(self.rows[threads])

    def acquire(self, threads: np.ndarray, known: np.ndarray) -> None:
        """Threads learn something."""
        width = known.shape[1]
        held = self.rows[threads, :, :width]
        self.rows[threads, :, :width] = np.maximum(held, known, out=held)
        parts = entries(known[CAUSE], self.parts[threads])
        self.common[threads] = np.maximum(self.common[threads], parts)

    def see(self, threads: np.ndarray, seen: np.ndarray) -> None:
        """Threads see that something is over, without acquiring it."""
        width = len(seen)
        held = self.rows[threads, SEEN, :width]
        self.rows[threads, SEEN, :width] = np.maximum(held, seen, out=held)

    def complete(self, threads: np.ndarray, component: int, epoch: int) -> None:
        """Threads learn that an agent is done up to an epoch."""
        held = self.rows[threads, : SEEN + 1, component]
        self.rows[threads, : SEEN + 1, component] = np.maximum(held, epoch, out=held)

    def forget(self, threads: np.ndarray, held: np.ndarray) -> None:
        """Threads know again what they held (a copy of their rows), but for what they have
        seen."""
        width = held.shape[2]
        for thread, before in zip(threads.tolist(), held, strict=True):
            row, own = self.rows[thread], self.own[thread]
            epoch = row[CAUSE, own]
            for kept in (CAUSE, FENCED, FENCED_GLOBAL, READS):
                row[kept, :width] = before[kept]
                row[kept, width:] = 0
            row[CAUSE, own] = epoch

    def meet(self, threads: np.ndarray) -> None:
        """Threads meet: each learns what all know."""
        self._meet_lanes(threads)
        self.rows[threads] = np.maximum.reduce(self.rows[threads])
        self.tick(threads)

    def meet_pairs(self, some: np.ndarray, others: np.ndarray) -> None:
        """Thread i of `some` meets thread i of `others`."""
        self._meet_lanes(some)
        if len(some) == 1:
            rows, one, other = self.rows, some[0], others[0]
            np.maximum(rows[one], rows[other], out=rows[one])
            rows[other] = rows[one]
            self._tick_one(one)
            self._tick_one(other)
            return
        both = np.maximum(self.rows[some], self.rows[others])
        self.rows[some] = self.rows[others] = both
        self.tick(some)
        self.tick(others)

    def _meet_lanes(self, threads: np.ndarray) -> None:
        """The lanes of these know of each other what each of them knows of itself."""
        self.common[threads] = self.rows[threads[:, None], CAUSE, self.parts[threads]]

    def fence(self, threads: np.ndarray, shared: bool, everywhere: bool) -> None:
        """What happens-before here is fenced towards asynchronous accesses."""
        rows = [FENCED] * shared + [FENCED_GLOBAL] * everywhere
        cause = np.maximum(self.rows[threads, CAUSE], self.rows[threads, READS])
        for row in rows:
            self.rows[threads, row] = np.maximum(self.rows[threads, row], cause)
        self.tick(threads)


def joined(one: np.ndarray | None, other: np.ndarray) -> np.ndarray:
    """Two clocks (or stacks of them) as one; widths may differ."""
    if one is None:
        return other.copy()
    if one.shape[-1] < other.shape[-1]:
        one, other = other.copy(), one
    width = other.shape[-1]
    np.maximum(one[..., :width], other, out=one[..., :width])
    return one


def entry(clock: np.ndarray, component: int) -> int:
    """A component of a clock that may be narrower."""
    return int(clock[component]) if component < len(clock) else 0


def entries(clock: np.ndarray, components: np.ndarray) -> np.ndarray:
    """Components of a clock that may be narrower."""
    if components.size and int(components.max()) >= len(clock):
        held = np.zeros(components.shape, clock.dtype)
        there = components < len(clock)
        held[there] = clock[components[there]]
        return held
    return clock[components]

"""What a step sees besides its slots: the blocks of this batch, their shared memory, the launch.

Steps act on a list of slots, one a value or storage. Knows no single operation.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from warploom.base.diagnostics import Report
from warploom.base.errors import CheckError
from warploom.ir.op import Loc

if TYPE_CHECKING:
    from warploom.sim.actors import Actor, Wait
    from warploom.sim.block import BlockState

Slots: TypeAlias = list[Any]
Step: TypeAlias = "Callable[[Slots, Batch], None]"
Run: TypeAlias = "Generator[Wait | None, None, None]"

_FINDINGS = 100  # after so many, a launch only counts
# Trips of one `while` after which it is taken for endless; a checked trip takes some times longer.
_MOST_TRIPS, _MOST_CHECKED_TRIPS = 1_000_000, 100_000


class Endless(Exception):
    """A launch ends here: one of its loops does not, which has been found."""


class Resumable:
    """A step that may have to wait. `start(s, m)` gives a generator: it yields what it waits for,
    or None where others may go on first."""

    __slots__ = ("start",)

    def __init__(self, start: Callable[[Slots, Batch], Run]) -> None:
        self.start = start

    def __call__(self, s: Slots, m: Batch) -> None:
        """Run to the end where no other actor can help: what is waited for must be there."""
        for wait in self.start(s, m):
            if wait is not None and not wait.ready():
                raise RuntimeError(f"{wait.op.OPCODE} waits where nothing else can run")


def sequence(steps: Sequence[Step]) -> Step:
    """Steps one after the other as one step, resumable where one of them is."""
    parts = tuple(steps)
    if not any(isinstance(part, Resumable) for part in parts):
        if len(parts) == 2:
            return _pair(*parts)

        def run(s: Slots, m: Batch) -> None:
            for part in parts:
                part(s, m)

        return run

    def start(s: Slots, m: Batch) -> Run:
        for part in parts:
            if isinstance(part, Resumable):
                yield from part.start(s, m)
            else:
                part(s, m)

    return Resumable(start)


def _pair(first: Step, second: Step) -> Step:
    def run(s: Slots, m: Batch) -> None:
        first(s, m)
        second(s, m)

    return run


@dataclass
class Launch:
    """One launch: its grid, what it printed and what was found."""

    kernel: str
    grid: tuple[int, int, int]
    checked: bool = False
    seed: int = 0
    findings: list[Report] = field(default_factory=list)
    seen: set[Any] = field(default_factory=set)
    printed: list[tuple[int, str]] = field(default_factory=list)
    prompt: Any = None
    outside: Any = None  # histories of global memory, in checked mode
    recording: Any = None  # where runs leave tapes for exploration, in checked mode

    @property
    def most_trips(self) -> int:
        """Trips of a `while` that are let pass."""
        return _MOST_CHECKED_TRIPS if self.checked else _MOST_TRIPS

    def find(self, report: Report, loc: Loc) -> None:
        """A fault: raised in plain mode; in checked mode noted, one for each place and code."""
        if not self.checked:
            raise CheckError(report)
        key = (report.code, loc.file, loc.line, loc.column, report.message)
        if key not in self.seen and len(self.findings) < _FINDINGS:
            self.seen.add(key)
            self.findings.append(report)

    def name_block(self, linear: int) -> str:
        """A block's index as users count."""
        x, y, _ = self.grid
        return f"({linear % x}, {linear // x % y}, {linear // (x * y)})"


class Arena:
    """Shared memory of a batch: `pitch` bytes a block, in one array. Used again by later batches.

    `buffers` are views that steps have made of it.
    """

    __slots__ = ("buffers", "raw", "written")

    def __init__(self, count: int, pitch: int, checked: bool) -> None:
        self.raw = np.empty(count * pitch, np.uint8)
        self.written = np.empty(count * pitch, np.uint8) if checked else None
        self.buffers: dict[Any, Any] = {}

    def clear(self) -> None:
        """Back to unwritten, which reads as NaN."""
        self.raw.fill(0xFF)
        if self.written is not None:
            self.written.fill(0)


class Batch:
    """The blocks that steps run for at a time, and their shared memory.

    `rows` are their places in the batch that shared memory was made for: a branch that only some
    blocks take runs in a batch of these.
    """

    __slots__ = (
        "actor",
        "arena",
        "barriers",
        "clock",
        "count",
        "ids",
        "launch",
        "linear",
        "pitch",
        "rows",
        "shadow",
        "state",
    )

    actor: Actor
    state: BlockState

    def __init__(self, launch: Launch, linear: np.ndarray, arena: Arena, pitch: int) -> None:
        x, y, _ = launch.grid
        self.launch = launch
        self.count = len(linear)
        self.linear = linear
        self.rows = np.arange(self.count).reshape(-1, 1, 1)
        self.ids = tuple(
            _id_scalar(number, extent)
            for number, extent in zip(
                (linear % x, linear // x % y, linear // (x * y)), launch.grid, strict=True
            )
        )
        self.pitch = pitch  # bytes of shared memory a block
        self.arena = arena
        self.shadow: Slots = []
        # Counters of all parts of the batch: barriers, and operations where somebody asks.
        self.barriers = [0]
        self.clock = [0]

    def of(self, places: np.ndarray) -> Batch:
        """The batch of some of these blocks; they keep their shared memory."""
        part = object.__new__(Batch)
        part.launch, part.arena, part.pitch = self.launch, self.arena, self.pitch
        part.count = len(places)
        part.linear = self.linear[places]
        part.rows = self.rows[places]
        part.ids = tuple(i[places] if isinstance(i, np.ndarray) else i for i in self.ids)
        part.shadow, part.barriers, part.clock = self.shadow, self.barriers, self.clock
        return part

    def for_actor(self, actor: Actor) -> Batch:
        """The batch of a role's replica: the same block, its own written-ness of values."""
        part = self.of(np.arange(self.count))
        part.shadow = self.shadow.copy()
        part.actor, part.state = actor, self.state
        return part


def _id_scalar(numbers: np.ndarray, extent: int) -> Any:
    if extent == 1:
        return 0
    if len(numbers) == 1:
        return int(numbers[0])
    return numbers.astype(np.int32).reshape(-1, 1, 1)


def uniform(value: Any) -> Any:
    """A scalar that is the same for all blocks of the batch as a Python number."""
    if type(value) is not np.ndarray:
        return value if isinstance(value, (bool, int)) else value.item()
    first = value[0, 0, 0]
    if len(value) == 1 or (value == first).all():
        return first.item()
    return value


def move(s: Slots, m: Batch, sources: list[int], targets: list[int]) -> None:
    """Assign several slots at once."""
    for target, value in zip(targets, [s[a] for a in sources], strict=True):
        s[target] = value
    if m.shadow:
        for target, value in zip(targets, [m.shadow[a] for a in sources], strict=True):
            m.shadow[target] = value

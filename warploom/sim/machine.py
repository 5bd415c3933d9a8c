"""What a step sees besides its slots: the blocks of this batch, their shared memory, the launch.

Steps act on a list of slots, one a value or storage. Knows no single operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from warploom.base.diagnostics import Report
from warploom.base.errors import CheckError
from warploom.ir.op import Loc

Slots: TypeAlias = list[Any]
Step: TypeAlias = "Callable[[Slots, Batch], None]"

_FINDINGS = 100  # after so many, a launch only counts


@dataclass
class Launch:
    """One launch: its grid, what it printed and what was found."""

    kernel: str
    grid: tuple[int, int, int]
    checked: bool = False
    findings: list[Report] = field(default_factory=list)
    seen: set[Any] = field(default_factory=set)
    printed: list[tuple[int, str]] = field(default_factory=list)
    prompt: Any = None

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

    __slots__ = ("arena", "barriers", "count", "ids", "launch", "linear", "pitch", "rows", "shadow")

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
        self.barriers = [0]  # one counter for all parts of the batch

    def of(self, places: np.ndarray) -> Batch:
        """The batch of some of these blocks; they keep their shared memory."""
        part = object.__new__(Batch)
        part.launch, part.arena, part.pitch = self.launch, self.arena, self.pitch
        part.count = len(places)
        part.linear = self.linear[places]
        part.rows = self.rows[places]
        part.ids = tuple(i[places] if isinstance(i, np.ndarray) else i for i in self.ids)
        part.shadow, part.barriers = self.shadow, self.barriers
        return part


def _id_scalar(numbers: np.ndarray, extent: int) -> Any:
    if extent == 1:
        return 0
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

"""mbarriers and named barriers as PTX defines them: phases, arrivals, bytes. Knows no operation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Mbarrier:
    """An mbarrier in shared memory, `name` in `buffer`. `phase` counts completed phases; `pending`
    arrivals and `bytes` are what the current phase still lacks, of `count` and `expected`.

    Bytes may complete before they are announced, so that `bytes` is negative for a while. `line` of
    the source makes it, 0 where that is not known.
    """

    __slots__ = ("buffer", "bytes", "came", "count", "expected", "line", "name", "pending", "phase")

    def __init__(self, name: str, buffer: str, count: int, line: int = 0) -> None:
        self.name, self.buffer, self.line = name, buffer, line
        self.count = self.pending = count
        self.phase = self.bytes = self.expected = 0
        self.came: list[Any] = []  # who has arrived in this phase

    def passed(self, parity: int) -> bool:
        """Whether the phase with this parity, the last but one or the last begun, has completed."""
        return self.phase & 1 != parity

    def expect(self, size: int) -> None:
        """Announce bytes of the current phase."""
        self.bytes += size
        self.expected += size

    def complete(self, size: int) -> None:
        """Bytes that have arrived."""
        self.bytes -= size
        self._end()

    def arrive(self, count: int) -> None:
        """Arrivals; at most as many as are pending."""
        self.pending -= count
        self._end()

    def _end(self) -> None:
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending, self.expected = self.count, 0
            self.came.clear()

    def overrun(self) -> bool:
        """Whether more bytes came than were announced, and nobody can announce any more."""
        return self.pending == 0 and self.bytes < 0

    def forgive(self) -> None:
        """Forget bytes that were too many, so that the run goes on."""
        self.bytes = 0
        self._end()

    def missing(self) -> str:
        """What the current phase lacks, in words."""
        parts = []
        if self.pending:
            plural = "s" if self.count > 1 else ""
            parts.append(f"{self.pending} of {self.count} arrival{plural}")
        if self.bytes > 0:
            parts.append(f"{self.bytes:,} of {self.expected:,} bytes")
        if self.bytes < 0:
            parts.append(f"the announcement of {-self.bytes:,} bytes")
        return " and ".join(parts)


@dataclass(slots=True)
class NamedBarrier:
    """A barrier of the hardware, by number. `generation` counts how often it has opened; `threads`
    is what this time waits for, `users` names those who have ever come."""

    arrived: int = 0
    threads: int = 0
    generation: int = 0
    users: set[str] = field(default_factory=set)

    def arrive(self, threads: int, of: int) -> None:
        """So many threads arrive, `of` are awaited; the last ones open it."""
        self.threads = of
        self.arrived += threads
        if self.arrived >= of:
            self.arrived = 0
            self.generation += 1

"""A launch whose roles note what they do and when, and the events as rows. Knows no form of a
timeline; how events get into a kernel is the business of `passes.insert_trace`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.base import target as targets
from warploom.base.diagnostics import shown_path
from warploom.base.errors import error
from warploom.base.table import aligned
from warploom.ir.kernel import Kernel as MachineKernel
from warploom.ir.kernel import walk
from warploom.ir.ops.debug import Record
from warploom.ir.roles import split_of
from warploom.passes.insert_trace import rows_of
from warploom.runtime import arguments as binding
from warploom.runtime import compile as compiler
from warploom.runtime import driver, memory, places
from warploom.runtime import variant as variants
from warploom.runtime.arguments import Arguments
from warploom.runtime.arrays import SIM, read

if TYPE_CHECKING:
    from warploom.runtime.launch import Call

MOST_EVENTS = 1 << 20
_UNWRITTEN = -1


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One event: `clock` since the first event of its block; `waited` until it went on again."""

    block: int
    role: str
    replica: int
    clock: int
    event: str
    what: str
    line: int
    file: str
    waited: int | None = None


@dataclass(slots=True)
class Trace:
    """The events of a launch, block by block in the order of time. `unit` is what clocks count:
    "cycles" of an SM, or "operations" of the simulator. `full`: roles that had more events."""

    kernel: str
    unit: str
    rows: list[TraceRow] = field(default_factory=list)
    full: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[TraceRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def json(self) -> dict[str, Any]:
        """The trace as plain data."""
        rows = [asdict(row) for row in self.rows]
        return {"kernel": self.kernel, "unit": self.unit, "rows": rows, "full": self.full}

    def text(self) -> str:
        """Two tables: how long each role ran and waited for what, and the events."""
        if not self.rows:
            return f"{self.kernel}: no events"
        shown: list[tuple[object, ...]] = [
            ("block", "clock", "role", "event", "", "waited", "line"),
        ]
        for r in self.rows:
            waited = "" if r.waited is None else f"{r.waited:,}"
            place = f"{shown_path(r.file)}:{r.line}"
            shown.append((r.block, f"{r.clock:,}", _who(r), r.event, r.what, waited, place))
        lines = [f"{self.kernel}, clocks in {self.unit}", ""]
        lines += [*aligned(self.summary(), "lrlr"), "", *aligned(shown, "rrlllrl")]
        lines += [f"{who} had more events: ask for more" for who in self.full]
        return "\n".join(lines)

    def summary(self) -> list[tuple[object, ...]]:
        """A line a role and thing that it waited for, longest wait first; blocks added up."""
        spans: dict[str, int] = {}
        waits: dict[tuple[str, str], list[int]] = {}
        starts: dict[tuple[str, int], int] = {}
        for r in self.rows:
            who = _who(r)
            if r.event == "begin":
                starts[who, r.block] = r.clock
            elif r.event == "end":
                spans[who] = spans.get(who, 0) + r.clock - starts.get((who, r.block), 0)
            if r.waited is not None:
                held = waits.setdefault((who, r.what.partition("[")[0]), [])
                held.append(r.waited)
        lines: list[tuple[object, ...]] = [("role", self.unit, "waited for", "in all", "times")]
        for who in dict.fromkeys(_who(r) for r in self.rows):
            own = {what: held for (w, what), held in waits.items() if w == who}
            span = f"{spans[who]:,}" if who in spans else ""
            for what, held in sorted(own.items(), key=lambda item: -sum(item[1])) or [("", [])]:
                total = f"{sum(held):,}" if held else ""
                lines.append((who, span, what or "nothing", total, len(held) or ""))
                who, span = "", ""
        return lines


def _who(row: TraceRow) -> str:
    return f"{row.role} {row.replica}" if row.role else "block"


def trace(call: Call, blocks: int, events: int) -> Trace:
    """Make the launch of a call with events noted; raises what the launch raises."""
    for name, number, most in (("blocks", blocks, 1 << 20), ("events", events, MOST_EVENTS)):
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
            raise error("H021", f"{name}={number!r}: a number from 1 to {most:,}")
    launcher, held = call.launcher, call.arguments
    request = replace(call.request, trace=events)
    on_gpu = held.place != SIM
    target = variants.target_for(places.gpu_number(held.place)) if on_gpu else targets.DEFAULT
    if 0 in launcher.grid:
        return Trace(request.name, _unit(on_gpu))
    kernel = compiler.machine_kernel(request, target)
    blocks = min(blocks, int(np.prod(launcher.grid)))
    rows = _rows(kernel)
    empty = np.full(blocks * len(rows) * events * 2, _UNWRITTEN, np.int64)
    buffer = memory.to_device(empty, held.place) if on_gpu else empty
    built = variants.build(request, held.place)
    held = built.kept.behind(held, int(np.prod(launcher.grid)), launcher.stream, own=True)
    given = _with_trace(held, buffer)
    binding.check_written(request.name, given, built.written)
    launcher.check_ways(built, call.arguments)
    built.launch(launcher.grid, given, launcher.stream, launcher.ways)
    if on_gpu:
        driver.synchronize(places.gpu_number(held.place))
    noted = memory.to_numpy(buffer).reshape(blocks, len(rows), events, 2)
    return _read(kernel, noted, rows, _unit(on_gpu))


def _unit(on_gpu: bool) -> str:
    return "cycles" if on_gpu else "operations"


def _with_trace(held: Arguments, buffer: Any) -> Arguments:
    """The arguments with the trace behind them."""
    view = read(buffer, "trace")
    return replace(
        held,
        names=(*held.names, "trace"),
        values=[*held.values, view],
        strides=[*held.strides, (1,)],
    )


def _rows(kernel: MachineKernel) -> list[tuple[str, int]]:
    """Role and replica of each row of a block."""
    split = split_of(kernel)
    if split is None:
        return [("", 0)]
    return [(name, number) for name, rows in rows_of(split) for number in range(len(rows))]


def _read(
    kernel: MachineKernel, noted: np.ndarray, rows: list[tuple[str, int]], unit: str
) -> Trace:
    """The rows of a trace from what the launch has noted."""
    known = {op.event: op for op in walk(kernel.body) if isinstance(op, Record)}
    made = Trace(kernel.name, unit)
    for block, by_row in enumerate(noted):
        found: list[TraceRow] = []
        start = min((int(pairs[0, 0]) for pairs in by_row if pairs[0, 1] != _UNWRITTEN), default=0)
        for (role, replica), pairs in zip(rows, by_row, strict=True):
            kept = pairs[pairs[:, 1] != _UNWRITTEN]
            found += _of_role(known, kept, TraceRow(block, role, replica, start, "", "", 0, ""))
            if len(kept) == len(pairs) and known[int(kept[-1, 1]) >> 32].kind != "end":
                made.full.append(f"block {block}, {f'{role} {replica}' if role else 'the block'}")
        made.rows += sorted(found, key=lambda row: row.clock)
    return made


def _of_role(known: dict[int, Record], pairs: np.ndarray, like: TraceRow) -> Iterator[TraceRow]:
    """The rows of one role; a wait and what ends it are one."""
    waiting: TraceRow | None = None
    for clock, word in pairs.tolist():
        op = known[word >> 32]
        at = clock - like.clock
        if op.kind == "go":
            if waiting is not None:
                yield replace(waiting, waited=at - waiting.clock)
            waiting = None
            continue
        value = (word & 0xFFFFFFFF) - ((word & 0x80000000) << 1)
        what = op.what
        if op.value is not None:
            what = f"{what} = {value}" if op.kind == "turn" else f"{what}[{value // op.unit}]"
        made = replace(like, clock=at, event=op.kind, what=what, line=op.loc.line, file=op.loc.file)
        if op.kind == "wait":
            waiting = made
        else:
            yield made
    if waiting is not None:
        yield waiting

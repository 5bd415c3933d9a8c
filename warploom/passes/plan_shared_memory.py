"""Places the shared buffers. Buffers whose lives do not overlap in program order may share bytes:
the barrier pass works on bytes, so sharing is ordered by construction."""

from __future__ import annotations

from collections.abc import Iterable

from warploom.base.errors import Error, error
from warploom.base.target import Target
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import cluster, tma
from warploom.ir.ops.roles import Split
from warploom.ir.ops.scalar import Binary
from warploom.ir.ops.shared_memory import Address, BufferOp

_ALIGN = 16
_SCRATCH = "scratch"  # as the rules of lowering call it
_SHOWN = 6  # parts of a plan that is too large


def plan_shared_memory(kernel: Kernel, target: Target) -> None:
    """Give each buffer its place and the kernel its number of shared bytes.

    Needs: stage machine. Gives: `at` of every buffer, `kernel.shared_bytes`. Raises CompileError
    B001 where the target has less.
    """
    lives = _lives(kernel.body)
    placed: list[tuple[int, int, int, int]] = []  # (first use, last use, from byte, to byte)
    total = 0
    for together, (first, last) in sorted(_together(lives), key=lambda item: item[1]):
        size, align = _span(together), max(buffer.align for buffer in together)
        busy = sorted((lo, hi) for born, dies, lo, hi in placed if born <= last and first <= dies)
        at = 0
        for lo, hi in busy:
            if at + size <= lo:
                break
            at = -(-max(at, hi) // align) * align
        for buffer in together:
            buffer.at = at + buffer.within
        placed.append((first, last, at, at + size))
        total = max(total, at + size)
    if total > target.shared_per_block:
        raise _too_much(lives, total, target)
    kernel.shared_bytes = total


def _together(
    lives: dict[BufferOp, tuple[int, int]],
) -> list[tuple[list[BufferOp], tuple[int, int]]]:
    """Buffers that are placed as one (those of a region), and from when to when one lives."""
    groups: dict[object, list[BufferOp]] = {}
    for buffer in lives:
        groups.setdefault(buffer if buffer.region < 0 else buffer.region, []).append(buffer)
    return [
        (group, (min(lives[b][0] for b in group), max(lives[b][1] for b in group)))
        for group in groups.values()
    ]


def _span(together: list[BufferOp]) -> int:
    return max(buffer.within + _size(buffer) for buffer in together)


def _size(buffer: BufferOp) -> int:
    return -(-buffer.size // _ALIGN) * _ALIGN


def _too_much(buffers: Iterable[BufferOp], total: int, target: Target) -> Error:
    """The report of too large a plan: its parts, largest first, and how much is too much."""
    groups = [group for group, _ in _together(dict.fromkeys(buffers, (0, 0)))]
    parts = sorted(groups, key=_span, reverse=True)
    notes = [f"{_span(group):,} bytes: {_parts(group)}" for group in parts[:_SHOWN]]
    if rest := parts[_SHOWN:]:
        notes.append(f"{sum(map(_span, rest)):,} bytes: {len(rest)} smaller parts")
    limit, name = target.shared_per_block, _name(parts[0][0])
    largest = [max(group, key=_size) for group in parts]
    fits, why = _most_stages(largest, total, limit)
    return error(
        "B001",
        f"a block needs {total:,} bytes of shared memory, and {target} has {limit:,}",
        parts[0][0].loc,
        label=f"`{name}` is the largest part" if name else "the largest part is exchanged here",
        notes=[*notes, f"{total - limit:,} bytes too many", *why],
        hint=f"use {fits} stage{'s' * (fits > 1)} or smaller tiles"
        if fits
        else "use smaller tiles",
    )


def _most_stages(parts: list[BufferOp], total: int, limit: int) -> tuple[int, list[str]]:
    """How many stages of the largest ring fit, 0 where none does, with the arithmetic."""
    rings: dict[int, int] = {}  # by stages: bytes of one stage
    for buffer in parts:
        if buffer.slots > 1:
            rings[buffer.slots] = rings.get(buffer.slots, 0) + buffer.size // buffer.slots
    if not rings:
        return 0, []
    stages = max(rings, key=lambda count: count * rings[count])
    size, rest = rings[stages], total - stages * rings[stages]
    fits = max((limit - rest) // size, 0)
    note = f"a stage of {stages} takes {size:,} bytes, all else {rest:,}: "
    return fits, [note + f"({limit:,} - {rest:,}) / {size:,} = {fits} of them fit"]


def _name(buffer: BufferOp) -> str:
    """The name of a buffer in the source; none for what lowering makes."""
    return buffer.result.name if buffer.result.name != _SCRATCH else ""


def _part(buffer: BufferOp) -> str:
    """A buffer in words: what the source made, or what threads exchange in a line."""
    held, line = f"{buffer.elements:,} {buffer.dtype}", buffer.loc.line
    name = _name(buffer)
    return (
        f"`{name}`, {held}, line {line}" if name else f"{held} that threads exchange, line {line}"
    )


def _parts(group: list[BufferOp]) -> str:
    """The same of buffers that share bytes, each name once."""
    named = {buffer.result.name: _part(buffer) for buffer in reversed(group)}
    return "; on the same bytes ".join(reversed(named.values()))


def _lives(block: Block) -> dict[BufferOp, tuple[int, int]]:
    """First and last position in program order at which each buffer is named.

    A buffer made outside a loop and used inside lives through the whole loop; what peers reach,
    which are elsewhere in the program, always.
    """
    lives = _Lives()
    lives.visit(block)
    for buffer in lives.reached:
        lives.spans[buffer] = (0, lives.clock)
    return lives.spans


class _Lives:
    def __init__(self) -> None:
        self.spans: dict[BufferOp, tuple[int, int]] = {}
        self.made: dict[Value, BufferOp] = {}
        self.reached: dict[BufferOp, None] = {}  # by other blocks of the cluster
        self.clock = 0

    def visit(self, inside: Block) -> None:
        for op in inside.ops:
            self.clock += 1
            if isinstance(op, BufferOp):
                self.made[op.result] = op
                self.spans[op] = (self.clock, self.clock)
            start, outer = self.clock, set(self.spans)
            for inner in op.regions():
                self.visit(inner)
            for value in op.operand_values():
                self.touch(value, op)
            if isinstance(op, Split):
                self.widen(self.spans, start, start)
            elif op.regions():
                self.widen(outer, start, None)

    def touch(self, value: Value, op: Op) -> None:
        buffer = self.made.get(value)
        if buffer is None:
            return
        self.spans[buffer] = (self.spans[buffer][0], self.clock)
        if isinstance(op, cluster.Address) or (
            isinstance(op, tma.LoadBox) and op.multicast is not None
        ):
            self.reached[buffer] = None
        if isinstance(op, Address | Binary):
            # An address may be computed long before it is used: it stands for its buffer.
            self.made[op.result] = buffer

    def widen(self, buffers: Iterable[BufferOp], start: int, earliest: int | None) -> None:
        """What is used since `start` lives until now, and from `earliest` on: roles run at the same
        time, and a loop comes back."""
        for buffer in list(buffers):
            first, last = self.spans[buffer]
            if last > start:
                first = first if earliest is None else min(first, earliest)
                self.spans[buffer] = (first, self.clock)

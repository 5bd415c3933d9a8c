"""Places the shared buffers. Buffers whose lives do not overlap in program order may share bytes:
the barrier pass works on bytes, so sharing is ordered by construction."""

from __future__ import annotations

from collections.abc import Iterable

from warploom.base.errors import Error, error
from warploom.base.target import Target
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Value
from warploom.ir.ops.roles import Split
from warploom.ir.ops.shared_memory import BufferOp

_ALIGN = 16


def plan_shared_memory(kernel: Kernel, target: Target) -> None:
    """Give each buffer its place and the kernel its number of shared bytes.

    Needs: stage machine. Gives: `at` of every buffer, `kernel.shared_bytes`. Raises CompileError
    B001 where the target has less.
    """
    lives = _lives(kernel.body)
    placed: list[tuple[int, int, int, int]] = []  # (first use, last use, from byte, to byte)
    total = 0
    for buffer, (first, last) in sorted(lives.items(), key=lambda item: item[1]):
        size = _size(buffer)
        busy = sorted((lo, hi) for born, dies, lo, hi in placed if born <= last and first <= dies)
        at = 0
        for lo, hi in busy:
            if at + size <= lo:
                break
            at = -(-max(at, hi) // buffer.align) * buffer.align
        buffer.at = at
        placed.append((first, last, at, at + size))
        total = max(total, at + size)
    if total > target.shared_per_block:
        raise _too_much(lives, total, target)
    kernel.shared_bytes = total


def _size(buffer: BufferOp) -> int:
    return -(-buffer.elements * buffer.dtype.bytes // _ALIGN) * _ALIGN


def _too_much(buffers: Iterable[BufferOp], total: int, target: Target) -> Error:
    largest = sorted(buffers, key=_size, reverse=True)[:3]
    notes = [
        f"{_size(b):,} bytes: {b.elements:,} {b.dtype} that threads exchange in line {b.loc.line}"
        for b in largest
    ]
    return error(
        "B001",
        f"a block needs {total:,} bytes of shared memory, and {target} has "
        f"{target.shared_per_block:,}",
        largest[0].loc,
        label="the largest part is exchanged here",
        notes=notes,
        hint="use smaller tiles",
    )


def _lives(block: Block) -> dict[BufferOp, tuple[int, int]]:
    """First and last position in program order at which each buffer is named.

    A buffer made outside a loop and used inside lives through the whole loop.
    """
    lives: dict[BufferOp, tuple[int, int]] = {}
    made: dict[Value, BufferOp] = {}
    clock = 0

    def visit(inside: Block) -> None:
        nonlocal clock
        for op in inside.ops:
            clock += 1
            if isinstance(op, BufferOp):
                made[op.result] = op
                lives[op] = (clock, clock)
            start = clock
            outer = set(lives)
            for inner in op.regions():
                visit(inner)
            for value in op.operand_values():
                touch(value)
            if isinstance(op, Split):
                # Roles run at the same time: what they use lives as long as they do.
                for buffer, (first, last) in lives.items():
                    if last > start or first > start:
                        lives[buffer] = (min(first, start), clock)
            elif op.regions():
                for buffer in outer:
                    first, last = lives[buffer]
                    if last > start:
                        lives[buffer] = (first, clock)

    def touch(value: Value) -> None:
        buffer = made.get(value)
        if buffer is not None:
            lives[buffer] = (lives[buffer][0], clock)

    visit(block)
    return lives

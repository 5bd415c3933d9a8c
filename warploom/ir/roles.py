"""Whose operations are these: walks a kernel role by role. Knows nothing of placement."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op
from warploom.ir.ops.roles import Split


def walk_roles(kernel: Kernel) -> Iterator[tuple[Op, int]]:
    """Every operation with the number of warps that execute it together: those of its role's
    replica, or of the block before the roles split."""
    yield from _walk(kernel.body, kernel.warps)


def _walk(block: Block, warps: int) -> Iterator[tuple[Op, int]]:
    for op in block.ops:
        yield op, warps
        for number, inner in enumerate(op.regions()):
            yield from _walk(inner, op.warps[number] if isinstance(op, Split) else warps)

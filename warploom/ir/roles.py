"""Whose operations are these: walks a kernel role by role. Knows nothing of placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op
from warploom.ir.ops.roles import Split


def walk_roles(kernel: Kernel) -> Iterator[tuple[Op, int]]:
    """Every operation with the number of warps that execute it together: those of its role's
    replica, or of the block before the roles split."""
    yield from _walk(kernel.body, kernel.warps)


def split_of(kernel: Kernel) -> Split | None:
    """The operation that splits a kernel into roles, where it has some."""
    return next((op for op in kernel.body.ops if isinstance(op, Split)), None)


def lines_of_roles(kernel: Kernel) -> dict[str, frozenset[tuple[str, int]]]:
    """The source lines (file, line) that only the operations of one role come from, by its name."""
    split = split_of(kernel)
    if split is None:
        return {}
    inside = [list(walk(body)) for body in split.bodies]
    own = [{(op.loc.file, op.loc.line) for op in ops if op.loc.line} for ops in inside]
    within = {op for ops in inside for op in ops}
    outside = {(op.loc.file, op.loc.line) for op in walk(kernel.body) if op not in within}
    counts = Counter(place for places in own for place in places)
    counts.update([*outside, (kernel.loc.file, kernel.loc.line)])
    only = (frozenset(place for place in places if counts[place] == 1) for places in own)
    return dict(zip(split.names, only, strict=True))


def _walk(block: Block, warps: int) -> Iterator[tuple[Op, int]]:
    for op in block.ops:
        yield op, warps
        for number, inner in enumerate(op.regions()):
            yield from _walk(inner, op.warps[number] if isinstance(op, Split) else warps)

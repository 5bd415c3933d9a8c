"""Orders the shared-memory accesses of a role as the program text orders them.

Between two accesses to the same bytes, at least one a write, that different warps may make, all
warps of the role must meet. Loops are walked twice, so that the last accesses of one trip meet the
first of the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.base.target import Target
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op
from warploom.ir.ops.control import For, If
from warploom.ir.ops.shared_memory import BufferOp, Load, Store
from warploom.ir.ops.sync import Barrier, WarpSync


@dataclass(frozen=True, slots=True)
class _Touch:
    """Bytes lo ≤ b < hi accessed since the last barrier."""

    lo: int
    hi: int
    writes: bool
    what: str

    def conflicts(self, other: _Touch) -> bool:
        return self.lo < other.hi and other.lo < self.hi and (self.writes or other.writes)


def insert_role_barriers(kernel: Kernel, target: Target) -> None:
    """Insert `sync.barrier` (`sync.warp` where the role is one warp) before each access that needs
    it.

    Needs: planned shared memory. Gives: shared accesses of the role ordered on every path.
    """
    _Inserter(kernel).block(kernel.body, frozenset())


class _Inserter:
    def __init__(self, kernel: Kernel) -> None:
        self.warps = kernel.warps

    def block(self, block: Block, pending: frozenset[_Touch]) -> frozenset[_Touch]:
        """Insert into a block entered with these accesses open; gives those open at its end."""
        ops: list[Op] = []
        for op in block.ops:
            touch = _touch(op)
            if touch is not None:
                enemy = next((p for p in sorted(pending, key=str) if p.conflicts(touch)), None)
                if enemy is not None:
                    ops.append(self.barrier(f"{enemy.what}, then {touch.what}", op))
                    pending = frozenset()
                pending |= {touch}
            elif isinstance(op, Barrier) or (isinstance(op, WarpSync) and self.warps == 1):
                pending = frozenset()
            elif isinstance(op, For):
                pending = self.loop(op, pending)
            elif isinstance(op, If):
                pending = self.block(op.then, pending) | self.block(op.orelse, pending)
            ops.append(op)
        block.ops = ops
        return pending

    def loop(self, op: For, pending: frozenset[_Touch]) -> frozenset[_Touch]:
        # The second walk enters the body with what its own end leaves open.
        return pending | self.block(op.body, pending | self.block(op.body, pending))

    def barrier(self, why: str, op: Op) -> Op:
        if self.warps == 1:
            return WarpSync(why=why, loc=op.loc)
        return Barrier(threads=32 * self.warps, why=why, loc=op.loc)


def _touch(op: Op) -> _Touch | None:
    if not isinstance(op, Load | Store):
        return None
    made = op.buffer.owner
    assert isinstance(made, BufferOp)
    writes = isinstance(op, Store)
    what = f"{'write' if writes else 'read'} of {op.buffer.name or 'buffer'}@{made.at}"
    return _Touch(made.at, made.at + made.elements * made.dtype.bytes, writes, what)

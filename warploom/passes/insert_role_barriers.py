"""Orders the memory accesses of a role as the program text orders them.

Between two accesses to the same bytes, at least one a write, that different threads may make, all
warps of the role must meet: accesses to the same bytes of shared memory, and to a tensor that the
kernel writes. Loops are walked twice, so that the last accesses of one trip meet the first of the
next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from warploom.base.target import Target
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import global_memory, scalar, shared_memory, tma
from warploom.ir.ops.control import For, If, OneThread
from warploom.ir.ops.roles import Split
from warploom.ir.ops.sync import Barrier, FenceAsync, WarpSync
from warploom.ir.types import Tensor


@dataclass(frozen=True, slots=True)
class _Touch:
    """An access since the last barrier: bytes lo ≤ b < hi of a space.

    `proxy` is "async" for what the copy engine does on behalf of the role. `threads` is equal for
    two accesses in which each thread touches the same elements; None where
    nothing is known of it.
    """

    space: str
    lo: int
    hi: int
    writes: bool
    what: str
    threads: tuple[object, ...] | None = None
    proxy: str = "generic"

    def conflicts(self, other: _Touch) -> bool:
        """Whether `other`, which comes later, must wait for all warps after this one."""
        if self.space != other.space or not (self.writes or other.writes):
            return False
        if self.proxy == "async" and (self.writes or other.proxy == "async"):
            return False  # a barrier of its own says when a copy has arrived
        if self.threads is not None and self.threads == other.threads:
            return False
        return self.lo < other.hi and other.lo < self.hi


def insert_role_barriers(kernel: Kernel, target: Target) -> None:
    """Insert `sync.barrier` (`sync.warp` where the role is one warp) before each access that needs
    it.

    Needs: planned shared memory. Gives: shared accesses of the role, and its accesses to tensors
    that it writes, ordered on every path.
    """
    _Inserter(kernel).block(kernel.body, frozenset())


class _Inserter:
    def __init__(self, kernel: Kernel) -> None:
        self.warps = kernel.warps
        self.barrier_id = 0
        self.per_replica = False
        self.tensors = _tensor_numbers(kernel)

    def block(self, block: Block, pending: frozenset[_Touch]) -> frozenset[_Touch]:
        """Insert into a block entered with these accesses open; gives those open at its end."""
        ops: list[Op] = []
        for op in block.ops:
            touch = self.touch(op)
            if touch is not None:
                pending = self.meet(op, {touch}, pending, ops)
            elif isinstance(op, Barrier) or (isinstance(op, WarpSync) and self.warps == 1):
                pending = frozenset()
            elif isinstance(op, For):
                pending = self.loop(op, pending)
            elif isinstance(op, Split):
                self.roles(op)
            elif isinstance(op, OneThread):
                # All warps meet before the one thread goes on alone.
                pending = self.meet(op, _copies(op.body), pending, ops)
            elif isinstance(op, If):
                pending = self.block(op.then, pending) | self.block(op.orelse, pending)
            ops.append(op)
        block.ops = ops
        return pending

    def meet(
        self, op: Op, touches: set[_Touch], pending: frozenset[_Touch], ops: list[Op]
    ) -> frozenset[_Touch]:
        """Put a barrier before `op`, which makes these accesses, where one is needed."""
        pairs = [
            (enemy, touch)
            for enemy in sorted(pending, key=_order)
            for touch in sorted(touches, key=_order)
            if enemy.conflicts(touch)
        ]
        if pairs:
            enemy, touch = pairs[0]
            why = f"{enemy.what}, then {touch.what}"
            if any(e.proxy == "generic" and t.proxy == "async" for e, t in pairs):
                ops.append(FenceAsync(why=why, loc=op.loc))
            ops.append(self.barrier(why, op))
            pending = frozenset()
        return pending | touches

    def loop(self, op: For, pending: frozenset[_Touch]) -> frozenset[_Touch]:
        # The second walk enters the body with what its own end leaves open. In another trip the
        # same text may touch other elements.
        leaves = frozenset(replace(t, threads=None) for t in self.block(op.body, pending))
        return pending | self.block(op.body, pending | leaves)

    def roles(self, op: Split) -> None:
        """Each role keeps its own order, with its own barrier; order between roles is not ours."""
        for number, body in enumerate(op.bodies):
            self.warps = op.warps[number]
            self.barrier_id = op.barrier[number]
            self.per_replica = op.replicas[number] > 1
            self.block(body, frozenset())

    def barrier(self, why: str, op: Op) -> Op:
        if self.warps == 1:
            return WarpSync(why=why, loc=op.loc)
        return Barrier(
            threads=32 * self.warps,
            id=self.barrier_id,
            per_replica=self.per_replica,
            why=why,
            loc=op.loc,
        )

    def touch(self, op: Op) -> _Touch | None:
        if isinstance(op, shared_memory.Load | shared_memory.Store):
            return _shared(op.buffer, writes=isinstance(op, shared_memory.Store))
        if isinstance(op, global_memory.Load | global_memory.Store):
            threads = (op.tensor, op.base, op.offset, op.axis, op.vec)
            return self.tensor(op.tensor, isinstance(op, global_memory.Store), threads)
        if isinstance(op, global_memory.LoadScalar):
            return self.tensor(op.tensor, False, None)
        return None

    def tensor(
        self, tensor: Value, writes: bool, threads: tuple[object, ...] | None
    ) -> _Touch | None:
        number = self.tensors.get(tensor)
        if number is None:
            return None
        verb = "write" if writes else "read"
        what = f"{verb} of tensor {tensor.name or number}"
        return _Touch("global", number, number + 1, writes, what, threads)


def _tensor_numbers(kernel: Kernel) -> dict[Value, int]:
    """A number for each tensor that is written, under whatever name: those that may overlap share
    one."""
    written = [kernel.params[i] for i in kernel.written]
    overlap = [p for p in kernel.params if isinstance(p.type, Tensor) and p.type.cls.aliased]
    numbers = {tensor: 1 + i for i, tensor in enumerate(written)}
    return numbers | {tensor: 0 for tensor in overlap} if written else {}


def _order(touch: _Touch) -> tuple[str, int, int, bool, str]:
    return touch.space, touch.lo, touch.hi, touch.writes, touch.what


def _copies(block: Block) -> set[_Touch]:
    """What the copy engine is asked to do in a block of one thread."""
    found: set[_Touch] = set()
    for op in block.ops:
        if isinstance(op, tma.LoadBox | tma.StoreBox):
            writes = isinstance(op, tma.LoadBox)
            touch = _shared(_buffer_of(op.address), writes=writes)
            found.add(replace(touch, proxy="async", what=touch.what + " by the copy engine"))
        for inner in op.regions():
            found |= _copies(inner)
    return found


def _buffer_of(address: Value) -> Value:
    """The buffer that a byte address was computed from."""
    op = address.owner
    if isinstance(op, shared_memory.Address):
        return op.buffer
    assert isinstance(op, scalar.Binary)
    inner = [v for v in (op.lhs, op.rhs) if _is_address(v)]
    return _buffer_of(inner[0])


def _is_address(value: Value) -> bool:
    op = value.owner
    if isinstance(op, scalar.Binary):
        return _is_address(op.lhs) or _is_address(op.rhs)
    return isinstance(op, shared_memory.Address)


def _shared(buffer: Value, *, writes: bool) -> _Touch:
    made = buffer.owner
    assert isinstance(made, shared_memory.BufferOp)
    size = made.elements * made.dtype.bytes
    verb = "write" if writes else "read"
    return _Touch(
        "shared", made.at, made.at + size, writes, f"{verb} of {buffer.name or 'buffer'}@{made.at}"
    )

"""What operations do to memory, as the pass that orders a role's accesses sees it: bytes,
by whom, through which proxy. Tensors are not looked at (`order_tensors`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import (
    bulk,
    cluster,
    cp_async,
    descriptor,
    mbarrier,
    remote,
    scalar,
    shared_memory,
    tma,
    wgmma,
)
from warploom.ir.types import Regs
from warploom.passes.owners import Owner, Owners

COPY, PRODUCT = "copy", "product"  # agents of the asynchronous proxy
THREADS = "threads"  # copies that threads have begun, until they have waited for them
SEND = "send"  # stores to peers that threads have begun; ordinary ones but for when they are done


@dataclass(frozen=True, slots=True)
class Touch:
    """An access: bytes lo ≤ b < hi of a space.

    `agent` is the unit that acts on behalf of the role, or nothing for its own threads. `threads`
    is equal for two accesses in which each thread touches the same elements; None where nothing is
    known of it. `owner` says the same of accesses in different trips of loops.
    """

    space: str
    lo: int
    hi: int
    writes: bool
    what: str
    threads: tuple[object, ...] | None = None
    owner: Owner | None = None
    agent: str = ""

    def overlaps(self, other: Touch) -> bool:
        """Whether both concern the same bytes, and one changes them."""
        if self.space != other.space or not (self.writes or other.writes):
            return False
        return self.lo < other.hi and other.lo < self.hi

    def conflicts(self, other: Touch) -> bool:
        """Whether `other`, which comes later, must wait for all warps after this one.

        An asynchronous access is one that is known to be done in the threads that waited for it:
        the thread that began a copy, all threads for a product.
        """
        if not self.overlaps(other):
            return False
        if self.agent == COPY and other.agent:
            return False  # one thread begins all copies of a role
        if self.owner is not None and other.owner is not None and self.owner.same(other.owner):
            return False
        return self.threads is None or self.threads != other.threads

    @property
    def is_asynchronous(self) -> bool:
        """Whether it goes by the asynchronous proxy."""
        return self.agent in (COPY, PRODUCT)

    @property
    def order(self) -> tuple[str, int, int, bool, str]:
        """What touches are sorted by."""
        return self.space, self.lo, self.hi, self.writes, self.what


class Memory:
    """The shared memory of one kernel. What is done to a peer's is taken for the block's own: the
    peer may be the block itself."""

    def __init__(self, kernel: Kernel) -> None:
        self._owners = Owners(kernel)
        agents = [t for op in walk(kernel.body) for t in self.of_agents(op)]
        self.asynchronous = [t for t in agents if t.is_asynchronous]

    def of_threads(self, op: Op) -> Touch | None:
        """The access that the role's own threads make by an operation."""
        if isinstance(op, shared_memory.Load):
            made, own = _shared(op.buffer, writes=False), _own(op, op.result)
            return replace(made, threads=own, owner=self._owners.of(op))
        if isinstance(op, shared_memory.Store):
            made, own = _shared(op.buffer, writes=True), _own(op, op.value)
            return replace(made, threads=own, owner=self._owners.of(op))
        if isinstance(op, shared_memory.LoadMatrices | remote.LoadGroups):
            return _shared(op.buffer, writes=False)
        if isinstance(op, remote.StoreGroups):
            return _shared(op.buffer, writes=True)
        if isinstance(op, shared_memory.StoreMatrices | cp_async.CopyGroups):
            return _shared(op.buffer, writes=True)
        if isinstance(op, descriptor.Write):
            return _shared(buffer_of(op.address), writes=True)
        if isinstance(op, mbarrier.Init):
            return _shared(buffer_of(op.barrier), writes=True)
        return None

    def of_agents(self, op: Op) -> list[Touch]:
        """The accesses to shared memory that units make on behalf of the role."""
        if isinstance(op, tma.LoadBox | tma.StoreBox | bulk.LoadBytes | bulk.StoreBytes):
            writes = isinstance(op, tma.LoadBox | bulk.LoadBytes)
            made = _shared(buffer_of(op.address), writes=writes)
            return [replace(made, agent=COPY, what=f"{made.what} by the copy engine")]
        if isinstance(op, remote.SendGroups):
            return [replace(_shared(op.buffer, writes=True), agent=SEND)]
        if isinstance(op, remote.CopyBytes):
            made = [
                _shared(buffer_of(op.source), writes=False),
                _shared(buffer_of(op.target), writes=True),
            ]
            return [replace(t, agent=COPY, what=f"{t.what} by the copy engine") for t in made]
        if isinstance(op, wgmma.Mma | wgmma.MmaRegisters):
            addresses = (op.a, op.b) if isinstance(op, wgmma.Mma) else (op.b,)
            made = [_shared(buffer_of(address), writes=False) for address in addresses]
            return [replace(t, agent=PRODUCT, what=f"{t.what} by a product") for t in made]
        return []

    def crosses(self, touch: Touch) -> bool:
        """Whether some unit accesses what this access of threads concerns."""
        return touch.space == "shared" and any(
            touch.lo < other.hi and other.lo < touch.hi for other in self.asynchronous
        )


def _own(op: shared_memory.Load | shared_memory.Store, value: Value) -> tuple[object, ...] | None:
    """Equal for accesses to a buffer by the same offsets in groups of the same shape: each thread
    touches what it did before, if no two threads hold an element of the tile."""
    layout = value.type.layout if isinstance(value.type, Regs) else None
    alone = layout is not None and not layout.replicas
    return (op.buffer, op.offset, op.axis, op.vec) if alone else None


def arrives(block: Block) -> bool:
    """Whether a block signals on an mbarrier what was done before."""
    return any(isinstance(op, mbarrier.Arrive | cluster.Arrive) for op in walk(block))


def buffer_of(address: Value) -> Value:
    """The buffer that a byte address was computed from."""
    todo = [address]
    while todo:
        op = todo.pop().owner
        if isinstance(op, shared_memory.Address):
            return op.buffer
        if isinstance(op, cluster.Address):
            todo.append(op.address)
        if isinstance(op, scalar.Binary):
            todo += (op.lhs, op.rhs)
    raise ValueError(f"{address} is no address in a buffer")


def _shared(buffer: Value, *, writes: bool) -> Touch:
    made = buffer.owner
    assert isinstance(made, shared_memory.BufferOp)
    end, verb = made.at + made.size, "write" if writes else "read"
    what = f"{verb} of {buffer.name or 'buffer'}@{made.at}"
    return Touch("shared", made.at, end, writes, what)

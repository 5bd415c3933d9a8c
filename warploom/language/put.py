"""Filling an item of a pipe: by one thread that begins copies, or by all threads that store.

Which of the two a `put` is follows from what stands inside. Where the threads of a role store, each
of its warps waits for the free item and arrives once on its barrier; copies begun beside that are
announced by one thread, which arrives once more, and threads that copy elements arrive each when
those are there. Knows nothing of consumers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warploom.base.dtypes import i32
from warploom.ir.kernel import walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import bulk, control, cp_async, mbarrier, sync, tma
from warploom.ir.ops import roles as role_ops
from warploom.language import core
from warploom.language.barrier import Barrier
from warploom.language.context import Refused, builder, current
from warploom.language.regions import Names, Nested, needs_all
from warploom.language.shared import Shared
from warploom.language.values import Scalar, wrap

if TYPE_CHECKING:
    from warploom.language.pipe import Pipe

_BY_ALL = (
    *(control.OneThread, role_ops.Position, role_ops.HandBack, role_ops.Skip),
    *(sync.Meet, sync.WarpSync, sync.Barrier),
)
_BY_ONE = (
    *(tma.Load, tma.Store, tma.Prefetch, tma.Commit, tma.Wait),
    *(bulk.Load, bulk.Store, bulk.Prefetch, mbarrier.Expect),
)


class Put(Nested):
    """`with ring.put() as (a, b):`."""

    keyword = "`put`"

    def __init__(self, pipe: Pipe, in_flight: int | None = None) -> None:
        super().__init__()
        self.pipe = pipe
        self.in_flight = in_flight or pipe.stages
        self.plan: Any = None
        self.bytes = 0
        self.stores = False  # threads of the role write the item
        self.barrier: Barrier | None = None
        self.expect: Op | None = None  # the announcement, or the thread that makes it
        self.threads: set[Block] = set()  # regions of one thread directly inside
        self.got: dict[Value, int] = {}  # bytes of each buffer that a block of a cluster gets
        self.around: Block | None = None
        self.one: control.OneThread | None = None
        self.last: Op | None = None  # the arrivals of its warps

    @property
    def by_threads(self) -> bool:
        """Whether threads copy elements into the item without waiting for them."""
        return any(isinstance(op, cp_async.Copy) for op in walk(self.block))

    def enter(self) -> Any:
        """Wait until the next item is free."""
        held = current()
        if held.put is not None or held.send is not None:
            raise Refused(
                "P010",
                "a `put` stands inside another one",
                hint="end the first before the second begins",
            )
        pipe = self.pipe
        self.plan = pipe.join(pipe.producers, "put")
        position = builder().add(pipe.position(pipe.put_ring))
        slot, phase = (wrap(v) for v in position.results)
        self.begin_block()
        pipe.empty[slot].wait(phase ^ 1)
        self._wait_for_earlier(slot, phase)
        self.barrier = pipe.full[slot]
        self.expect = builder().add(mbarrier.Expect(barrier=self.barrier.one(), bytes=0))
        held.put = self
        views = pipe.views(slot)
        return views[0] if len(views) == 1 else views

    def _wait_for_earlier(self, slot: Scalar, phase: Scalar) -> None:
        """Wait until the item put `in_flight` before this one is full. Before the first one a
        barrier that nothing has completed lets the odd phase pass, as it does for free places."""
        behind = self.pipe.stages - self.in_flight
        if behind == 0:
            return  # that item stood in this place, which is free
        lap_before = core.compare("lt", slot.value, self.in_flight)
        shift = core.select(lap_before, behind, -self.in_flight)
        earlier = wrap(core.binary("add", slot.value, shift))
        parity = core.binary("xor", phase.value, core.convert(lap_before, i32))
        self.pipe.full[earlier].wait(wrap(parity))

    def announce(self, tile: Shared, blocks: Value | None) -> Barrier:
        """Count the bytes of a copy into this item, which goes to these blocks of the cluster too;
        gives the barrier on which they complete."""
        here = builder().block
        if here is not self.block and here not in self.threads:
            raise Refused(
                "P011",
                "a copy into an item stands in a loop or branch inside its `put`",
                notes=("the bytes of an item are announced once, as a constant",),
                hint="put the loop or branch around the `put`, or unroll it",
            )
        if self.pipe.sharing is not None:
            self.bytes += self.pipe.sharing.announce(self, tile, blocks)
        elif blocks is None:
            self.bytes += tile.bytes
        else:
            raise Refused(
                "P035",
                "a copy into an item of this block's own pipe goes to other blocks",
                argument="multicast",
                hint="make the pipe with `cluster=True`, so that each block waits for its peers",
            )
        assert self.barrier is not None
        return self.barrier

    def leave(self) -> None:
        """Close the item: the bytes are known now, and who has filled it."""
        held = current()
        held.put = None
        assert isinstance(self.expect, mbarrier.Expect)
        self.expect.bytes = self.bytes
        self.end_block()
        self.around = builder().block
        self.stores = any(needs_all(op) or isinstance(op, _BY_ALL) for op in walk(self.block))
        self.names = Names.KEPT if self.stores else Names.LOST
        self.one = builder().add(control.OneThread(body=self.block))
        if self.stores:
            self.spread()
        self.pipe.puts.append(self)
        if self.pipe.sharing is not None:
            self.pipe.sharing.check(self, self.pipe.buffers)

    # ---- by all threads of the role --------------------------------------------------------

    def spread(self) -> None:
        """Let all threads of the role do what one thread would: each thing of the copy engine stays
        with one, and each warp arrives at the end."""
        if self.one is None:
            return
        assert self.around is not None and self.barrier is not None
        at = self.around.ops.index(self.one)
        filled = [self._alone(op) for op in self.block.ops[:-1]]
        arrival = mbarrier.Arrive(barrier=self.barrier.one(), loc=self.one.loc)
        self.last = _thread(arrival, "warp")
        self.around.ops[at : at + 1] = [*filled, self.last]
        self.one = None

    def _alone(self, op: Op) -> Op:
        if op is self.expect:
            self.expect = _thread(op)
            return self.expect
        if isinstance(op, _BY_ONE):
            return _thread(op)
        if not isinstance(op, control.OneThread):
            for inner in op.regions():
                inner.ops = [self._alone(o) for o in inner.ops]
        return op

    def count_copies(self) -> None:
        """Let each thread arrive once more, when its own copies are done."""
        assert self.around is not None and self.barrier is not None and self.last is not None
        arrival = cp_async.Arrive(barrier=self.barrier.one(), loc=self.last.loc)
        self.around.ops.insert(self.around.ops.index(self.last), arrival)

    def forget_bytes(self) -> None:
        """Nobody in the role announces bytes for this pipe."""
        assert self.around is not None
        if self.expect in self.around.ops:
            self.around.ops.remove(self.expect)


def arrivals(puts: list[Put]) -> int:
    """Make the puts of one role into one pipe alike; gives the arrivals of one replica an item."""
    if not any(put.stores for put in puts):
        return 1
    copies = any(put.bytes for put in puts)
    by_threads = any(put.by_threads for put in puts)
    for put in puts:
        put.spread()
        if not copies:
            put.forget_bytes()
        if by_threads:
            put.count_copies()
    warps = puts[0].plan.warps
    return warps + int(copies) + (32 * warps if by_threads else 0)


def _thread(op: Op, per: str = "role") -> control.OneThread:
    return control.OneThread(
        per=per, body=Block((), [op, control.Yield(values=(), loc=op.loc)]), loc=op.loc
    )

"""Watches the waits of a debug build: ahead of each stands an operation that notes where the warp
is and leaves the kernel when nothing comes for too long. With a seed, warps are also held up at
random at each place of synchronisation. Nothing is put in unless the kernel asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from warploom.base.dtypes import i32, i64
from warploom.base.target import Target
from warploom.ir.addresses import buffer_behind, peer_behind
from warploom.ir.builder import Builder
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Loc, Op, Value
from warploom.ir.ops import (
    cluster,
    cp_async,
    flagged,
    flags,
    mbarrier,
    roles,
    scalar,
    shared_memory,
    sync,
    watch,
)
from warploom.ir.ops.control import Assign, Declare, OneThread
from warploom.ir.roles import split_of
from warploom.ir.types import Scalar, Tensor, TensorClass

# What the other roles see of a role: its arrivals, and the waits in which it may stand still.
_PLACES = (
    *(mbarrier.Wait, mbarrier.Arrive, mbarrier.Expect, cluster.Arrive, cp_async.Arrive),
    *(
        flags.Poll,
        flags.Post,
        flagged.Put,
        flagged.Take,
        sync.Barrier,
        sync.Agree,
        sync.Arrive,
        cluster.Sync,
    ),
)


@dataclass(frozen=True, slots=True)
class Ring:
    """The mbarriers of one buffer: the first one's number in the block, and arrivals of a phase."""

    first: int
    arrivals: int


def rings_of(kernel: Kernel) -> tuple[dict[Value, Ring], int]:
    """The mbarriers that a block makes, by their buffers, and how many there are."""
    found: dict[Value, Ring] = {}
    total = 0
    for op in walk(kernel.body):
        if isinstance(op, mbarrier.Init):
            buffer = buffer_behind(op.barrier)
            if buffer is not None and buffer not in found:
                found[buffer] = Ring(total, op.arrivals)
                total += shared_memory.buffer_of(buffer).elements
    return found, total


def insert_watch(kernel: Kernel, target: Target) -> None:
    """Put in what a kernel that is `watched` asks for.

    Needs: stage machine, barriers of roles, storages. Gives: a last parameter for notes (an i64
    tensor of one axis), operations of the family `watch`, and with `delays` a storage a role.
    """
    if not kernel.watched:
        return
    notes = Value(Tensor(i64, 1, TensorClass("1")), "watch", kernel.loc)
    kernel.params += (notes,)
    kernel.written += (len(kernel.params) - 1,)
    _Watch(kernel, notes, *rings_of(kernel)).whole()


@dataclass(slots=True)
class _Watch:
    """One kernel while it is watched. `sizes` is what each operation says of the sections."""

    kernel: Kernel
    notes: Value
    rings: dict[Value, Ring]
    barriers: int
    sizes: dict[str, Any] = field(init=False)
    number: Any = field(default_factory=lambda: count(1))
    steps: Value | None = None
    multiplies: bool = False
    alone: bool = False

    def whole(self) -> None:
        """Watch the roles, or the block where it has none."""
        kernel, split = self.kernel, split_of(self.kernel)
        self.sizes = {"watch": self.notes, "warps": kernel.warps, "barriers": self.barriers}
        self.role(kernel.body, kernel.loc, "block", ends=split is None)
        if split is not None:
            for name, body in zip(split.names, split.bodies, strict=True):
                self.role(body, split.loc, name, ends=True)

    def role(self, body: Block, loc: Loc, name: str, ends: bool) -> None:
        """Watch one role; `ends`: nothing comes behind its body."""
        self.steps = None
        own = (op for op in body.ops if not isinstance(op, roles.Split))
        within = (inner for op in own for inner in (op, *_within(op)))
        self.multiplies = any(op.FAMILY == "wgmma" for op in within)
        head: list[Op] = []
        if self.kernel.delays >= 0:
            build = Builder(Block(), loc)
            declare = Declare(type=Scalar(i32), loc=loc)
            declare.results = (Value(Scalar(i32), "steps", loc),)
            declare.result.owner, declare.result.storage = declare, f"steps_of_{name}"
            build.add(declare)
            build.add(Assign(source=build.const(0, i32), target=declare.result))
            self.steps, head = declare.result, build.block.ops
        self.block(body)
        # A role begins by changing its registers, together with those of its warpgroup.
        at = sum(1 for op in body.ops[:2] if isinstance(op, roles.SetRegisters | watch.At))
        body.ops[at:at] = head
        if ends:
            last = body.ops[-1]
            body.ops.insert(-1, watch.End(**self.sizes, loc=last.loc if last.loc.line else loc))

    def block(self, block: Block) -> None:
        """Watch the operations of a block and of those within; roles are watched by themselves."""
        ops: list[Op] = []
        for op in block.ops:
            if not isinstance(op, roles.Split):
                outer, self.alone = self.alone, self.alone or isinstance(op, OneThread)
                for inner in op.regions():
                    self.block(inner)
                self.alone = outer
            ops += [*self.ahead(op), op]
            if isinstance(op, cluster.Sync):
                assert isinstance(ops[-2], watch.At)
                behind = {"place": ops[-2].place, "leaves": True, **self.who}
                ops.append(watch.At(**self.sizes, **behind, loc=op.loc))
        block.ops = ops

    def ahead(self, op: Op) -> Sequence[Op]:
        """What stands ahead of an operation."""
        build = Builder(Block(), op.loc)
        if self.steps is not None and isinstance(op, _PLACES):
            place, seed = next(self.number), self.kernel.delays
            build.add(watch.Delay(at=self.steps, place=place, seed=seed, loc=op.loc))
        if isinstance(op, flags.Poll | flagged.Take) and op.stop is not None:
            return build.block.ops  # the host ends this one: `wl.stop_at`
        match op:
            case mbarrier.Wait():
                self.wait(build, op)
            case flags.Poll():
                held = {name: getattr(op, name) for name in ("tensor", "base", "target")}
                self.add(build, watch.Flag, **held, predicate=op.predicate, **self.who)
            case flagged.Take():
                names = ("tensor", "base", "offset", "epoch", "predicate")
                held = {name: getattr(op, name) for name in names}
                held["long"] = op.behind is not None
                self.add(build, watch.Words, **held, **self.who)
            case sync.Barrier():
                self.meet(build, op, True, op.per_replica)
            case sync.Agree() if op.threads > 32:
                self.meet(build, op, True, op.per_replica)
            case sync.Arrive():
                self.meet(build, op, False, False)
            case mbarrier.Arrive() | mbarrier.Expect() | cluster.Arrive() | cp_async.Arrive():
                self.arrive(build, op)
            case cluster.Sync():
                self.add(build, watch.At)
            case _:
                pass
        return build.block.ops

    def add(self, build: Builder, kind: Any, **fields: Any) -> None:
        """One operation with a place of its own."""
        place = next(self.number)
        build.add(kind(**self.sizes, place=place, **fields, loc=build.loc))

    @property
    def who(self) -> dict[str, Any]:
        """Who leaves: a thread alone, or warps that may have products under way."""
        drains = self.multiplies and not self.alone
        return {"alone": self.alone, "drains": drains, "cluster": self.kernel.cluster}

    def wait(self, build: Builder, op: mbarrier.Wait) -> None:
        """A wait for a phase."""
        first, offset = self.barrier(build, op.barrier)
        held = {"barrier": op.barrier, "parity": op.parity, "offset": offset, "first": first}
        self.add(build, watch.Barrier, **held, **self.who)

    def meet(self, build: Builder, op: Any, waits: bool, per_replica: bool) -> None:
        """Threads that come to a barrier of the hardware."""
        held = {"id": op.id, "threads": op.threads, "per_replica": per_replica, "waits": waits}
        self.add(build, watch.Meet, **held, **self.who)

    def arrive(
        self,
        build: Builder,
        op: mbarrier.Arrive | mbarrier.Expect | cluster.Arrive | cp_async.Arrive,
    ) -> None:
        """Arrivals at an mbarrier, of this block or another one of the cluster."""
        first, offset = self.barrier(build, op.barrier)
        if first < 0:
            return  # it is not told whose barrier this is
        (ring,) = (r for r in self.rings.values() if r.first == first)
        peer = peer_behind(op.barrier)
        made = watch.Arrive(
            **self.sizes,
            offset=offset,
            rank=peer.rank if peer is not None else None,
            first=first,
            arrivals=ring.arrivals,
            count=op.count if isinstance(op, mbarrier.Arrive | cluster.Arrive) else 1,
            bytes=op.bytes if isinstance(op, mbarrier.Expect) else 0,
            cluster=self.kernel.cluster if peer is not None else (1, 1, 1),
            loc=op.loc,
        )
        build.add(made)

    def barrier(self, build: Builder, address: Value) -> tuple[int, Value | None]:
        """The number of the first mbarrier of a buffer, and how far behind it the address lies."""
        buffer = buffer_behind(address)
        ring = self.rings.get(buffer) if buffer is not None else None
        if buffer is None or ring is None:
            return -1, None
        if shared_memory.buffer_of(buffer).elements == 1:
            return ring.first, None
        start = build.emit(shared_memory.Address(buffer=buffer))
        offset = build.emit(scalar.Binary(lhs=address, rhs=start, kind="sub"))
        if peer_behind(address) is not None:
            within = build.const((1 << shared_memory.ADDRESS_BITS) - 1)
            offset = build.emit(scalar.Binary(lhs=offset, rhs=within, kind="and"))
        return ring.first, offset


def _within(op: Op) -> Iterator[Op]:
    """The operations in the regions of one."""
    for inner in op.regions():
        yield from walk(inner)

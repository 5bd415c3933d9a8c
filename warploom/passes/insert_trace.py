"""Lets each role note what it does and when: that it begins and ends, waits and goes on, arrives at
a barrier, makes a turn of its outermost loops. Nothing is put in unless the kernel asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from warploom.base.dtypes import i32, i64
from warploom.base.target import Target
from warploom.ir.addresses import buffer_behind
from warploom.ir.builder import Builder
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Loc, Op, Value
from warploom.ir.ops import cluster, mbarrier, scalar, shared_memory, sync, tma, wgmma
from warploom.ir.ops.control import Assign, Declare, For, If, Loop, OneThread, Yield
from warploom.ir.ops.debug import Record
from warploom.ir.ops.roles import Split
from warploom.ir.roles import split_of
from warploom.ir.types import Scalar, Tensor, TensorClass
from warploom.passes.place_roles import IDLE

_BARRIER_BYTES = 8
_WAITS: dict[type[Op], str] = {
    tma.Wait: "copies to global memory",
    wgmma.WaitGroup: "products",
    wgmma.Drain: "products",
    cluster.Sync: "the cluster",
}


def insert_trace(kernel: Kernel, target: Target) -> None:
    """Put in the events of a kernel whose `trace` is not 0.

    Needs: stage machine, storages assigned. Gives: a last parameter for the trace (an i64 tensor of
    one axis), and `debug.record` for each event, by one fixed thread of each role.
    """
    if not kernel.trace:
        return
    type = Tensor(i64, 1, TensorClass("1"))
    trace = Value(type, "trace", kernel.loc)
    kernel.params += (trace,)
    kernel.written += (len(kernel.params) - 1,)
    elects = target.has("sm_90")
    numbers = count()
    split = split_of(kernel)
    if split is None:
        _Role(kernel, trace, 0, 1, kernel.warps, elects, numbers).whole(kernel.body, kernel.loc)
        return
    rows = rows_of(split)
    total = sum(len(replicas) for _, replicas in rows)
    for (name, replicas), warps, body in zip(rows, split.warps, split.bodies, strict=True):
        if replicas:
            role = _Role(kernel, trace, replicas[0], total, warps, elects, numbers, name)
            role.whole(body, split.loc)


def rows_of(split: Split) -> list[tuple[str, range]]:
    """The rows of a block in a trace: one for each replica of a role; none for idle warps."""
    found: list[tuple[str, range]] = []
    at = 0
    for name, replicas in zip(split.names, split.replicas, strict=True):
        count = 0 if name.rstrip("_") == IDLE else replicas
        found.append((name, range(at, at + count)))
        at += count
    return found


@dataclass(slots=True)
class _Role:
    """The rows of one role (of the block, where it has none) while events are put in. `elects`:
    one thread is told by `control.one_thread`."""

    kernel: Kernel
    trace: Value
    row: int
    rows: int
    warps: int
    elects: bool
    numbers: Iterator[int]
    name: str = ""
    at: Value = field(init=False)

    def whole(self, body: Block, place: Loc) -> None:
        """Put the events of a role in."""
        begin = Builder(Block(), place)
        declare = Declare(type=Scalar(i32), loc=place)
        declare.results = (Value(Scalar(i32), "events", place),)
        declare.result.owner, declare.result.storage = declare, f"events_{self.row}"
        self.at = declare.result
        begin.add(declare)
        begin.add(Assign(source=begin.const(0, i32), target=self.at))
        self.block(body, "", outermost=True)
        last = body.ops[-1]
        first = [*begin.block.ops, *self.event("", place, "begin", self.name)]
        # A role begins by changing its registers.
        head = next((n for n, op in enumerate(body.ops) if op.OPCODE != "roles.set_registers"), 0)
        end = self.event("", last.loc if last.loc.line else place, "end", self.name)
        body.ops = [*body.ops[:head], *first, *body.ops[head:-1], *end, last]

    def block(self, block: Block, alone: str, outermost: bool = False) -> None:
        """Put the events of a block in; `alone`: one thread per "role" or "warp" runs it."""
        ops: list[Op] = []
        for op in block.ops:
            if isinstance(op, OneThread):
                self.block(op.body, op.per)
            elif isinstance(op, If):
                self.block(op.then, alone)
                self.block(op.orelse, alone)
            elif isinstance(op, Loop):
                self.block(op.body, alone)
                if outermost:
                    op.body.ops[:0] = self.turn(op, alone)
            ops += [*self.before(op, alone), op, *self.after(op, alone)]
        block.ops = ops

    def turn(self, op: Loop, alone: str) -> list[Op]:
        """A loop begins another trip."""
        if not isinstance(op, For):
            return self.event(alone, op.loc, "turn")
        index = op.body.args[0]
        value = index if scalar.scalar_of(index).dtype == i32 else None
        return self.event(alone, op.loc, "turn", index.name, value)

    def before(self, op: Op, alone: str) -> list[Op]:
        """What is noted ahead of an operation."""
        if isinstance(op, mbarrier.Wait | mbarrier.Arrive):
            kind = "wait" if isinstance(op, mbarrier.Wait) else "arrive"
            return self.at_barrier(op, op.barrier, kind, alone)
        if isinstance(op, cluster.Arrive):
            buffer = buffer_behind(op.barrier)
            name = buffer.name if buffer is not None and buffer.name else "a barrier"
            return self.event(alone, op.loc, "arrive", f"{name} of another block")
        what = self.waits_for(op)
        return self.event(alone, op.loc, "wait", what) if what else []

    def after(self, op: Op, alone: str) -> list[Op]:
        """What is noted behind an operation."""
        if isinstance(op, mbarrier.Wait) or self.waits_for(op):
            return self.event(alone, op.loc, "go")
        return []

    def waits_for(self, op: Op) -> str:
        """What an operation waits for besides an mbarrier; nothing for most."""
        if isinstance(op, sync.Barrier) and op.threads > 32 * self.warps:
            return f"barrier {op.id}"
        return next((text for kind, text in _WAITS.items() if isinstance(op, kind)), "")

    def at_barrier(self, op: Op, address: Value, kind: str, alone: str) -> list[Op]:
        """An event at an mbarrier, told by its buffer and its number there."""
        buffer = buffer_behind(address)
        if buffer is None:
            return self.event(alone, op.loc, kind, "a barrier")
        build = Builder(Block(), op.loc)
        start = build.emit(shared_memory.Address(buffer=buffer))
        offset = build.emit(scalar.Binary(lhs=address, rhs=start, kind="sub"))
        what, made = buffer.name or "a barrier", build.block.ops
        if shared_memory.buffer_of(buffer).elements == 1:
            return self.event(alone, op.loc, kind, what)
        return [*made, *self.event(alone, op.loc, kind, what, offset, _BARRIER_BYTES)]

    def event(
        self,
        alone: str,
        loc: Loc,
        kind: str,
        what: str = "",
        value: Value | None = None,
        unit: int = 1,
    ) -> list[Op]:
        """The operations that note one event."""
        record = Record(
            trace=self.trace,
            at=self.at,
            value=value,
            row=self.row,
            rows=self.rows,
            entries=self.kernel.trace,
            event=next(self.numbers),
            kind=kind,
            what=what,
            unit=unit,
            first_warp=alone == "warp",
            loc=loc,
        )
        if alone or not self.elects:
            return [record]
        return [OneThread(body=Block((), [record, Yield(values=(), loc=loc)]), loc=loc)]

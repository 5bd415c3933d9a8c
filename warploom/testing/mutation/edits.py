"""What can go wrong with a synchronisation, one edit of machine IR each. Runs nothing.

An edit changes the operation at a place of a kernel that it owns and says what it has done; it
leaves the kernel alone and says nothing where it does not apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warploom.base.dtypes import boolean
from warploom.ir.addresses import buffer_behind
from warploom.ir.builder import Builder
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Effect, Op, Value
from warploom.ir.ops import (
    bulk,
    cluster,
    control,
    cp_async,
    descriptor,
    flagged,
    flags,
    global_memory,
    mbarrier,
    remote,
    scalar,
    shared_memory,
    sync,
    tma,
    wgmma,
)
from warploom.ir.types import Regs, Scalar

BARRIER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Place:
    """An operation, and the block that it stands in, of a kernel that may be changed."""

    kernel: Kernel
    block: Block
    op: Any

    @property
    def at(self) -> int:
        """Where in its block the operation stands."""
        return self.block.ops.index(self.op)

    def put(self, make: Callable[[Builder], Value]) -> Value:
        """Insert operations in front; gives the value that they make."""
        held = Block()
        value = make(Builder(held, self.op.loc))
        at = self.at
        self.block.ops[at:at] = held.ops
        return value

    def remove(self) -> None:
        """Take the operation out."""
        del self.block.ops[self.at]

    def swap(self, old: Value, new: Value) -> None:
        """Put a value in the place of another one, everywhere."""
        for op in walk(self.kernel.body):
            op.replace_operands(lambda v: new if v is old else v)


Change = Callable[[Place], str]


@dataclass(frozen=True, slots=True)
class Edit:
    """A kind of edit: the operations that it can be made at, and how. `weakens`: it only takes
    order away, so that other order may stand in for what is lost."""

    name: str
    on: tuple[type[Op], ...]
    change: Change
    weakens: bool = False


# ---- what is dropped ---------------------------------------------------------------------------


def _drop(place: Place) -> str:
    """Remove an operation; a result that is an operand's storage becomes that operand."""
    op = place.op
    if isinstance(op, wgmma.WaitGroup):
        place.swap(op.result, op.acc)
    elif isinstance(op, mbarrier.Test):
        yes = place.put(lambda b: b.const(True, boolean))
        place.swap(op.result, yes)
    place.remove()
    why = getattr(op, "why", "")
    return f"without `{op.OPCODE}`" + f" ({why})" * bool(why)


def _announce_nothing(place: Place) -> str:
    op = place.op
    place.block.ops[place.at] = mbarrier.Arrive(barrier=op.barrier, loc=op.loc)
    return f"{op.bytes:,} bytes are not announced, the arrival stays"


# ---- numbers -----------------------------------------------------------------------------------


def _number(name: str, change: Callable[[int], int], least: int) -> Change:
    """An attribute made another number, if that is at least `least` and differs."""

    def edit(place: Place) -> str:
        old = getattr(place.op, name)
        new = change(old)
        if new < least or new == old:
            return ""
        setattr(place.op, name, new)
        return f"{name} {new:,} instead of {old:,}"

    return edit


def _scalar(name: str, kind: str, number: int) -> Change:
    """An operand `kind` a number, in the place of the operand."""

    def edit(place: Place) -> str:
        old = getattr(place.op, name)

        def make(build: Builder) -> Value:
            by = build.const(number, old.type.dtype)
            return build.emit(scalar.Binary(lhs=old, rhs=by, kind=kind))

        setattr(place.op, name, place.put(make))
        sign = {"add": "+" if number > 0 else "-", "xor": "xor"}[kind]
        return f"{name} {sign} {abs(number)}"

    return edit


# ---- which barrier, which slot -----------------------------------------------------------------


def _turned(place: Place, address: Value, step: int, size: int) -> Value:
    """An address in a buffer of `size` bytes `step` bytes further on, from its end to its start; of
    a peer where it is one."""
    buffer, peer = buffer_behind(address), _peer(address)
    assert buffer is not None

    def make(build: Builder) -> Value:
        base = build.emit(shared_memory.Address(buffer=buffer))
        if peer is not None:
            base = build.emit(cluster.Address(address=base, rank=peer.rank))
        moved = _both(build, "add", _both(build, "sub", address, base), build.const(step))
        return _both(build, "add", base, _both(build, "mod", moved, build.const(size)))

    return place.put(make)


def _both(build: Builder, kind: str, lhs: Value, rhs: Value) -> Value:
    return build.emit(scalar.Binary(lhs=lhs, rhs=rhs, kind=kind))


def _buffer(address: Value) -> shared_memory.BufferOp | None:
    buffer = buffer_behind(address)
    owner = None if buffer is None else buffer.owner
    return owner if isinstance(owner, shared_memory.BufferOp) else None


def renamed(kernel: Kernel, edit: str, op: Any) -> str:
    """Why an edit at an operation only gives other names to what it is about; empty if it does
    more."""
    slots = _buffer(op.address) if edit == "next-slot" else None
    if slots is None:
        return ""
    if any(slots in _about(other) for other in walk(kernel.body) if other is not op):
        return ""
    return f"slots of `{slots.result.name}` are only renamed: nothing else touches them"


def _about(op: Op) -> list[shared_memory.BufferOp]:
    """The buffers that an operation accesses, or whose barriers it is about."""
    if isinstance(op, scalar.Binary | shared_memory.Address | cluster.Address):
        return []
    values = [v for v in op.operand_values() if not isinstance(v.type, Regs)]
    owners = (_buffer(v) if isinstance(v.type, Scalar) else v.owner for v in values)
    return [owner for owner in owners if isinstance(owner, shared_memory.BufferOp)]


def _peer(address: Value) -> cluster.Address | None:
    """Where an address became that of a peer, if it is one."""
    owner = address.owner
    if isinstance(owner, scalar.Binary):
        return _peer(owner.lhs) or _peer(owner.rhs)
    return owner if isinstance(owner, cluster.Address) else None


def _next_barrier(place: Place) -> str:
    """The barrier after the one that is meant, of those that lie side by side."""
    buffer = _buffer(place.op.barrier)
    if buffer is None or buffer.elements == 1:
        return ""
    size = BARRIER_BYTES * buffer.elements
    place.op.barrier = _turned(place, place.op.barrier, BARRIER_BYTES, size)
    return f"the next of {buffer.elements} barriers"


def _next_slot(place: Place) -> str:
    """The slot after the one that is meant, of a ring with a barrier a slot."""
    op = place.op
    barriers, slots = _buffer(op.barrier), _buffer(op.address)
    if barriers is None or slots is None or barriers.elements == 1:
        return ""
    step, left = divmod(slots.size, barriers.elements)
    if left:
        return ""
    op.address = _turned(place, op.address, step, slots.size)
    return f"the next of {barriers.elements} slots"


def _next_rank(place: Place) -> str:
    """The block after the one that is meant, in a cluster."""
    op, blocks = place.op, math.prod(place.kernel.cluster)
    peer = _peer(op.barrier)
    if peer is None or blocks == 1:
        return ""
    barrier: Value = op.barrier

    def make(build: Builder) -> Value:
        more = _both(build, "add", peer.rank, build.const(1))
        rank = _both(build, "mod", more, build.const(blocks))
        there = build.emit(cluster.Address(address=peer.address, rank=rank))
        return _both(build, "add", barrier, _both(build, "sub", there, peer.result))

    op.barrier = place.put(make)
    return f"the next of {blocks} blocks"


# ---- order -------------------------------------------------------------------------------------


def _set(name: str, value: object, words: str) -> Change:
    def edit(place: Place) -> str:
        if getattr(place.op, name) == value:
            return ""
        setattr(place.op, name, value)
        return words

    return edit


_WITHOUT_RELEASE = {"acq_rel": "acquire", "release": "relaxed"}
_WITHOUT_ACQUIRE = {"acq_rel": "release", "acquire": "relaxed"}


def _order(table: dict[str, str]) -> Change:
    def edit(place: Place) -> str:
        old = place.op.order
        if old not in table:
            return ""
        place.op.order = table[old]
        return f"order {table[old]} instead of {old}"

    return edit


def _narrow(place: Place) -> str:
    """A scope made that of the block."""
    old = place.op.scope
    if old == "block":
        return ""
    place.op.scope = "block"
    return f"scope block instead of {old}"


# What an arrival hands over: reads and writes before it, and waits for those of units.
_GUARDS = (wgmma.WaitGroup, wgmma.Drain, tma.Wait, cp_async.Wait, sync.Barrier, sync.WarpSync)
_GUARDS += (sync.FenceAsync, shared_memory.Load, shared_memory.LoadMatrices)
_GUARDS += (shared_memory.Store, shared_memory.StoreMatrices, global_memory.Store)
_GUARDS += (remote.LoadGroups, remote.StoreGroups)
_SIGNALS = (mbarrier.Arrive, cluster.Arrive, sync.Arrive, flags.Post)


def _only_signals(op: Op) -> bool:
    """Whether an operation does nothing but signal, perhaps on a condition or by one thread."""
    done = [inner for block in op.regions() for inner in walk(block)] or [op]
    idle = (control.Yield, control.OneThread, control.If)
    acts = [inner for inner in done if not inner.is_pure and not isinstance(inner, idle)]
    return bool(acts) and all(isinstance(inner, _SIGNALS) for inner in acts)


def _holds(block: Block, op: Op) -> bool:
    return any(inner is op for inner in walk(block))


def _statement(kernel_block: Block, op: Op) -> tuple[Block, Op]:
    """The largest statement around a signal that does nothing else, and its block."""
    block = kernel_block
    while True:
        inner = next(o for o in block.ops if o is op or any(_holds(r, op) for r in o.regions()))
        if _only_signals(inner):
            return block, inner
        block = next(r for r in inner.regions() if _holds(r, op))


def _early(place: Place) -> str:
    """A signal moved ahead of the last thing in its block that it hands over."""
    if not _only_signals(place.op):
        return ""
    block, statement = _statement(place.kernel.body, place.op)
    signals = [o for o in walk(Block(ops=[statement])) if isinstance(o, _SIGNALS)]
    if signals[0] is not place.op:
        return ""  # one edit a statement
    at = block.ops.index(statement)
    guards = [i for i in range(at) if isinstance(block.ops[i], _GUARDS)]
    if not guards:
        return ""
    first = guards[-1]
    between = block.ops[first:at]
    needed = _needs(statement, between)
    if any(not op.is_pure for op in needed):
        return ""  # what it guards makes what the signal needs
    stay = [op for op in between if op not in needed]
    block.ops[first : at + 1] = [*needed, statement, *stay]
    return f"ahead of `{block.ops[first + len(needed) + 1].OPCODE}`"


def _needs(statement: Op, between: list[Op]) -> list[Op]:
    """The operations among `between` that a statement takes values from, in their order."""
    wanted = {v for op in walk(Block(ops=[statement])) for v in op.operand_values()}
    found: list[Op] = []
    for op in reversed(between):
        if any(r in wanted for r in op.results):
            found.insert(0, op)
            wanted |= set(op.operand_values())
            wanted |= {v for b in op.regions() for o in walk(b) for v in o.operand_values()}
    return found


# ---- the table ---------------------------------------------------------------------------------

_BARRIERS = (mbarrier.Wait, mbarrier.Test, mbarrier.Arrive, mbarrier.Expect, cp_async.Arrive)
_LOADS = (tma.LoadBox, bulk.LoadBytes)
_SENDS = (remote.SendGroups, remote.CopyBytes)
_GROUPS = (wgmma.WaitGroup, wgmma.Drain, tma.Wait, cp_async.Wait)
_FENCES = (sync.FenceAsync, sync.Fence, sync.FenceBarrierInit, wgmma.Fence, descriptor.Acquire)
_ARRIVALS = (mbarrier.Arrive, cluster.Arrive)
_THREADS = (sync.Barrier, sync.Arrive)
_SCOPED = (mbarrier.Wait, mbarrier.Test, sync.Fence, flags.Post, flags.Poll, global_memory.Atomic)
_SCOPED += (flagged.Put, flagged.Look, flagged.Take)

EDITS: tuple[Edit, ...] = (
    Edit("drop-wait", (mbarrier.Wait, mbarrier.Test, flags.Poll, *_GROUPS), _drop, True),
    Edit("drop-arrive", (*_ARRIVALS, cp_async.Arrive, sync.Arrive), _drop),
    Edit("drop-expect", (mbarrier.Expect,), _announce_nothing),
    Edit("drop-signal", (flags.Post,), _drop),
    Edit("drop-fence", _FENCES, _drop, True),
    Edit("drop-barrier", (sync.Barrier, sync.WarpSync, cluster.Sync), _drop, True),
    Edit("drop-commit", (tma.Commit, wgmma.Commit, cp_async.Commit), _drop),
    Edit("next-stage", (*_BARRIERS, cluster.Arrive, *_LOADS, *_SENDS), _next_barrier),
    Edit("next-slot", _LOADS, _next_slot),
    Edit("next-rank", (cluster.Arrive,), _next_rank),
    Edit("flip-parity", (mbarrier.Wait, mbarrier.Test), _scalar("parity", "xor", 1)),
    Edit("count+1", (mbarrier.Init,), _number("arrivals", lambda n: n + 1, 1)),
    Edit("count-1", (mbarrier.Init,), _number("arrivals", lambda n: n - 1, 1)),
    Edit("arrive-twice", _ARRIVALS, _number("count", lambda n: n + 1, 1)),
    Edit("threads+32", _THREADS, _number("threads", lambda n: n + 32, 32)),
    Edit("threads-32", _THREADS, _number("threads", lambda n: n - 32, 32)),
    Edit("bytes-half", (mbarrier.Expect,), _number("bytes", lambda n: n // 2, 0)),
    Edit("bytes-double", (mbarrier.Expect,), _number("bytes", lambda n: 2 * n, 0)),
    Edit("bytes-16", (mbarrier.Expect,), _number("bytes", lambda n: n - 16, 0)),
    Edit("in-flight+1", _GROUPS, _number("pending", lambda n: n + 1, 0), True),
    Edit("reads-only", (tma.Wait,), _set("reads", True, "only until sources are read"), True),
    Edit("early-release", _SIGNALS, _early, True),
    Edit("no-release", (global_memory.Atomic, flags.Post), _order(_WITHOUT_RELEASE), True),
    Edit("no-acquire", (global_memory.Atomic, flags.Poll), _order(_WITHOUT_ACQUIRE), True),
    Edit("unordered", (cluster.Arrive, cluster.Sync), _set("ordered", False, "unordered"), True),
    Edit("narrow-scope", _SCOPED, _narrow, True),
    Edit("target+1", (flags.Poll,), _scalar("target", "add", 1)),
    Edit("target-1", (flags.Poll,), _scalar("target", "add", -1)),
    Edit("value+1", (flags.Post,), _scalar("value", "add", 1)),
    Edit("epoch+1", (flagged.Put, flagged.Take), _scalar("epoch", "add", 1)),
    Edit("epoch-1", (flagged.Take,), _scalar("epoch", "add", -1)),
)

# Synchronises, and is no order between threads of one launch, or none that an edit takes away.
LEFT_OUT = {
    "sync.agree": "its threads meet for a value that all of them need",
    "roles.set_registers": "registers are nobody else's",
    "grid.launch_dependents": "launches do not overlap in the simulator",
    "grid.wait_for_previous": "launches do not overlap in the simulator",
    "ptx.act_registers": "what it does is declared in words",
    "watch": "of debug builds: it orders nothing",
}


def left_out(op: type[Op]) -> bool:
    """Whether an operation, or its family, has no edit for a reason."""
    return op.OPCODE in LEFT_OUT or op.FAMILY in LEFT_OUT


def covers(op: type[Op]) -> bool:
    """Whether some edit can be made at an operation."""
    return any(op in edit.on for edit in EDITS)


def synchronises(op: type[Op]) -> bool:
    """Whether an operation of the machine stage is declared to synchronise."""
    return Effect.SYNC in op.EFFECTS

"""What kernels do wrong with barriers, copies and the matrix unit, as reports. Names are those of
the source: role, buffer, element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warploom.base.diagnostics import Span
from warploom.base.errors import report
from warploom.ir.addresses import buffer_behind
from warploom.ir.op import Op, Value
from warploom.ir.ops import bulk, tma, wgmma
from warploom.sim.barriers import Mbarrier
from warploom.sim.faults import WRITTEN_OVER
from warploom.sim.machine import Batch

if TYPE_CHECKING:
    from warploom.sim.block import BlockState
    from warploom.sim.matrix import Accumulator
    from warploom.sim.translate import Placed


THREADS_WAIT = "close the group and wait for it: `wl.threads_commit()`, `wl.threads_wait()`"


def block_of(m: Batch) -> str:
    """The block as users count, and its rank where it is in a cluster."""
    rank = f", rank {m.state.rank}" if len(m.state.cluster.blocks) > 1 else ""
    return f"block {m.launch.name_block(int(m.linear[0]))}{rank}"


def found(
    m: Batch,
    op: Op,
    code: str,
    message: str,
    *notes: str,
    label: str = "",
    hint: str = "",
    other: tuple[Span, ...] = (),
) -> None:
    """A finding of an actor at an operation; `other` are places that have to do with it."""
    span = Span.at(op.loc, label=label, role=m.actor.role)
    block, notes = int(m.linear[0]), (f"{block_of(m)}, {m.actor.name}", *notes)
    made = report(code, message, span, *other, notes=notes, hint=hint)
    made.facts["block"] = block
    m.launch.find(made, op.loc)


# ---- barriers ----------------------------------------------------------------------------------


def no_barrier(
    m: Batch, op: Op, address: int, block: BlockState, room: Placed | None = None
) -> None:
    """A barrier of a block that nobody has made, or that lies beyond the buffer that the source
    names, its `room`."""
    whose = "" if block is m.state else block.of_rank
    room = room or _room_of_barrier(m, op)
    if room is not None and not room.at <= address < room.end:
        found(
            m,
            op,
            "M010",
            f"`{room.name}`{whose} is used beyond its last barrier",
            f"number {room.part(address)} of {room.slots}, which count from 0",
            label="this barrier",
            hint=_counted(room),
        )
        return
    name = block.name_of(address)
    place = f"byte {address:,} of shared memory"
    found(
        m,
        op,
        "M010",
        f"{m.state.buffer_of(address)}{whose} is used as a barrier, and none has been made there",
        place if block.owner_of(address) is None else f"{name}, {place}",
        label="this barrier",
        hint="make it before the roles begin, and keep other data off its bytes",
    )


def _room_of_barrier(m: Batch, op: Op) -> Placed | None:
    """The buffer of the barrier that an operation names."""
    barrier = getattr(op, "barrier", None)
    buffer = buffer_behind(barrier) if isinstance(barrier, Value) else None
    return next((p for p in m.state.placed if p.buffer is buffer), None)


def _counted(room: Placed) -> str:
    """What to do where a slot is counted beyond the last one."""
    if room.slots == 1:
        return "keep within it: what lies behind it is another buffer's"
    return f"count slots from 0 to {room.slots - 1}: `{room.name}[i % {room.slots}]`"


def made_twice(m: Batch, op: Op, barrier: Mbarrier) -> None:
    """A barrier that exists already."""
    message = f"{barrier.buffer} is made again while it is in use"
    plural = "s" * (barrier.count != 1)
    note = (
        f"a phase of {barrier.name} takes {barrier.count} arrival{plural}; "
        f"this is phase {barrier.phase}"
    )
    found(m, op, "M010", message, note, label="made here", hint="make it once, before the roles")


def too_many_arrivals(
    m: Batch, op: Op, barrier: Mbarrier, count: int, phase: int, pending: int
) -> None:
    """Arrivals that a phase, which lacks `pending`, has no place for."""
    found(
        m,
        op,
        "M011",
        f"{barrier.buffer} gets more arrivals than a phase takes",
        f"a phase of {barrier.name} takes {barrier.count}; phase {phase} lacks "
        f"{pending}, and {count} come here",
        label="this arrival",
        hint="let as many threads arrive as the barrier was made for, once a phase",
    )


def too_many_bytes(m: Batch, op: Op, barrier: Mbarrier, size: int, phase: int) -> None:
    """A copy whose bytes nobody announced."""
    if phase != barrier.phase:
        what = f"it was issued in phase {phase}, which has completed without it"
    else:
        what = f"{-barrier.bytes:,} bytes of phase {phase} were never announced"
    found(
        m,
        op,
        "M012",
        f"{barrier.buffer} gets more bytes than were announced",
        f"{barrier.name}: this copy brings {size:,} bytes; {what}",
        label="this copy",
        hint="announce the bytes of all copies of a phase: whole boxes, also at the edges",
    )


def bytes_left(m: Batch, op: Op, barrier: Mbarrier) -> None:
    """The last arrival of a phase that more bytes came for than were announced."""
    found(
        m,
        op,
        "M012",
        f"{barrier.buffer} gets more bytes than were announced",
        f"{barrier.name}: {-barrier.bytes:,} bytes of phase {barrier.phase} were never announced",
        label="this arrival",
        hint="announce the bytes of all copies of a phase",
    )


def barrier_left(m: Batch, op: Op, what: str, label: str = "this copy") -> None:
    """What the block does not wait for, a copy by default."""
    hint = "wait for it before the role ends"
    if op.FAMILY == "cp_async":
        what, hint = "its threads' copies are done", THREADS_WAIT
    elif isinstance(op, tma.StoreBox | bulk.StoreBytes):
        hint = "let the thread that began it wait: `wl.copy_commit()`, then `wl.copy_wait()`"
    found(m, op, "M013", f"the block ends before {what}", label=label, hint=hint)


def mixed_barrier(m: Batch, op: Op, number: int, threads: int, users: Sequence[str]) -> None:
    """A named barrier that several groups of warps use as if it were their own."""
    found(
        m,
        op,
        "M018",
        f"barrier {number} of {threads} threads is used by {' and '.join(users)}",
        "warps of one may meet those of another",
        label="this barrier",
        hint="give each group a number of its own, or let the barrier count the threads of all",
    )


# ---- clusters ----------------------------------------------------------------------------------


def no_peer(m: Batch, op: Op, rank: int) -> None:
    """A block that the cluster does not have."""
    count = len(m.state.cluster.blocks)
    found(
        m,
        op,
        "M030",
        f"block {rank} of a cluster of {count} is reached",
        label="reached here",
        hint=f"ranks are 0 to {count - 1}; `wl.cluster_size()` counts them",
    )


def after_its_end(m: Batch, op: Op, block: BlockState) -> None:
    """A block whose shared memory is gone."""
    other = m.launch.name_block(int(block.batch.linear[0]))
    found(
        m,
        op,
        "M031",
        f"rank {m.state.rank} may reach the shared memory of rank {block.rank} after its end",
        f"rank {block.rank} is block {other}",
        label="reached here",
        hint="let all warps of the cluster meet before any of them ends: `wl.cluster_sync()`",
    )


def before_its_start(m: Batch, op: Op, block: BlockState) -> None:
    """A block whose shared memory may not be there yet."""
    other = m.launch.name_block(int(block.batch.linear[0]))
    found(
        m,
        op,
        "M032",
        f"rank {m.state.rank} reaches the shared memory of rank {block.rank}, which may not have "
        "begun",
        f"rank {block.rank} is block {other}",
        label="reached here",
        hint="let all warps of the cluster meet before: `wl.cluster_sync()`",
    )


# ---- registers, products -----------------------------------------------------------------------


def wrong_way(m: Batch, op: Any) -> None:
    """setmaxnreg that would shrink by growing or the other way round."""
    verb = "takes" if op.grow else "keeps"
    only, already = ("", " already") if op.grow else ("only ", "")
    found(
        m,
        op,
        "M017",
        f"{m.actor.name} {verb} {op.count} registers, and has {only}{m.actor.registers}{already}",
        label="set here",
        hint="take a larger number, keep a smaller one",
    )


def no_parity(m: Batch, op: Op, number: int) -> None:
    """A parity that is no bit."""
    found(
        m,
        op,
        "M039",
        f"an mbarrier is asked for parity {number}",
        "a parity is 0 or 1",
        label="this parity",
        hint="take the number of the lap modulo 2: `lap % 2`",
    )


def no_fence(m: Batch, op: Op) -> None:
    """A product on registers that were written without a fence."""
    found(
        m,
        op,
        "M015",
        "a product begins on an accumulator without a fence of the matrix unit",
        label="this product",
        hint="a fence of the matrix unit stands after the last write to the accumulator",
    )


def _left_by(wait: wgmma.WaitGroup | None) -> str:
    """What a wait for an accumulator leaves in flight."""
    pending = 0 if wait is None else wait.pending
    return f"this wait leaves {pending} group{'s' * (pending != 1)} in flight"


def in_flight(m: Batch, op: Op, acc: Accumulator) -> None:
    """An accumulator that is read while products are under way."""
    role, places = m.actor.role, {op.loc}
    other: tuple[Span, ...] = ()
    for at, label in ((acc.product, "this product adds to it"), (acc.waited, _left_by(acc.waited))):
        if at is not None and at.loc not in places:
            places.add(at.loc)
            other = (*other, Span.at(at.loc, label=label, role=role))
    found(
        m,
        op,
        "M014",
        "an accumulator is read before its products have retired",
        label="read here",
        hint="wait for the group of the product first",
        other=other,
    )


# ---- memory ------------------------------------------------------------------------------------


def outside(
    m: Batch, op: Op, what: str, address: int, size: int, room: Placed | None = None
) -> None:
    """An asynchronous access that leaves the block's shared memory, or its buffer, the `room`."""
    if room is None:
        place = Span.at(op.loc, label=what, role=m.actor.role)
        if any(f.code == "M001" and f.spans[0] == place for f in m.launch.findings):
            return  # said by the look at its buffer
        message = f"{what} leaves the block's shared memory"
        note = f"{size:,} bytes from byte {address:,} of {m.pitch:,}"
        hint = "keep within the buffer"
    else:
        message = f"{what} leaves `{room.name}`"
        note = f"{size:,} bytes from byte {address - room.at:,} of {room.end - room.at:,}"
        if room.slots > 1:
            note += f": slot {room.part(address)} of {room.slots}, which count from 0"
        hint = _counted(room)
    found(m, op, "M001", message, note, label=what, hint=hint)


def misaligned(m: Batch, op: Op, message: str, note: str) -> None:
    """What the copy engine cannot take because of its place."""
    hint = "begin at a multiple of 16 bytes, or move it by the role's threads: load and store"
    found(m, op, "M003", message, note, label="this copy", hint=hint)


def unwritten(m: Batch, op: Op, use: str, byte: int, over: bool = False) -> None:
    """Shared memory that was never written, or is in flight, and is read asynchronously. `over`:
    that another tile on the same bytes was written to since."""
    what, part = m.state.buffer_of(byte), m.state.part_of(byte)
    if over:
        message = f"`{m.launch.kernel}` uses memory of {what} that was written over"
        found(m, op, "M033", message, part, label=use, hint=WRITTEN_OVER)
        return
    message = f"`{m.launch.kernel}` uses memory of {what} before it is written"
    found(m, op, "M002", message, part, label=use, hint="wait for the copy that fills it")

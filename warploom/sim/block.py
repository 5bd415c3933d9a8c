"""What one block has besides registers while its actors run: barriers, copies under way, registers
that roles gave back. Knows no single operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from warploom.base.target import DEFAULT
from warploom.ir.op import Op
from warploom.ir.ops.shared_memory import ADDRESS_BITS
from warploom.passes.place_roles import entry_registers
from warploom.sim import sync_faults
from warploom.sim.actors import Actor, Helper
from warploom.sim.barriers import Mbarrier, NamedBarrier
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.matrix import MatrixUnit
from warploom.sim.memory import Memory

if TYPE_CHECKING:
    from warploom.sim.cluster import Cluster
    from warploom.sim.signallers import Signaller
    from warploom.sim.translate import Placed, Translator


class Moved(Protocol):
    """The part of a tensor that a copy moves."""

    memory: Memory

    def numbers(self, every: int) -> np.ndarray:
        """Places of its elements, one of `every` in a row."""
        ...


class Moves(NamedTuple):
    """What a copy moves between a tensor and shared memory: chunks there, in any order."""

    part: Moved
    chunks: Any


class Load:
    """A box on its way to the shared memory of `block`. `phase` is the barrier's when the copy was
    issued."""

    __slots__ = ("arrive", "barrier", "block", "booked", "m", "moves", "op", "phase", "size")

    def __init__(
        self,
        m: Batch,
        op: Op,
        size: int,
        block: BlockState,
        barrier: Mbarrier,
        arrive: Callable[[], None],
        moves: Moves | None = None,
    ) -> None:
        self.m, self.op, self.size, self.barrier, self.arrive = m, op, size, barrier, arrive
        self.moves = moves
        self.block, self.phase = block, barrier.phase
        self.booked: Any = None  # in checked mode, who counts the bytes

    def land(self) -> None:
        """Write the box to shared memory and count its bytes."""
        self.arrive()
        if self.booked is not None:
            self.booked.count()
            return
        barrier = self.barrier
        if barrier.phase != self.phase:
            sync_faults.too_many_bytes(self.m, self.op, barrier, self.size, self.phase)
            return
        barrier.complete(self.size)
        if barrier.overrun():
            sync_faults.too_many_bytes(self.m, self.op, barrier, self.size, self.phase)
            barrier.forgive()


class Store:
    """A box on its way to global memory: first `read` from shared memory, then `write`."""

    __slots__ = ("held", "m", "moves", "op", "read", "write")

    def __init__(
        self,
        m: Batch,
        op: Op,
        read: Callable[[], Any],
        write: Callable[[Any], None],
        moves: Moves | None = None,
    ) -> None:
        self.m, self.op, self.read, self.write = m, op, read, write
        self.moves = moves
        self.held: Any = None

    def fetch(self) -> None:
        """Read the source, once."""
        if self.held is None:
            self.held = self.read()

    def finish(self) -> None:
        """Read the source where that was not done yet, and write."""
        self.fetch()
        self.write(self.held)


class Bulk:
    """Stores of an actor: closed groups, oldest first, and the open one."""

    __slots__ = ("groups", "open")

    def __init__(self) -> None:
        self.open: list[Store] = []
        self.groups: list[list[Store]] = []

    def commit(self) -> None:
        """Close the current group."""
        self.groups.append(self.open)
        self.open = []

    def wait(self, pending: int, reads: bool) -> None:
        """Finish (or only read the sources of) all but the last `pending` groups."""
        count = max(0, len(self.groups) - pending)
        for group in self.groups[:count]:
            for store in group:
                if reads:
                    store.fetch()
                else:
                    store.finish()
        if not reads:
            del self.groups[:count]

    def begun(self) -> list[Store]:
        """All that have not been waited for, oldest first."""
        return [*(store for group in self.groups for store in group), *self.open]

    def unread(self) -> list[Store]:
        """Stores that have not read their sources."""
        return [store for store in self.begun() if store.held is None]

    def finish(self) -> None:
        """Finish all."""
        self.commit()
        self.wait(0, reads=False)

    def early(self) -> list[Callable[[], None]]:
        """Stores of the oldest group may finish in any order; others may be read."""
        for group in self.groups:
            if group:
                return [partial(self._finish_one, group, store) for store in group]
        return [store.fetch for store in self.open if store.held is None]

    @staticmethod
    def _finish_one(group: list[Store], store: Store) -> None:
        group.remove(store)
        store.finish()


class BlockState:
    """One block: its mbarriers by address, named barriers by number, and the registers that can be
    taken (`pool`). `rank` is its number in its cluster; `running` counts its actors; `abandoned`:
    some of them left before their end."""

    __slots__ = (
        "abandoned",
        "barriers",
        "batch",
        "booking",
        "cluster",
        "made",
        "named",
        "placed",
        "pool",
        "rank",
        "replicas",
        "running",
        "signallers",
    )

    def __init__(self, t: Translator, batch: Batch, cluster: Cluster, rank: int) -> None:
        self.batch = batch
        self.cluster, self.rank = cluster, rank
        self.barriers: dict[int, Mbarrier] = {}
        self.named: dict[int, NamedBarrier] = {}
        self.booking: Any = None  # in checked mode
        self.placed = t.placed
        self.signallers = t.signallers
        self.pool = 0
        self.replicas: dict[str, int] = {"": 1}
        self.made = self.running = 0
        self.abandoned = False

    @property
    def window(self) -> int:
        """The address of its first byte of shared memory, as the cluster sees it."""
        return self.rank << ADDRESS_BITS

    def byte_at(self, address: Any) -> int:
        """The byte of its shared memory at an address of its own."""
        return int(address) - self.window

    @property
    def shuffles(self) -> bool:
        """Whether actors also give way where they need not wait."""
        return self.cluster.scheduler.schedule.shuffles

    @property
    def ended(self) -> bool:
        """Whether all its actors have ended."""
        return not self.running

    def actor(self, role: str, replica: int | None, warps: int, registers: int) -> Actor:
        """A new actor of this block."""
        made = Actor(role, replica, warps, registers, self.made)
        made.bulk, made.copies = Bulk(), Bulk()
        made.matrix, made.block = MatrixUnit(), self
        self.made += 1
        return made

    def begin(self, actor: Actor) -> None:
        """Let an actor take part from now on."""
        self.running += 1
        self.cluster.scheduler.add(actor)

    def owner_of(self, address: int) -> Placed | None:
        """The buffer that a byte of shared memory belongs to; later ones may share its place."""
        return next((b for b in self.placed if b.at <= address < b.end), None)

    def name_of(self, address: int) -> str:
        """An element of shared memory as users know it: `full[2]`."""
        return f"{self._element(address)}{self.of_rank}"

    @property
    def of_rank(self) -> str:
        """Whose shared memory it is, where several blocks have some."""
        return f" of rank {self.rank}" if len(self.cluster.blocks) > 1 else ""

    def _element(self, address: int) -> str:
        owner = self.owner_of(address)
        if owner is None:
            return f"byte {address} of shared memory"
        if owner.end - owner.at == owner.itemsize:
            return f"`{owner.name}`"
        return f"`{owner.name}[{(address - owner.at) // owner.itemsize}]`"

    def buffer_of(self, address: int) -> str:
        """The buffer that a byte of shared memory lies in, in words: all, where the kernel has put
        several there."""
        owner = self.owner_of(address)
        if owner is None or not owner.name:
            return "shared memory"
        names = [b.name for b in self.placed if b.at <= address < b.end and b.shares(owner)]
        return " or ".join(f"`{name}`" for name in dict.fromkeys(names))

    def part_of(self, byte: int) -> str:
        """A byte of shared memory, counted from where its buffer starts, in words."""
        owner = self.owner_of(byte)
        if owner is None:
            return f"byte {byte} of shared memory"
        return f"byte {byte - owner.at} of {self.buffer_of(byte)}"

    def signallers_at(self, address: int) -> list[Signaller]:
        """The operations that arrive at a barrier, or let copies complete on it."""
        owner = self.owner_of(address)
        return self.signallers.barriers.get(owner.buffer, []) if owner is not None else []

    def roles_that_signal(self, address: int) -> list[str]:
        """The roles that arrive at a barrier, or let copies complete on it."""
        return list(dict.fromkeys(s.role for s in self.signallers_at(address) if s.role))

    def helpers(self, signallers: list[Signaller]) -> list[Helper]:
        """The actors of this block that execute some operations, in their order."""
        scheduler = self.cluster.scheduler
        own = [a for a in (*scheduler.actors, *scheduler.ended) if a.block is self]
        own.sort(key=lambda actor: actor.number)
        return [Helper(a, s.op) for a in own for s in signallers if a.role == s.role]


def started(step: Step, s: Slots, m: Batch) -> Run:
    """A step as the run of an actor."""
    if isinstance(step, Resumable):
        yield from step.start(s, m)
    else:
        step(s, m)


def launched_registers(warps: int) -> int:
    """Registers of a thread when a block of so many warps begins."""
    return entry_registers(32 * warps, DEFAULT)

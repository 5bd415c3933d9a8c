"""Clusters that are resident together: one schedule for all their actors, copies under way, and the
barrier of each cluster. A block that is in no cluster is one of one. Knows no single operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from warploom.sim import sync_faults
from warploom.sim.actors import Actor, Schedule, Scheduler
from warploom.sim.block import BlockState, Load, launched_registers, started
from warploom.sim.booking import Booking
from warploom.sim.deadlock import deadlock
from warploom.sim.machine import Batch, Slots, Step

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


class Gathering:
    """The barrier of a cluster: it opens when all actors that have not ended have come.
    `generation` counts how often it has."""

    __slots__ = ("come", "generation")

    def __init__(self) -> None:
        self.come: set[Actor] = set()
        self.generation = 0

    def open_for(self, running: Sequence[Actor]) -> None:
        """Open where nobody is missing."""
        if self.come and self.come.issuperset(running):
            self.come.clear()
            self.generation += 1


class Resident:
    """Clusters that run at the same time: the schedule of their actors, their copies to shared
    memory in order of issue."""

    def __init__(self, schedule: Schedule) -> None:
        self.scheduler = Scheduler(self, schedule)
        self.loads: list[Load] = []
        self.clusters: list[Cluster] = []

    @property
    def blocks(self) -> list[BlockState]:
        """All blocks, cluster by cluster."""
        return [block for cluster in self.clusters for block in cluster.blocks]

    def next_late(self, newest: bool = False) -> Callable[[], None] | None:
        """The oldest load, or the newest: only loads can let an actor go on."""
        return partial(self.land, self.loads[-1 if newest else 0]) if self.loads else None

    def any_early(self) -> list[Callable[[], None]]:
        """Any load, a store of the oldest group of each actor, the oldest product of each unit."""
        found: list[Callable[[], None]] = [partial(self.land, load) for load in self.loads]
        for actor in self.scheduler.actors:
            found += actor.bulk.early() + actor.copies.early()
            product = actor.matrix.oldest()
            if product is not None:
                found.append(product)
        return found

    def land(self, load: Load) -> None:
        """Complete a load."""
        self.loads.remove(load)
        load.land()

    def left(self, actor: Actor) -> None:
        """An actor has ended."""
        actor.block.cluster.left(actor)


class Cluster:
    """The blocks of a cluster by rank, and its barrier."""

    def __init__(self, t: Translator, batches: Sequence[Batch], resident: Resident) -> None:
        self.resident = resident
        self.gathering = Gathering()
        self.blocks: list[BlockState] = []
        for rank, batch in enumerate(batches):
            batch.state = BlockState(t, batch, self, rank)
            self.blocks.append(batch.state)
        resident.clusters.append(self)

    @property
    def scheduler(self) -> Scheduler:
        """The schedule of its actors and of all others that are resident."""
        return self.resident.scheduler

    @property
    def running(self) -> list[Actor]:
        """Its actors that have not ended."""
        return [actor for actor in self.scheduler.actors if actor.block.cluster is self]

    def gather(self, actor: Actor) -> None:
        """An actor comes to the barrier of the cluster."""
        self.gathering.come.add(actor)
        self.gathering.open_for(self.running)

    def left(self, actor: Actor) -> None:
        """An actor has ended, and perhaps its block with it."""
        block: BlockState = actor.block
        block.running -= 1
        if self.gathering.come:
            self.gathering.open_for(self.running)
        if not block.ended or block.abandoned:
            return
        loads = self.resident.loads
        for load in [load for load in loads if load.block is block]:
            loads.remove(load)
            if load.m.state is block:
                sync_faults.barrier_left(load.m, load.op, "a copy to its shared memory has arrived")
            else:
                sync_faults.after_its_end(load.m, load.op, block)
            if load.booked is not None:
                load.booked.count()
        for other in self.scheduler.ended:
            if other.block is block:
                for copy in other.copies.unread():
                    sync_faults.barrier_left(copy.m, copy.op, "its threads' copies are done")
                other.copies.finish()
                for store in other.bulk.unread():
                    sync_faults.barrier_left(store.m, store.op, "a copy has read its shared memory")
                other.bulk.finish()
        if block.booking is not None:
            block.booking.leave(block)


def run_resident(
    t: Translator,
    step: Step,
    frames: Sequence[Slots],
    batches: Sequence[Batch],
    size: int,
    schedule: Schedule,
) -> None:
    """Run blocks that are resident together to their end: clusters of `size`, one after the other
    in `batches`."""
    resident = Resident(schedule)
    for first in range(0, len(batches), size):
        Cluster(t, batches[first : first + size], resident)
    launch = batches[0].launch
    booking = None
    if launch.recording is not None:
        booking = launch.recording.booking(launch, t.shared_cell, t.reaches_peers)
        resident.scheduler.let_go = booking.let_go
    elif launch.checked:
        booking = Booking(launch.outside, t.shared_cell, t.reaches_peers)
    for block, frame, m in zip(resident.blocks, frames, batches, strict=True):
        m.actor = block.actor("", None, t.kernel.warps, launched_registers(t.kernel.warps))
        if booking is not None:
            booking.enter(block, m.actor)
        m.actor.run = started(step, frame, m)
        block.begin(m.actor)
    if not resident.scheduler.run():
        if not any(block.abandoned for block in resident.blocks):
            deadlock(resident)
    elif booking is not None:
        booking.close()

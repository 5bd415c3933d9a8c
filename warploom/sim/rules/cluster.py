"""Clusters: ranks, barriers of peers, and the barrier of all warps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.op import Op
from warploom.ir.ops import cluster
from warploom.ir.ops.shared_memory import ADDRESS_BITS
from warploom.sim import sync_faults
from warploom.sim.actors import Actor, Helper
from warploom.sim.block import BlockState
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.registry import simulates
from warploom.sim.rules.mbarrier import arrive_at

if TYPE_CHECKING:
    from warploom.sim.cluster import Cluster
    from warploom.sim.translate import Translator

_BYTE = (1 << ADDRESS_BITS) - 1


@simulates(cluster.Rank)
def rank(t: Translator, op: cluster.Rank) -> Step:
    d = t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = m.state.rank

    return step


@simulates(cluster.Address)
def address(t: Translator, op: cluster.Address) -> Step:
    a, r, d = t.slot(op.address), t.slot(op.rank), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = (int(s[r]) << ADDRESS_BITS) + (int(s[a]) & _BYTE)

    return step


def peer(m: Batch, op: Op, rank: int) -> BlockState | None:
    """The block of a rank whose shared memory is reached; none, or one that has ended, is a
    finding."""
    blocks = m.state.cluster.blocks
    if not 0 <= rank < len(blocks):
        sync_faults.no_peer(m, op, rank)
        return None
    if blocks[rank].ended:
        sync_faults.after_its_end(m, op, blocks[rank])
        return None
    return blocks[rank]


def at_peer(m: Batch, op: Op, there: int) -> tuple[BlockState | None, int]:
    """The block of an address in the cluster (none after a finding), and the address as it would
    be in this block."""
    rank, byte = divmod(there, 1 << ADDRESS_BITS)
    return peer(m, op, rank), m.state.window + byte


@simulates(cluster.Arrive)
def arrive(t: Translator, op: cluster.Arrive) -> Step:
    a, count = t.slot(op.barrier), op.count * t.acting

    def step(s: Slots, m: Batch) -> None:
        block, address = at_peer(m, op, int(s[a]))
        if block is not None:
            arrive_at(m, op, block, address, count)

    return step


class Together:
    """An actor that waits for all of the cluster."""

    __slots__ = ("cluster", "generation", "op")

    def __init__(self, op: Op, cluster: Cluster) -> None:
        self.op, self.cluster = op, cluster
        self.generation = cluster.gathering.generation

    def ready(self) -> bool:
        return self.cluster.gathering.generation != self.generation

    def words(self) -> str:
        come, running = len(self.cluster.gathering.come), len(self.cluster.running)
        return f"the barrier of the cluster, where {come} of {running} have come"

    def came(self, waiter: Actor) -> list[Helper]:
        """Who waits there."""
        return [Helper(actor, None) for actor in self.cluster.running if self._has(actor)]

    def helpers(self, waiter: Actor) -> list[Helper]:
        """Who has not come yet."""
        return [Helper(actor, None) for actor in self.cluster.running if not self._has(actor)]

    def _has(self, actor: Actor) -> bool:
        return actor in self.cluster.gathering.come

    def advice(self) -> str:
        return "let all warps of the cluster come, equally often"


@simulates(cluster.Sync)
def sync(t: Translator, op: cluster.Sync) -> Step:
    def start(s: Slots, m: Batch) -> Run:
        m.barriers[0] += 1
        wait = Together(op, m.state.cluster)
        m.state.cluster.gather(m.actor)
        if not wait.ready():
            yield wait

    return Resumable(start)

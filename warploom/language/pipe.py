"""Pipes: rings of shared tiles between roles, whose counts, bytes and phases are derived.

Every producer puts its part of each item; an item is full when all have. Who consumes is a matter
of `deliver`: with "all" every replica takes every item, with "one" each item belongs to one
replica, and the others skip it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warploom.base.dtypes import i32
from warploom.ir.kernel import walk
from warploom.ir.op import Block, Op
from warploom.ir.ops import cluster as cluster_ops
from warploom.ir.ops import mbarrier, sync
from warploom.ir.ops import roles as role_ops
from warploom.ir.ops import shared as shared_ops
from warploom.language import core
from warploom.language.barrier import Barrier
from warploom.language.context import Refused, builder, current, need_count, need_top, vocabulary
from warploom.language.item import Get, Item
from warploom.language.outbound import Outbound, Unit, outbound
from warploom.language.put import Put, arrivals
from warploom.language.roles import Joint, RolePlan, forget, need_role
from warploom.language.rotation import one_owner_a_slot
from warploom.language.shared import Shared
from warploom.language.sharing import Sharing
from warploom.language.values import Scalar, index_value, wrap

_MOST_STAGES = 64
DELIVER = ("all", "one")


class Pipe(Joint):
    """A ring of `stages` items, each one tile of every slot buffer."""

    attributes = ("put", "take", "get", "skip", "ready")

    def __init__(
        self,
        stages: int,
        buffers: tuple[Shared, ...],
        deliver: str = "all",
        sharing: Sharing | None = None,
    ) -> None:
        self.stages = stages
        self.sharing = sharing  # with other blocks of the cluster
        self.buffers = buffers
        self.deliver = deliver
        # A role may stand at both ends, and counts for each.
        self.put_ring, self.taken_ring = current().ring(), current().ring()
        # The counts of arrivals are known when all roles are.
        self.full_op = builder().add(mbarrier.Alloc(count=stages, arrivals=1), "full")
        self.empty_op = builder().add(mbarrier.Alloc(count=stages, arrivals=1), "empty")
        self.full = Barrier(self.full_op.result, stages)
        self.empty = Barrier(self.empty_op.result, stages)
        self.producers: list[RolePlan] = []
        self.consumers: list[RolePlan] = []
        self.puts: list[Put] = []
        self.skips: list[role_ops.Skip] = []
        self.takes: list[tuple[Any, ...]] = []  # of each take, whose turns it stands in

    def __repr__(self) -> str:
        return f"a pipe of {self.stages} stage{'s' if self.stages > 1 else ''}"

    def call(self, name: str) -> None:
        """Name what the pipe is made of, for reports."""
        for value, part in ((self.full.value, "full"), (self.empty.value, "empty")):
            value.name = value.name if value.name != part else f"{name}_{part}"
        for number, buffer in enumerate(self.buffers):
            buffer.value.name = buffer.value.name or f"{name}_{number}"

    def join(self, users: list[RolePlan], verb: str) -> RolePlan:
        """Enter the present role as a user of an end of the pipe."""
        plan = need_role(verb)
        if not any(p is plan for p in users):
            users.append(plan)
        return plan

    def put(self, in_flight: int | None = None) -> Put:
        """`with ring.put() as (a, b):` waits for a free item, which copies begun inside fill, or
        tiles of registers stored there. Several producers fill each item together.

        With `in_flight=n` it also waits until the item put n before this one is full: no more than
        n are on their way from memory then, this one included, however many places are free. What
        other loads and flags of the launch wait for in the memory system becomes shorter.
        """
        if in_flight is not None:
            need_count("in_flight", in_flight, 1, self.stages)
        return Put(self, in_flight)

    def take(self) -> Item:
        """The next item, once it is full; hand it back with `release`."""
        plan = self.join(self.consumers, "take")
        held = [i for i in plan.items if i.pipe is self and not i.released]
        if len(held) >= self.stages:
            raise Refused(
                "P012",
                f"{len(held) + 1} items would be held of {self.stages}",
                hint="use more stages, or release an item first",
            )
        self.takes.append(tuple(current().turns))
        position = builder().add(self.position(self.taken_ring))
        slot, phase = (wrap(v) for v in position.results)
        full = self.full[slot].one()
        builder().add(mbarrier.Wait(barrier=full, parity=phase.value, takes=self.deliver == "one"))
        item = Item(self, slot)
        plan.items.append(item)
        return item

    def get(self, behind: int = 0) -> Get:
        """`with ring.get() as (a, b):` is take and release."""
        return Get(self, behind)

    def skip(self, count: Scalar | int) -> None:
        """Pass the next `count` items by, which others take (`deliver="one"`). What is held of the
        pipe goes back first.

        The position moves on and nothing else where turns order all takes, or where each slot
        belongs to one replica (takes in rotation, `stages` a multiple of it). Elsewhere, and with
        `deliver="all"`, the items are waited for and handed back unread: then skip as many as will
        be put, no more, and skip those behind one's last take too.

        Executes: the role.
        Since: sm_90.
        """
        if isinstance(count, int) and not isinstance(count, bool) and count < 0:
            raise Refused(
                "F027",
                "`count` is a number from 0 up",
                argument="count",
                hint="give a number of items, such as the steps that are passed by",
            )
        number = core.convert(index_value(count, "count"), i32)
        if not current().facts.is_nonnegative(number):
            number = core.binary("max", number, 0)
        self.join(self.consumers, "skip")
        made = role_ops.Skip(
            full=self.full.value,
            empty=self.empty.value,
            count=number,
            ring=self.taken_ring,
            stages=self.stages,
            cluster=self.sharing is not None,
        )
        self.skips.append(builder().add(made))
        if self.sharing is not None:
            self.sharing.note(made)

    def position(self, ring: int) -> role_ops.Position:
        """The next place at an end."""
        shared = self.sharing is not None
        return role_ops.Position(ring=ring, stages=self.stages, cluster=shared)

    def hand_back(self, slot: Scalar, ordered: bool) -> None:
        """Say, for the thread that executes this, that the item in a slot may be filled anew:
        `ordered` where threads have read it."""
        barrier = self.empty[slot].one()
        if self.sharing is None:
            builder().add(mbarrier.Arrive(barrier=barrier))
            return
        made = cluster_ops.ArrivePeers(barrier=barrier, steps=(0,), ordered=ordered)
        self.sharing.note(builder().add(made))

    def ready(self) -> Scalar:
        """Whether the next item is full, so that `take` would not have to wait; all warps of the
        role get one answer, and meet for it.

        Executes: the role.
        Since: sm_90.
        PTX: mbarrier.test_wait.parity, barrier.cta.red.
        """
        self.join(self.consumers, "ready")
        self.takes.append(tuple(current().turns))  # a poll from a lap behind would be wrong too
        looks = role_ops.Position(ring=self.taken_ring, stages=self.stages, advances=False)
        slot, phase = (wrap(v) for v in builder().add(looks).results)
        full = self.full[slot].test(phase)
        return Scalar(builder().emit(sync.Agree(condition=full.value)))

    def views(self, slot: Scalar) -> tuple[Shared, ...]:
        """The tiles of one slot."""
        return tuple(buffer[slot] for buffer in self.buffers)

    # ---- when all roles are known ----------------------------------------------------------

    def close(self, plans: list[RolePlan]) -> None:
        """Set how many arrivals fill an item and hand it back."""
        producers = [p for p in plans if p in self.producers]
        consumers = [p for p in plans if p in self.consumers]
        if bool(producers) != bool(consumers):
            side, other = ("takes from", "puts into") if producers else ("puts into", "takes from")
            users = producers or consumers
            names = ", ".join(f"`{p.name}`" for p in users)
            other = other if len(users) == 1 else other.replace("s ", " ", 1)
            raise Refused(
                "P008",
                f"no role {side} this pipe, and {names} {other} it",
                hint="both ends are needed; guard both by the same constant",
                place=self.full_op.loc,
            )
        if not producers:
            forget((self.full.value, self.empty.value, *(b.value for b in self.buffers)), plans)
            return
        self.full_op.arrivals = sum(
            arrivals([put for put in self.puts if put.plan is plan]) * plan.replicas
            for plan in producers
        )
        self.empty_op.arrivals = sum(p.warps * p.replicas for p in consumers)
        if any(put.by_threads for put in self.puts if put.plan in producers):
            for plan in consumers:
                self._fence(plan.body)
        if self.deliver == "one":
            self._deal(consumers)
        if self.sharing is not None:
            self.empty_op.arrivals *= self.sharing.close(self.puts, self.buffers)

    def _fence(self, block: Block) -> None:
        """What threads have copied without registers they could not fence themselves: units of the
        consumer see it after a fence behind its wait."""
        ops: list[Op] = []
        for op in block.ops:
            for inner in op.regions():
                self._fence(inner)
            ops.append(op)
            at = op.barrier.owner if isinstance(op, mbarrier.Wait) else None
            if isinstance(at, mbarrier.At) and at.barriers is self.full.value:
                why = "copies by threads of another role, then what follows"
                ops.append(sync.FenceAsync(why=why, loc=op.loc))
        block.ops = ops

    def _deal(self, consumers: list[RolePlan]) -> None:
        """Each item belongs to one replica. Those who skip it need not look at it where each slot
        belongs to one of them, or where turns order all takes; else they wait for it and hand it
        back, for who passes a slot by may be a lap behind and take an old phase for its own."""
        rotation = sum(p.replicas for p in consumers)
        if rotation > 1 and not self.skips:
            raise Refused(
                "P042",
                f"{rotation} replicas take from a pipe that deals each item to one, and none skips "
                "an item",
                hint='`ring.skip(n)` passes the items of others by; deliver="all" gives all to all',
                place=self.full_op.loc,
            )
        alike = len({p.warps for p in consumers}) == 1
        if alike and rotation > 1 and (self._in_turns(rotation) or self._own_slots(consumers)):
            self.empty_op.arrivals = consumers[0].warps
            for skip in self.skips:
                skip.visits = False

    def _in_turns(self, rotation: int) -> bool:
        """Whether all takes stand inside turns of one rotation of all who take."""
        around = [set(turns) for turns in self.takes]
        common = set.intersection(*around) if around else set()
        return any(turns.count >= rotation for turns in common)

    def _own_slots(self, consumers: list[RolePlan]) -> bool:
        """Whether each slot belongs to one replica of the only role that takes."""
        if len(consumers) != 1 or self.stages % consumers[0].replicas:
            return False
        plan = consumers[0]
        return one_owner_a_slot(plan.body, self.taken_ring, plan.replicas, current().facts)


@vocabulary
def pipe(
    stages: int,
    slots: Sequence[Shared] | Shared,
    deliver: str = "all",
    cluster: bool = False,
    to: Unit | None = None,
) -> Pipe | Outbound:
    """A ring of `stages` items between roles; `slots` are the shared tiles that make an item.

    Producers put (`with ring.put() as (a, b):`, and inside copies, or stores of registers), each
    its part of every item. Consumers take: with `deliver="all"` every replica of every taking role
    takes every item; with "one" each item belongs to one replica, and the others `ring.skip(n)`
    past it. Barriers, their counts, announced bytes and phases follow from the roles.

    With `cluster` the blocks of a cluster fill each other's items: copies inside a `put` may have
    `multicast=wl.cluster_mask(axis)`, and a place is filled anew when all blocks that got the item
    have handed it back. All blocks put and take equally many items, and each gets whole tiles.

    With `to=wl.copy_engine` the engine consumes: `with out.put() as tile:` stores to a slot and
    begins `wl.copy_async(tile, y[…])`, which runs while the role goes on. Each replica has `stages`
    slots of its own, and waits for its copies at its end.

    Shapes: `wl.shared` tiles without slots of their own.
    Executes: the block.
    Since: sm_90.
    PTX: mbarrier (to the copy engine: cp.async.bulk.wait_group).
    """
    count = stage_count(stages)
    need_top("a pipe")
    given = (slots,) if isinstance(slots, Shared) else slots
    if not isinstance(given, tuple | list) or not given:
        raise Refused("T015", "`slots` is a list of `wl.shared` tiles", argument="slots")
    buffers = tuple(ring_of(tile, count) for tile in given)
    if deliver not in DELIVER:
        raise Refused("T015", '`deliver` is "all" or "one"', argument="deliver")
    if not isinstance(cluster, bool):
        raise Refused("T015", "`cluster` is True or False", argument="cluster")
    if to is not None and to is not Unit.COPY:
        raise Refused("T015", "`to` is `wl.copy_engine`, or nothing", argument="to")
    if to is Unit.COPY:
        for what, chosen in (("cluster", cluster), ("deliver", deliver != "all")):
            if chosen:
                text = f"a pipe towards the copy engine has no `{what}`: it takes every item"
                raise Refused("T015", text, argument=what)
        return outbound(count, buffers)
    made = Pipe(count, buffers, deliver, Sharing() if cluster else None)
    current().joints.append(made)
    return made


def stage_count(stages: Any) -> int:
    """The number of stages of a pipe."""
    return need_count("stages", stages, 1, _MOST_STAGES)


def ring_of(tile: Any, stages: int) -> Shared:
    """A buffer as a ring of `stages` slots."""
    if not isinstance(tile, Shared) or tile.type.slots:
        raise Refused(
            "T015", "`slots` are `wl.shared` tiles without slots of their own", argument="slots"
        )
    owner = tile.value.owner
    users = (op for op in walk(current().top) if tile.value in op.operand_values())
    used = any(not isinstance(op, shared_ops.Alias) for op in users)
    if not isinstance(owner, shared_ops.Allocation) or used:
        raise Refused(
            "T015", "`slots` are buffers of which nothing has been taken yet", argument="slots"
        )
    owner.slots = stages
    tile.value.type = owner.infer()[0]
    return tile

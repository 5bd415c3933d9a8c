"""Pipes: rings of shared tiles between roles, whose counts, bytes and phases are derived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warploom.ir.kernel import walk
from warploom.ir.ops import mbarrier
from warploom.ir.ops import roles as role_ops
from warploom.ir.ops import shared as shared_ops
from warploom.language.barrier import Barrier
from warploom.language.context import Handle, Refused, builder, current, need_top, vocabulary
from warploom.language.item import Get, Item
from warploom.language.regions import Alone
from warploom.language.roles import RolePlan
from warploom.language.shared import Shared
from warploom.language.values import Scalar, wrap

_MOST_STAGES = 64


class Pipe(Handle):
    """A ring of `stages` items, each one tile of every slot buffer."""

    attributes = ("put", "take", "get")

    def __init__(self, number: int, stages: int, buffers: tuple[Shared, ...]) -> None:
        self.stages = stages
        self.buffers = buffers
        # A role may stand at both ends, and counts for each.
        self.put_ring, self.taken_ring = 2 * number, 2 * number + 1
        self.full_op = builder().add(mbarrier.Alloc(count=stages, arrivals=1), "full")
        # The count of arrivals is known when all roles are.
        self.empty_op = builder().add(mbarrier.Alloc(count=stages, arrivals=1), "empty")
        self.full = Barrier(self.full_op.result, stages)
        self.empty = Barrier(self.empty_op.result, stages)
        self.producers: list[RolePlan] = []
        self.consumers: list[RolePlan] = []

    def __repr__(self) -> str:
        return f"a pipe of {self.stages} stage{'s' if self.stages > 1 else ''}"

    def call(self, name: str) -> None:
        """Name what the pipe is made of, for reports."""
        for value, part in ((self.full.value, "full"), (self.empty.value, "empty")):
            value.name = value.name if value.name != part else f"{name}_{part}"
        for number, buffer in enumerate(self.buffers):
            buffer.value.name = buffer.value.name or f"{name}_{number}"

    def put(self) -> Put:
        """`with ring.put() as (a, b):` waits for a free item; copies begun inside fill it."""
        return Put(self)

    def take(self) -> Item:
        """The next item, once it is full; hand it back with `release`."""
        plan = _join(self.consumers, "take")
        held = [i for i in plan.items if i.pipe is self and not i.released]
        if len(held) >= self.stages:
            raise Refused(
                "P012",
                f"{len(held) + 1} items would be held of {self.stages}",
                hint="use more stages, or release an item first",
            )
        position = builder().add(role_ops.Position(ring=self.taken_ring, stages=self.stages))
        slot, phase = (wrap(v) for v in position.results)
        self.full[slot].wait(phase)
        item = Item(self, slot)
        plan.items.append(item)
        return item

    def get(self, behind: int = 0) -> Get:
        """`with ring.get() as (a, b):` is take and release."""
        return Get(self, behind)

    def views(self, slot: Scalar) -> tuple[Shared, ...]:
        """The tiles of one slot."""
        return tuple(buffer[slot] for buffer in self.buffers)

    def close(self, plans: list[RolePlan]) -> None:
        """All roles are known: set how many arrivals hand an item back."""
        producers = [p for p in plans if p in self.producers]
        consumers = [p for p in plans if p in self.consumers]
        if sum(p.replicas for p in producers) > 1:
            names = ", ".join(f"{p.name} ({p.replicas})" for p in producers)
            raise Refused(
                "P007",
                f"several replicas put into one pipe: {names}",
                hint="give each its own pipe",
                place=self.full_op.loc,
            )
        if bool(producers) != bool(consumers):
            side, other = ("takes from", "puts into") if producers else ("puts into", "takes from")
            names = ", ".join(f"`{p.name}`" for p in producers or consumers)
            raise Refused(
                "P008",
                f"no role {side} this pipe, and {names} {other} it",
                hint="both ends are needed; guard both by the same constant",
                place=self.full_op.loc,
            )
        self.empty_op.arrivals = max(1, sum(p.warps * p.replicas for p in consumers))


def _join(users: list[RolePlan], verb: str) -> RolePlan:
    """Enter the present role as a user of an end of a pipe."""
    plan: RolePlan | None = current().role
    if plan is None:
        raise Refused("P009", f"`{verb}` stands outside a role", hint="pipes join roles")
    if current().alone:
        raise Refused(
            "P019",
            f"`{verb}` stands where one thread acts",
            notes=("all threads of a role count its items",),
        )
    if not any(p is plan for p in users):
        users.append(plan)
    return plan


class Put(Alone):
    """The filling of one item, by one thread."""

    keyword = "`put`"

    def __init__(self, pipe: Pipe) -> None:
        super().__init__("role")
        self.pipe = pipe
        self.bytes = 0
        self.barrier: Barrier | None = None
        self.expect: mbarrier.Expect | None = None

    def enter(self) -> Any:
        """Open the thread that fills the item, and let it wait until the item is free."""
        held = current()
        if held.put is not None:
            raise Refused("P010", "a `put` stands inside another one")
        pipe = self.pipe
        _join(pipe.producers, "put")
        position = builder().add(role_ops.Position(ring=pipe.put_ring, stages=pipe.stages))
        slot, phase = (wrap(v) for v in position.results)
        self.begin_thread()
        pipe.empty[slot].wait(phase ^ 1)
        self.barrier = pipe.full[slot]
        self.expect = builder().add(mbarrier.Expect(barrier=self.barrier.one(), bytes=0))
        held.put = self
        views = pipe.views(slot)
        return views[0] if len(views) == 1 else views

    def announce(self, tile: Shared) -> Barrier:
        """Count the bytes of a copy into this item; gives the barrier on which they complete."""
        if builder().block is not self.block:
            raise Refused(
                "P011",
                "a copy into an item stands in a loop or branch inside its `put`",
                notes=("the bytes of an item are announced once, as a constant",),
                hint="put the loop or branch around the `put`, or unroll it",
            )
        self.bytes += _bytes(tile)
        assert self.barrier is not None
        return self.barrier

    def leave(self) -> None:
        """Close the thread: the bytes are known now."""
        assert self.expect is not None
        self.expect.bytes = self.bytes
        current().put = None
        self.end_thread()


def _bytes(tile: Shared) -> int:
    total = tile.dtype.bytes
    for extent in tile.shape:
        total *= extent
    return total


@vocabulary
def pipe(stages: int, slots: Sequence[Shared] | Shared) -> Pipe:
    """A ring of `stages` items between roles; `slots` are the shared tiles that make an item.

    One role puts (`with ring.put() as (a, b):` and copies inside), others take: every replica of
    every taking role takes every item. Barriers, announced bytes and phases follow from the roles.

    Shapes: `wl.shared` tiles without slots of their own.
    Executes: the block.
    Since: sm_90.
    PTX: mbarrier.
    """
    if isinstance(stages, bool) or not isinstance(stages, int) or not 1 <= stages <= _MOST_STAGES:
        raise Refused("F027", f"`stages` is a constant from 1 to {_MOST_STAGES}", argument="stages")
    need_top("a pipe")
    given = (slots,) if isinstance(slots, Shared) else slots
    if not isinstance(given, tuple | list) or not given:
        raise Refused("T015", "`slots` is a list of `wl.shared` tiles", argument="slots")
    buffers = tuple(_ring_of(tile, stages) for tile in given)
    held = current()
    made = Pipe(len(held.pipes), stages, buffers)
    held.pipes.append(made)
    return made


def _ring_of(tile: Any, stages: int) -> Shared:
    """A buffer as a ring of `stages` slots."""
    if not isinstance(tile, Shared) or tile.type.slots:
        raise Refused(
            "T015", "`slots` are `wl.shared` tiles without slots of their own", argument="slots"
        )
    owner = tile.value.owner
    used = any(tile.value in op.operand_values() for op in walk(current().top))
    if not isinstance(owner, shared_ops.Alloc) or used:
        raise Refused(
            "T015", "`slots` are buffers of which nothing has been taken yet", argument="slots"
        )
    owner.slots = stages
    tile.value.type = owner.infer()[0]
    return tile

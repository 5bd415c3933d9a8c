"""Pipes: rings of shared tiles between roles, whose counts, bytes and phases are derived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from warploom.ir.op import Block
from warploom.ir.ops import control, mbarrier, wgmma
from warploom.ir.ops import roles as role_ops
from warploom.ir.ops import shared as shared_ops
from warploom.ir.ops.control import Yield
from warploom.language.barrier import Barrier
from warploom.language.context import Handle, Refused, builder, current, vocabulary
from warploom.language.product import Pending
from warploom.language.regions import Region
from warploom.language.roles import RolePlan
from warploom.language.shared import Shared
from warploom.language.values import Scalar, kind_of, wrap

_MOST_STAGES = 64


class Pipe(Handle):
    """A ring of `stages` items, each one tile of every slot buffer."""

    attributes = ("put", "take", "get")

    def __init__(self, number: int, stages: int, buffers: tuple[Shared, ...]) -> None:
        self.number = number
        self.stages = stages
        self.buffers = buffers
        self.full_op = builder().add(mbarrier.Alloc(count=stages, arrivals=1), "full")
        # The count of arrivals is known when all roles are.
        self.empty_op = builder().add(mbarrier.Alloc(count=stages, arrivals=1), "empty")
        self.full = Barrier(self.full_op.result, stages)
        self.empty = Barrier(self.empty_op.result, stages)
        self.producers: list[RolePlan] = []
        self.consumers: list[RolePlan] = []

    def __repr__(self) -> str:
        return f"a pipe of {self.stages} stages"

    def put(self) -> Put:
        """`with ring.put() as (a, b):` waits for a free item; copies begun inside fill it."""
        return Put(self)

    def take(self) -> Item:
        """The next item, once it is full; hand it back with `release`."""
        _enter_once(self.consumers, self, "take")
        position = builder().add(role_ops.Position(ring=self.number, stages=self.stages))
        slot, phase = (wrap(v) for v in position.results)
        self.full[slot].wait(phase)
        return Item(self, slot)

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
            )
        if bool(producers) != bool(consumers):
            side = "takes from" if producers else "puts into"
            raise Refused("P008", f"no role {side} a pipe that another role uses")
        self.empty_op.arrivals = max(1, sum(p.warps * p.replicas for p in consumers))


def _enter_once(users: list[RolePlan], pipe: Pipe, verb: str) -> None:
    plan = current().role
    if plan is None:
        raise Refused("P009", f"`{verb}` stands outside a role", hint="pipes join roles")
    if plan not in users:
        users.append(plan)


class Put(Region):
    """The filling of one item."""

    keyword = "`put`"

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.bytes = 0
        self.block = Block()
        self.outer: Block | None = None
        self.barrier: Barrier | None = None
        self.expect: mbarrier.Expect | None = None

    def enter(self) -> Any:
        """Wait until the item is free, and open the thread that fills it."""
        held = current()
        if held.put is not None:
            raise Refused("P010", "a `put` stands inside another one")
        pipe = self.pipe
        _enter_once(pipe.producers, pipe, "put")
        position = builder().add(role_ops.Position(ring=pipe.number, stages=pipe.stages))
        slot, phase = (wrap(v) for v in position.results)
        pipe.empty[slot].wait(phase ^ 1)
        self.outer = builder().block
        builder().block = self.block
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
        assert self.outer is not None and self.expect is not None
        self.expect.bytes = self.bytes
        builder().add(Yield())
        builder().block = self.outer
        current().put = None
        builder().add(control.OneThread(body=self.block))


def _bytes(tile: Shared) -> int:
    total = tile.dtype.bytes
    for extent in tile.shape:
        total *= extent
    return total


class Item(Handle):
    """One item taken from a pipe: unpack it into its tiles, and release it."""

    attributes = ("release",)

    def __init__(self, pipe: Pipe, slot: Scalar) -> None:
        self.pipe = pipe
        self.slot = slot
        self.tiles = pipe.views(slot)

    def __repr__(self) -> str:
        return f"an item of {self.pipe!r}"

    def __iter__(self) -> Iterator[Shared]:
        return iter(self.tiles)

    def __len__(self) -> int:
        return len(self.tiles)

    def __getitem__(self, index: int) -> Shared:
        return self.tiles[index]

    def release(self, after: Pending | None = None, behind: int = 0) -> None:
        """Hand the item back. `after` is the pending product that reads it; with `behind=n` the
        item taken n before this one goes back now instead, when its product has retired, and what a
        loop still holds goes back at its end.

        Executes: one thread of each warp of the role. Since: sm_90. PTX: mbarrier.arrive.
        """
        pipe = self.pipe
        if isinstance(behind, bool) or not isinstance(behind, int) or behind < 0:
            raise Refused("F027", "`behind` is a constant from 0 up", argument="behind")
        if behind >= pipe.stages:
            raise Refused(
                "P012",
                f"{behind + 1} items would be held of {pipe.stages}",
                argument="behind",
                hint="use more stages: the producer would wait for ever",
            )
        if after is not None:
            if not isinstance(after, Pending):
                raise Refused(
                    "T015", f"`after` is a pending product, not {kind_of(after)}", argument="after"
                )
            after.settle(behind)
        elif behind:
            builder().add(wgmma.Drain(pending=behind))
        builder().add(
            role_ops.HandBack(
                empty=pipe.empty.value, ring=pipe.number, stages=pipe.stages, behind=behind
            )
        )


class Get(Region):
    """Take and release around a block."""

    keyword = "`get`"

    def __init__(self, pipe: Pipe, behind: int) -> None:
        self.pipe = pipe
        self.behind = behind
        self.item: Item | None = None

    def enter(self) -> Any:
        """Take."""
        self.item = self.pipe.take()
        tiles = self.item.tiles
        return tiles[0] if len(tiles) == 1 else tiles

    def leave(self) -> None:
        """Release."""
        assert self.item is not None
        self.item.release(behind=self.behind)


@vocabulary
def pipe(stages: int, slots: Sequence[Shared] | Shared) -> Pipe:
    """A ring of `stages` items between roles; `slots` are the shared tiles that make an item.

    One role puts (`with ring.put() as (a, b):` and copies inside), others take: every replica of
    every taking role takes every item. Barriers, announced bytes and phases follow from the roles.

    Shapes: `wl.shared` tiles without slots of their own. Executes: the block. Since: sm_90.
    PTX: mbarrier.
    """
    if isinstance(stages, bool) or not isinstance(stages, int) or not 1 <= stages <= _MOST_STAGES:
        raise Refused("F027", f"`stages` is a constant from 1 to {_MOST_STAGES}", argument="stages")
    given = (slots,) if isinstance(slots, Shared) else tuple(slots)
    buffers = []
    for tile in given:
        if not isinstance(tile, Shared) or tile.type.slots:
            raise Refused(
                "T015", "`slots` are `wl.shared` tiles without slots of their own", argument="slots"
            )
        owner = tile.value.owner
        if not isinstance(owner, shared_ops.Alloc):
            raise Refused("T015", "`slots` are buffers, not views of them", argument="slots")
        owner.slots = stages
        tile.value.type = owner.infer()[0]
        buffers.append(tile)
    held = current()
    if held.role is not None:
        raise Refused("P013", "a pipe is made inside a role", hint="make it before `wl.roles()`")
    made = Pipe(len(held.pipes), stages, tuple(buffers))
    held.pipes.append(made)
    return made

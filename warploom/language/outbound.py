"""Pipes towards the copy engine: a role stores into a slot, and the engine writes it to a tensor
while the role goes on. Each replica has slots of its own, and one of its threads begins all its
copies."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from warploom.base.dtypes import i32
from warploom.ir.op import Block, Op
from warploom.ir.ops import roles as role_ops
from warploom.ir.ops import shared as shared_ops
from warploom.ir.ops import tma
from warploom.language import core
from warploom.language.context import Refused, builder, current
from warploom.language.regions import Region
from warploom.language.roles import Joint, RolePlan, forget, need_role
from warploom.language.shared import Shared
from warploom.language.values import wrap


class Unit(Enum):
    """A unit of the hardware that stands at the end of a pipe."""

    COPY = "copy engine"


copy_engine = Unit.COPY


class Outbound(Joint):
    """`stages` slots for each replica that puts."""

    attributes = ("put",)

    def __init__(self, stages: int, buffers: tuple[Shared, ...]) -> None:
        self.stages = stages
        self.buffers = buffers
        self.ring = current().ring()
        self.users: list[tuple[RolePlan, int]] = []  # and the number of the first slot of each

    def __repr__(self) -> str:
        plural = "s" if self.stages > 1 else ""
        return f"a pipe of {self.stages} stage{plural} towards the copy engine"

    def call(self, name: str) -> None:
        """Name the buffers, for reports."""
        for number, buffer in enumerate(self.buffers):
            buffer.value.name = buffer.value.name or f"{name}_{number}"

    def put(self) -> Send:
        """`with out.put() as tile:` waits until the slot has been read; inside, store to the tile
        and begin its copy, `wl.copy_async(tile, y[…])`, which starts at the end."""
        return Send(self)

    def first_slot(self, plan: RolePlan) -> int:
        """The first of the slots of a role's replicas."""
        for known, first in self.users:
            if known is plan:
                return first
        first = sum(known.replicas for known, _ in self.users) * self.stages
        self.users.append((plan, first))
        # What they write is there when the launch has ended; shared memory goes with the block.
        plan.endings.append(lambda: _by_one_thread([tma.Wait(pending=0, reads=True)]))
        return first

    def close(self, plans: list[RolePlan]) -> None:
        """Make room for the slots of all replicas."""
        replicas = sum(plan.replicas for plan, _ in self.users if plan in plans)
        if not replicas:
            forget((buffer.value for buffer in self.buffers), plans)
            return
        for buffer in self.buffers:
            made = buffer.value.owner
            assert isinstance(made, shared_ops.Allocation)
            made.slots = self.stages * replicas
            buffer.value.type = made.infer()[0]


class Send(Region):
    """The filling of one slot, and the copies out of it."""

    keyword = "`put`"

    def __init__(self, pipe: Outbound) -> None:
        self.pipe = pipe
        self.block: Block | None = None
        self.copies: list[Op] = []
        self.read_by_threads = False
        self.sent = False

    def enter(self) -> Any:
        """Wait until the copies of the slot's last use have read it."""
        held = current()
        if held.put is not None or held.send is not None:
            raise Refused(
                "P010",
                "a `put` stands inside another one",
                hint="end the first before the second begins",
            )
        plan, pipe = need_role("put"), self.pipe
        first = pipe.first_slot(plan)
        position = builder().add(role_ops.Position(ring=pipe.ring, stages=pipe.stages))
        slot = position.results[0]
        if plan.replicas > 1:
            assert plan.replica is not None
            own = core.binary("mul", plan.replica, pipe.stages)
            slot = core.binary("add", slot, own)
        if first:
            slot = core.binary("add", slot, first)
        _by_one_thread([tma.Wait(pending=pipe.stages - 1, reads=True)])
        self.block = builder().block
        held.send = self
        at = wrap(core.convert(slot, i32))
        views = tuple(Shared(buffer[at].value, self) for buffer in pipe.buffers)
        return views[0] if len(views) == 1 else views

    def begin(self, copy: tma.Store) -> None:
        """A copy out of the slot, which starts when the slot is complete."""
        if builder().block is not self.block:
            raise Refused(
                "P043",
                "a copy out of a slot stands in a loop, branch or region inside its `put`",
                notes=("the copies of a slot begin together, at the end of its `put`",),
                hint="put it directly into the `put`",
            )
        self.copies.append(copy)

    def leave(self) -> None:
        """One thread begins the copies and closes their group."""
        current().send = None
        self.sent = True
        if not self.copies:
            raise Refused(
                "P044",
                "nothing copies what this `put` has stored",
                hint="`wl.copy_async(tile, y[…])` inside",
            )
        _by_one_thread([*self.copies, tma.Commit()])

    # ---- as the owner of its tiles ---------------------------------------------------------

    def check_held(self) -> None:
        """Refuse the use of a tile that the copy engine reads."""
        if self.sent:
            raise Refused(
                "P024",
                "this slot was handed to the copy engine, and is filled anew later",
                hint="use it inside its `put`",
            )

    def note_product(self) -> None:
        """A product may read the tile as long as it is held."""


def outbound(stages: int, buffers: Sequence[Shared]) -> Outbound:
    """A pipe towards the copy engine, entered among what joins roles."""
    made = Outbound(stages, tuple(buffers))
    current().joints.append(made)
    return made


def _by_one_thread(ops: list[Op]) -> None:
    with builder().one_thread():
        for op in ops:
            builder().add(op)

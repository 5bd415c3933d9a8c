"""Roles: groups of warps that run different instruction streams in one block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from warploom.ir.kernel import walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops import roles as role_ops
from warploom.language.context import (
    Handle,
    Refused,
    builder,
    current,
    finish_block,
    need_count,
    vocabulary,
)
from warploom.language.regions import Names, Nested, Region
from warploom.language.values import Scalar, wrap

_MOST_WARPS = 32


@dataclass(slots=True)
class RolePlan:
    """One role as declared, the items that it has taken from pipes, and what its end owes."""

    name: str
    warps: int
    replicas: int
    registers: int
    body: Block
    replica: Value | None = None  # the number of the replica
    items: list[Any] = field(default_factory=list)
    endings: list[Any] = field(default_factory=list)  # called before the last operation of the role


class Joint(Handle, ABC):
    """What joins roles, and is complete when all of them are known."""

    @abstractmethod
    def call(self, name: str) -> None:
        """Name what it is made of, for reports."""

    @abstractmethod
    def close(self, plans: list[RolePlan]) -> None:
        """These are the roles of the kernel."""


def forget(values: Iterable[Value], plans: list[RolePlan]) -> None:
    """Take back the memory of a joint that no role uses, except what something else does."""
    held = current()
    blocks = (held.top, *(plan.body for plan in plans))
    used = {v for block in blocks for op in walk(block) for v in op.operand_values()}
    for value in values:
        if value not in used and isinstance(value.owner, Op) and value.owner in held.top.ops:
            held.top.ops.remove(value.owner)


def need_role(verb: str) -> RolePlan:
    """The present role, for what its threads do together and count."""
    plan: RolePlan | None = current().role
    if plan is None:
        raise Refused(
            "P009", f"`{verb}` stands outside a role", hint="put it into `with wl.role(…):`"
        )
    if current().alone:
        raise Refused(
            "P019",
            f"`{verb}` stands where one thread acts",
            notes=("all threads of a role count its items and turns",),
            hint="move it out of `wl.one_thread()`",
        )
    return plan


class Roles(Region):
    """`with wl.roles():`."""

    names = Names.OWN
    keyword = "`wl.roles()`"

    def __init__(self) -> None:
        self.plans: list[RolePlan] = []

    def enter(self) -> None:
        """Begin."""
        held = current()
        if held.roles is not None:
            raise Refused(
                "P001",
                "a kernel has one `wl.roles()`, and this is the second",
                hint="put all roles into the first one",
            )
        held.roles = self

    def leave(self) -> None:
        """Join the roles into one operation; a kernel whose roles all vanished has none."""
        held = current()
        for joint in held.joints:
            joint.close(self.plans)
        finish_block()
        if not self.plans:
            return
        plans = self.plans
        builder().add(
            role_ops.Split(
                names=tuple(p.name for p in plans),
                warps=tuple(p.warps for p in plans),
                replicas=tuple(p.replicas for p in plans),
                registers=tuple(p.registers for p in plans),
                first=(-1,) * len(plans),
                barrier=(-1,) * len(plans),
                bodies=tuple(p.body for p in plans),
            )
        )


class RoleRegion(Nested):
    """`with wl.role(…) as r:`. Each role starts with the names from before all of them."""

    names = Names.OWN
    keyword = "`wl.role(…)`"

    def __init__(self, name: str, warps: int, replicas: int, registers: int) -> None:
        super().__init__()
        self.plan = RolePlan(name, warps, replicas, registers, self.block)

    def enter(self) -> Scalar:
        """Begin; gives the number of the replica."""
        held = current()
        where = ""
        if held.role is not None:
            where = "inside another role"
        elif held.roles is None:
            where = "outside `wl.roles()`"
        elif builder().block is not held.top:
            where = "inside a run-time loop or branch"
        if where or held.roles is None:
            raise Refused("P002", f"a role stands {where}", hint="`with wl.roles():` holds roles")
        if any(p.name == self.plan.name for p in held.roles.plans):
            raise Refused(
                "P003",
                f"two roles are called {self.plan.name!r}",
                hint="give each a name of its own",
            )
        held.role = self.plan
        held.roles.plans.append(self.plan)
        self.begin_block()
        self.plan.replica = builder().emit(role_ops.Replica())
        return wrap(self.plan.replica)

    def leave(self) -> None:
        """End; refuses items that were not handed back."""
        for ending in self.plan.endings:
            ending()
        self.end_block()
        try:
            for item in self.plan.items:
                item.settle_account()
        finally:
            current().role = None


@vocabulary
def roles() -> Roles:
    """The roles of the block: the last statement of a kernel, and inside only `with wl.role(…):`.

    Scalars and shared tiles from before are visible in all roles, register tiles in none.

    Shapes: none.
    Executes: each role runs its own body; all run at the same time.
    Since: sm_90.
    """
    return Roles()


@vocabulary
def role(name: str, warps: int = 4, replicas: int = 1, registers: int = 0) -> RoleRegion:
    """One role: `warps` warps, `replicas` times; `with wl.role("math", warps=4, replicas=2) as r:`.

    `registers` a thread is a multiple of 8 from 24 to 256; 0 lets the compiler divide what the
    block has. `r` is the number of the replica, from 0. A role of 4, 8, … warps starts at a
    warpgroup; smaller ones share a warpgroup and its number of registers.

    Shapes: none.
    Executes: its warps.
    Since: sm_90 (registers: sm_90a).
    PTX: setmaxnreg.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise Refused(
            "T015",
            "the name of a role is a text like a name",
            argument="name",
            hint='such as `wl.role("load", warps=1)`',
        )
    need_count("warps", warps, 1, _MOST_WARPS)
    need_count("replicas", replicas, 1, _MOST_WARPS)
    if isinstance(registers, bool) or not isinstance(registers, int):
        raise Refused("F027", "`registers` is a constant", argument="registers")
    if registers and (registers % 8 or not 24 <= registers <= 256):
        raise Refused(
            "B013",
            f"{registers} registers: a multiple of 8 from 24 to 256",
            argument="registers",
            hint=f"the nearest: {min(256, max(24, registers // 8 * 8))}",
        )
    return RoleRegion(name, warps, replicas, registers)

"""Roles: warps of a block with instruction streams of their own, and positions in their pipes."""

from __future__ import annotations

from warploom.base.dtypes import i32
from warploom.ir.op import (
    Actor,
    Block,
    Effect,
    Op,
    Stage,
    Value,
    attribute,
    check,
    op,
    operand,
    regions,
)
from warploom.ir.ops.scalar import scalar_of
from warploom.ir.types import Barriers, Scalar, Type, Uniformity

_TILE = Stage.TILE | Stage.ROLES


@op("roles.split", effects=(Effect.CONTROL,), executes=Actor.BLOCK)
class Split(Op):
    """The last operation of a kernel before its yield: each role runs its body, replicas share one.

    `warps` is a replica's, `first` the role's first warp in the block (-1 until place_roles), a
    role of 4k warps starts at a multiple of 4. `registers` is 0 where the role keeps what it enters
    with. Inside a body `index.warp` counts from the replica's first warp; barriers of the role take
    `sync.barrier` number `barrier` + replica.
    """

    names: tuple[str, ...] = attribute()
    warps: tuple[int, ...] = attribute()
    replicas: tuple[int, ...] = attribute()
    registers: tuple[int, ...] = attribute()
    first: tuple[int, ...] = attribute()
    barrier: tuple[int, ...] = attribute()
    bodies: tuple[Block, ...] = regions()

    def verify(self) -> None:
        count = len(self.bodies)
        fields = (self.names, self.warps, self.replicas, self.registers, self.first, self.barrier)
        check(all(len(f) == count for f in fields), "one entry a role")
        check(len(set(self.names)) == count, f"role names {self.names} repeat")
        for registers in self.registers:
            legal = registers == 0 or (24 <= registers <= 256 and registers % 8 == 0)
            check(legal, f"{registers} registers: a multiple of 8 from 24 to 256")


@op("roles.replica", executes=Actor.ROLE)
class Replica(Op):
    """Number of this replica of the role, from 0."""

    def infer(self) -> tuple[Type, ...]:
        return (Scalar(i32, Uniformity.ROLE),)


@op(
    "roles.set_registers",
    stages=Stage.MACHINE,
    effects=(Effect.SYNC,),
    executes=Actor.ROLE,
    since="sm_90a",
)
class SetRegisters(Op):
    """Give registers back (`grow` false) or take more: setmaxnreg. All warps of a warpgroup."""

    count: int = attribute()
    grow: bool = attribute()


@op("roles.position", stages=_TILE, effects=(Effect.CONTROL,), executes=Actor.ROLE)
class Position(Op):
    """The next place in ring number `ring` of `stages` slots: its slot, and the parity of the phase
    that fills it. Each role (replica) counts for itself from 0 over the whole kernel, without
    `advances` it only looks; thread_positions turns the count into carried values. `cluster`:
    blocks of a cluster share the items, so that all of them come here equally often."""

    ring: int = attribute()
    stages: int = attribute()
    cluster: bool = attribute(default=False)
    advances: bool = attribute(default=True)

    def infer(self) -> tuple[Type, ...]:
        role = Scalar(i32, Uniformity.ROLE)
        return (role, role)

    def verify(self) -> None:
        check(self.stages >= 1, f"{self.stages} stages")


@op("roles.round", stages=_TILE, effects=(Effect.CONTROL,), executes=Actor.ROLE)
class Round(Op):
    """How often the role has come to ring number `ring`, from 0: each role (replica), or the block
    before its roles, counts for itself over the whole kernel; without `advances` it only looks.
    thread_positions turns the count into carried values."""

    ring: int = attribute()
    advances: bool = attribute(default=True)

    def infer(self) -> tuple[Type, ...]:
        return (Scalar(i32, Uniformity.ROLE),)


@op("roles.hand_back", stages=_TILE, effects=(Effect.SYNC,), executes=Actor.ROLE)
class HandBack(Op):
    """Hold the item in `slot` of ring `ring`, and hand back the one taken `behind` items before it,
    if that many are held: one arrival a warp on its barrier of `empty`. What a loop (or a role)
    leaves held is handed back at its end, once the matrix unit has retired. thread_positions writes
    it out. `steps`, `ordered`: as in `cluster.arrive_peers`."""

    empty: Value = operand()
    slot: Value = operand()
    ring: int = attribute()
    stages: int = attribute()
    behind: int = attribute()
    steps: tuple[int, ...] = attribute(default=(0,))
    ordered: bool = attribute(default=True)

    def verify(self) -> None:
        check(isinstance(self.empty.type, Barriers), f"{self.empty} are not barriers")
        check(scalar_of(self.slot).dtype == i32, "the slot is an i32")
        check(1 <= self.behind < self.stages, f"{self.behind} behind in {self.stages} stages")


@op("roles.skip", stages=_TILE, effects=(Effect.SYNC,), executes=Actor.ROLE)
class Skip(Op):
    """Pass `count` items (≥ 0) of ring `ring` by. With `visits` each is waited for and handed back
    unread, one arrival a warp; else only the position moves on, because those who take the items
    hand them back. What the role still holds of the ring goes back first. thread_positions writes
    it out. `steps`, `ordered`: as in `cluster.arrive_peers`; `cluster`: as in `roles.position`."""

    full: Value = operand()
    empty: Value = operand()
    count: Value = operand()
    ring: int = attribute()
    stages: int = attribute()
    visits: bool = attribute(default=True)
    steps: tuple[int, ...] = attribute(default=(0,))
    ordered: bool = attribute(default=False)
    cluster: bool = attribute(default=False)

    def verify(self) -> None:
        for barriers in (self.full, self.empty):
            check(isinstance(barriers.type, Barriers), f"{barriers} are not barriers")
        check(scalar_of(self.count).dtype == i32, "the count is an i32")
        check(self.stages >= 1, f"{self.stages} stages")

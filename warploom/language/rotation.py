"""Whether the replicas of a role that deal the items of a ring among themselves own its slots:
each replica takes, or asks for, items whose numbers have one remainder modulo the number of
replicas, and no two have the same. Walks the program of the role, loops and branches included;
knows no pipe."""

from __future__ import annotations

from math import gcd
from typing import TypeAlias

from warploom.ir.affine import ScalarFacts
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops.control import If, Loop
from warploom.ir.ops.roles import Position, Replica, Skip

# The number of the next item modulo the rotation: coefficient of the replica's number, and a
# constant. None where it is not known.
_At: TypeAlias = tuple[int, int] | None


def one_owner_a_slot(body: Block, ring: int, rotation: int, facts: ScalarFacts) -> bool:
    """Whether, in a role of `rotation` replicas, each one's takes from the ring fall on places of
    its own modulo `rotation`."""
    walker = _Walker(ring, rotation, facts)
    walker.block(body, (0, 0))
    places = walker.places
    if len(places) != 1:
        return False
    (at,) = places
    return at is not None and gcd(at[0], rotation) == 1


class _Walker:
    def __init__(self, ring: int, rotation: int, facts: ScalarFacts) -> None:
        self.ring, self.rotation, self.facts = ring, rotation, facts
        self.places: set[_At] = set()

    def block(self, block: Block, at: _At) -> _At:
        """The place at the end of a block that is entered at a place."""
        for op in block.ops:
            at = self.after(op, at)
        return at

    def after(self, op: Op, at: _At) -> _At:
        """The place after one operation."""
        if isinstance(op, Position) and op.ring == self.ring:
            self.places.add(at)
            return self.moved(at, (0, 1)) if op.advances else at
        if isinstance(op, Skip) and op.ring == self.ring:
            return self.moved(at, self.remainder(op.count))
        if isinstance(op, Loop):
            end = self.block(op.body, at)
            if end != at:  # further trips begin elsewhere
                self.block(op.body, None)
                return None
            return at
        if isinstance(op, If):
            then, orelse = self.block(op.then, at), self.block(op.orelse, at)
            return then if then == orelse else None
        for inner in op.regions():
            at = self.block(inner, at)
        return at

    def moved(self, at: _At, by: _At) -> _At:
        """A place some items on."""
        if at is None or by is None:
            return None
        return (at[0] + by[0]) % self.rotation, (at[1] + by[1]) % self.rotation

    def remainder(self, count: Value) -> _At:
        """A number of items modulo the rotation."""
        form = self.facts.affine(count)
        by_replica = 0
        for root, coefficient in form.terms:
            value = self.facts.value_of(root)
            if isinstance(value.owner, Replica):
                by_replica += coefficient
            elif (coefficient * self.facts.divisor(value)) % self.rotation:
                return None
        return by_replica % self.rotation, form.constant % self.rotation

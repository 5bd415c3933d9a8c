"""Where allocations that share bytes lie in the region that they have in common. Places of a region
follow each other, one for each slot, or for several slots of an allocation that has more of them.

Knows no addresses: the plan places the region.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from warploom.base.errors import Error, error
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Value
from warploom.ir.ops import shared
from warploom.ir.types import SharedTile


class AliasPlace(NamedTuple):
    """An allocation in its region: `within` each place of `pitch` bytes it has `per` slots.
    `content` tells the allocations of the region apart, `align` is the region's."""

    region: int
    content: int
    within: int
    per: int
    pitch: int
    align: int
    places: int

    def span(self, kind: SharedTile) -> int:
        """Bytes from the allocation's first to its last."""
        return (self.places - 1) * self.pitch + self.per * kind.slot_bytes


@dataclass
class _Member:
    """An allocation of a region while that is laid out."""

    kind: SharedTile
    slots: int
    within: int = 0
    per: int = 1

    @property
    def end(self) -> int:
        """Bytes to where it ends in a place."""
        return self.within + self.per * self.kind.slot_bytes


def place_aliases(kernel: Kernel) -> dict[Value, AliasPlace]:
    """The places of all allocations that share bytes with others, by their results."""
    allocations = [op for op in walk(kernel.body) if isinstance(op, shared.Allocation)]
    roots: dict[Value, Value] = {}
    for op in allocations:
        base = op.base if isinstance(op, shared.Alias) else op.result
        roots[op.result] = roots.get(base, base)
    made: dict[Value, AliasPlace] = {}
    shares = [root for root in dict.fromkeys(roots.values()) if _count(roots, root) > 1]
    for region, root in enumerate(shares):
        members = [op for op in allocations if roots[op.result] is root]
        made.update(_laid_out(region, members))
    return made


def _count(roots: dict[Value, Value], root: Value) -> int:
    return sum(other is root for other in roots.values())


def places_of(slots: Iterable[int]) -> int:
    """How many places allocations with so many slots (0: one tile) have in common."""
    return min(max(n, 1) for n in slots)


def _laid_out(region: int, members: list[shared.Allocation]) -> dict[Value, AliasPlace]:
    places = places_of(op.slots for op in members)
    found: dict[Value, _Member] = {}
    for op in members:
        kind = shared.shared_of(op.result)
        member = found[op.result] = _Member(kind, max(op.slots, 1))
        if member.slots % places:
            raise _uneven(op, member.slots, places)
        member.per = member.slots // places
        if isinstance(op, shared.Alias):
            base = found[op.base]
            start = base.end if op.behind else base.within
            member.within = _up(start, kind.layout.align)
    align = max(m.kind.layout.align for m in found.values())
    pitch = _up(max(m.end for m in found.values()), align)
    return {
        value: AliasPlace(region, number, m.within, m.per, pitch, align, places)
        for number, (value, m) in enumerate(found.items())
    }


def _uneven(op: shared.Allocation, slots: int, places: int) -> Error:
    return error(
        "L025",
        f"`{op.result.name}` has {slots} slots on the bytes of {places}",
        op.loc,
        hint=f"give it {places} slots or a multiple, so that so many lie where one does",
    )


def _up(size: int, align: int) -> int:
    return -(-size // align) * align

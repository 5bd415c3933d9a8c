"""Which shared buffer a byte address was computed from. Knows no place of a buffer."""

from __future__ import annotations

from warploom.ir.op import Value
from warploom.ir.ops import cluster
from warploom.ir.ops.scalar import Binary
from warploom.ir.ops.shared_memory import Address


def peer_behind(address: Value) -> cluster.Address | None:
    """Where an address of another block of the cluster was made from one of this block; None for
    one of this block."""
    owner = address.owner
    if isinstance(owner, cluster.Address):
        return owner
    if isinstance(owner, Binary) and owner.kind == "add":
        return peer_behind(owner.lhs) or peer_behind(owner.rhs)
    return None


def buffer_behind(address: Value) -> Value | None:
    """The buffer of an address that is a sum, in this block or in one of its cluster."""
    owner = address.owner
    if isinstance(owner, Address):
        return owner.buffer
    if isinstance(owner, cluster.Address):
        return buffer_behind(owner.address)
    if isinstance(owner, Binary) and owner.kind == "add":
        return buffer_behind(owner.lhs) or buffer_behind(owner.rhs)
    return None

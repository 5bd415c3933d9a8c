"""Places in a cluster as integers: ranks of peers, masks, and barriers of peers by their address.

What depends on nothing but the block's own rank is computed once, ahead of all else of the role.
"""

from __future__ import annotations

from warploom.base.dtypes import i32
from warploom.ir import cluster as shape
from warploom.ir.builder import Builder
from warploom.ir.op import Value
from warploom.ir.ops import cluster, mbarrier, scalar, shared_memory
from warploom.passes.lowering.context import Lowering, SharedPlace, lowers
from warploom.passes.lowering.shared import barrier_address


def _arith(build: Builder, kind: str, lhs: Value, number: int) -> Value:
    return build.emit(scalar.Binary(lhs=lhs, rhs=build.const(number, i32), kind=kind))


def _coordinate(build: Builder, of: shape.Shape, rank: Value, axis: int) -> Value:
    """Where the block of a rank stands along an axis."""
    step, wide = shape.pitch(of, axis), of[axis]
    at = _arith(build, "floordiv", rank, step) if step > 1 else rank
    return _arith(build, "mod", at, wide) if step * wide < shape.size(of) else at


def _peer(build: Builder, of: shape.Shape, rank: Value, step: int) -> Value:
    """The rank `step` on from this block's, each coordinate by itself."""
    total = rank
    for axis in range(3):
        far = shape.coordinate(of, step, axis)
        if far:
            pitch, wide = shape.pitch(of, axis), of[axis]
            at = _coordinate(build, of, rank, axis)
            there = _arith(build, "mod", _arith(build, "add", at, far), wide)
            moved = build.emit(scalar.Binary(lhs=there, rhs=at, kind="sub"))
            moved = _arith(build, "mul", moved, pitch) if pitch > 1 else moved
            total = build.emit(scalar.Binary(lhs=total, rhs=moved, kind="add"))
    return total


@lowers(cluster.Mask)
def mask(lower: Lowering, op: cluster.Mask) -> None:
    of, build = lower.kernel.cluster, lower.build
    bits = build.const(shape.bits(of, op.axes), i32)
    first = build.emit(cluster.Rank())
    for axis in op.axes:
        if of[axis] > 1:
            own = _coordinate(build, of, first, axis)
            own = _arith(build, "mul", own, shape.pitch(of, axis))
            first = build.emit(scalar.Binary(lhs=first, rhs=own, kind="sub"))
    lower.put(op.result, build.emit(scalar.Binary(lhs=bits, rhs=first, kind="shl")))


def remote_address(lower: Lowering, place: SharedPlace, rank: Value, build: Builder) -> Value:
    """The address in the cluster of a place of a block: that of its buffer by `build`, which may
    stand further up, and the bytes from there."""
    base = build.emit(shared_memory.Address(buffer=place.buffer))
    address = build.emit(cluster.Address(address=base, rank=rank))
    return address if place.offset is None else lower.arith("add", address, place.offset)


@lowers(cluster.BarrierOn)
def barrier_on(lower: Lowering, op: cluster.BarrierOn) -> None:
    place = lower.places[op.barrier]
    lower.put(op.result, remote_address(lower, place, lower.get(op.rank), lower.build))


@lowers(cluster.ArrivePeers)
def arrive_peers(lower: Lowering, op: cluster.ArrivePeers) -> None:
    ahead = lower.prologue
    for step in op.steps:
        if not step:
            address = barrier_address(lower, op.barrier)
            lower.build.add(mbarrier.Arrive(barrier=address))
            continue
        rank = _peer(ahead, lower.kernel.cluster, ahead.emit(cluster.Rank()), step)
        address = remote_address(lower, lower.places[op.barrier], rank, ahead)
        lower.build.add(cluster.Arrive(barrier=address, ordered=op.ordered))

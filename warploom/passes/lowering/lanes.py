"""Tiles with one element a thread: numbers of threads, exchange and votes within warps; and named
barriers of the kernel."""

from __future__ import annotations

from warploom.ir.ops import index, lanes, registers, sync
from warploom.passes.lowering.context import Lowering, lowers


@lowers(lanes.Number)
def number(lower: Lowering, op: lanes.Number) -> None:
    if op.kind == "lane":
        made = lower.build.emit(index.Lane(rank=1))
    elif op.kind == "warp":
        made = lower.build.emit(index.Warp(rank=1))
    else:
        # A copy, so that the shared coordinate does not take this value's name.
        coordinate = lower.coordinates(lower.layout(op.result), 0)
        made = lower.build.emit(registers.Spread(value=coordinate, extents=(1,)))
    lower.put(op.result, made)


@lowers(lanes.Read)
def read(lower: Lowering, op: lanes.Read) -> None:
    made = lanes.Shuffle(value=lower.whole(op.value), lane=lower.whole(op.lane))
    lower.put(op.result, lower.build.emit(made))


@lowers(lanes.Vote)
def vote(lower: Lowering, op: lanes.Vote) -> None:
    lower.put(op.result, lower.build.emit(lanes.Ballot(value=lower.whole(op.value))))


@lowers(sync.Meet)
def meet(lower: Lowering, op: sync.Meet) -> None:
    if op.waits:
        lower.build.add(sync.Barrier(threads=op.threads, id=op.id, why="named in the kernel"))
    else:
        lower.build.add(sync.Arrive(threads=op.threads, id=op.id))

"""Copies by threads: a window of a tensor on the one side, a tile of shared memory on the other, in
vector groups of one width."""

from __future__ import annotations

from warploom.base.errors import error
from warploom.ir.ops import cp_async
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.exchange import no_padding
from warploom.passes.lowering.memory import view_of, window
from warploom.passes.lowering.shared import access_of, barrier_address, element_offset, type_of


@lowers(cp_async.Copy)
def copy(lower: Lowering, op: cp_async.Copy) -> None:
    view, layout = view_of(lower, op.tensor), lower.layout(op.shape)
    size = view.type.dtype.bytes
    axis, vec = access_of(type_of(op.target), layout)
    access = window(lower, view, op.starts, op.sizes, layout, writes=False, widest=vec * size)
    if access.axis != axis and access.vec > 1:  # contiguous along different axes
        access = window(lower, view, op.starts, op.sizes, layout, writes=False, widest=size)
    vec = access.vec
    if vec * size not in cp_async.BYTES:
        raise error(
            "L021",
            f"a thread copies 4, 8 or 16 bytes at a time, and here only {vec * size} lie together",
            op.loc,
            label="this copy",
            notes=[
                f"elements of {size} bytes, `{op.tensor.name or 'x'}` aligned to "
                f"{view.type.cls.align} bytes with an extent divisible by "
                f"{view.type.cls.extent_pow2}"
            ],
            hint="load and store it: `tile.store(wl.load(window))`",
        )
    guard = lower.both(no_padding(lower, layout, vec, access.axis), lower.first_replica(layout))
    lower.build.add(
        cp_async.CopyGroups(
            tensor=view.root,
            buffer=lower.places[op.target].buffer,
            base=access.base,
            offset=access.offset,
            place=element_offset(lower, op.target, layout, access.axis, vec),
            inside=access.predicate,
            predicate=guard,
            vec=vec,
        )
    )


@lowers(cp_async.Arrive)
def arrive(lower: Lowering, op: cp_async.Arrive) -> None:
    lower.build.add(cp_async.Arrive(barrier=barrier_address(lower, op.barrier)))

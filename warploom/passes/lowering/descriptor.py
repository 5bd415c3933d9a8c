"""Descriptors that a kernel makes: the boxes come from the tile, the rest is put in at run time."""

from __future__ import annotations

from warploom.ir.ops import descriptor
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.copies import blank_map, box_of, check_box
from warploom.passes.lowering.shared import address_of, type_of


@lowers(descriptor.Make)
def make(lower: Lowering, op: descriptor.Make) -> None:
    kind = type_of(op.like)
    check_box(op, kind, box_of(kind))
    lower.build.add(
        descriptor.Write(
            room=op.room,
            number=lower.get(op.number),
            tensor=op.tensor,
            start=lower.get(op.start),
            extents=tuple(lower.get(n) for n in reversed(op.extents)),
            strides=tuple(lower.get(n) for n in reversed(op.strides)),
            address=address_of(lower, op.scratch),
            map=blank_map(lower, op.tensor, kind),
        )
    )

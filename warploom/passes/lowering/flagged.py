"""Flagged data: the words of a window become one access each by the thread that holds the value."""

from __future__ import annotations

from warploom.ir.ops import flagged
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.memory import view_of, window


@lowers(flagged.Send)
def send(lower: Lowering, op: flagged.Send) -> None:
    view = view_of(lower, op.tensor)
    layout = lower.layout(op.value)
    access = window(lower, view, op.starts, op.sizes, layout, writes=True, widest=1)
    first, *rest = (lower.whole(v) for v in op.values)
    lower.build.add(
        flagged.Put(
            tensor=view.root,
            base=access.base,
            offset=access.offset,
            epoch=lower.get(op.epoch),
            value=first,
            second=rest[0] if rest else None,
            third=rest[1] if len(rest) > 1 else None,
            predicate=access.predicate,
            scope=op.scope,
        )
    )


@lowers(flagged.Receive)
def receive(lower: Lowering, op: flagged.Receive) -> None:
    """All words are looked at first, so that their loads are under way together; then each that
    has not come yet is polled."""
    view = view_of(lower, op.tensor)
    layout = lower.layout(op.results[0])
    access = window(lower, view, op.starts, op.sizes, layout, writes=False, widest=1)
    look = flagged.Look(
        tensor=view.root,
        base=access.base,
        offset=access.offset,
        predicate=access.predicate,
        long=len(op.kinds) > 1,
        scope=op.scope,
    )
    found = lower.build.add(look).results
    take = flagged.Take(
        tensor=view.root,
        base=access.base,
        offset=access.offset,
        epoch=lower.get(op.epoch),
        found=found[0],
        behind=found[1] if len(found) > 1 else None,
        predicate=access.predicate,
        stop=op.stop,
        kinds=op.kinds,
        scope=op.scope,
    )
    made = lower.build.add(take)
    for wanted, value in zip(op.results, made.results, strict=True):
        lower.put(wanted, value)

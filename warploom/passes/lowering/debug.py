"""Printing and assertions."""

from __future__ import annotations

from warploom.ir.op import Value
from warploom.ir.ops import debug, tile
from warploom.ir.types import Scalar, Tile
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.exchange import no_padding


@lowers(tile.Print)
def print_values(lower: Lowering, op: tile.Print) -> None:
    scalars = tuple(lower.get(v) for v in op.values if isinstance(v.type, Scalar))
    tiles = [v for v in op.values if not isinstance(v.type, Scalar)]
    if scalars or not tiles:
        lower.build.add(debug.Print(values=scalars, text=op.text))
    for value in tiles:
        layout = lower.layout(value)
        coordinates = tuple(lower.coordinates(layout, a) for a in range(len(layout.shape)))
        predicate = lower.both(no_padding(lower, layout, 1), lower.first_replica(layout))
        lower.build.add(
            debug.PrintTile(
                value=lower.whole(value),
                coordinates=coordinates,
                predicate=predicate,
                text=op.text if not scalars else "",
                shape=layout.shape,
            )
        )


@lowers(tile.Assert)
def assert_condition(lower: Lowering, op: tile.Assert) -> None:
    condition = lower.get(op.condition)
    predicate: Value | None = None
    if not isinstance(op.condition.type, Scalar):
        predicate = no_padding(lower, lower.layout(op.condition), 1)
    lower.build.add(debug.Assert(condition=condition, predicate=predicate, text=op.text))


@lowers(debug.Breakpoint)
def stop(lower: Lowering, op: debug.Breakpoint) -> None:
    tiles = [isinstance(v.type, Tile) for v in op.values]
    pairs = list(zip(op.values, tiles, strict=True))
    lower.build.add(
        debug.Breakpoint(
            values=tuple(lower.whole(v) if tile else lower.get(v) for v, tile in pairs),
            names=op.names,
            constants=op.constants,
            layouts=tuple(str(lower.layout(v)) if tile else "" for v, tile in pairs),
        )
    )

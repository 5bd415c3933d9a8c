"""Layouts that a kernel asks for: tiles pinned to one, and assertions about where elements lie.

Before the machine stage only; assign_layouts obeys them and check_layouts holds them against what
it found.
"""

from __future__ import annotations

from math import prod

import numpy as np

from warploom.ir.layout.layout import Layout, parse
from warploom.ir.op import Actor, Effect, Op, Stage, Value, attribute, check, op, operand, optional
from warploom.ir.ops.tile import tile_of
from warploom.ir.types import Tile, Type

_TILE = Stage.TILE | Stage.ROLES
_MOST_PADS = 64  # places of an element that are looked at


def misfit(layout: Layout, shape: tuple[int, ...]) -> str:
    """What is wrong with a layout of a tile, in words; empty where it holds every element once
    (but for digits without an axis, which replicate)."""
    if layout.shape != shape:
        return f"it is one of a tile of shape {layout.shape}"
    outside = [m for m in layout.modes if m.axis is not None and m.axis >= len(shape)]
    if outside:
        return f"the digit {outside[0]} names axis {outside[0].axis} of {len(shape)}"
    # Every combination of digits but those that replicate, and where it lies.
    own = [m for m in layout.modes if m.axis is not None]
    most = _MOST_PADS * max(prod(shape), 1)
    if prod(m.extent for m in own) > most:
        return f"it has more than {most:,} places"
    numbers = np.indices([m.extent for m in own]).reshape(len(own), -1)
    places = np.zeros(numbers.shape[1], np.int64)
    inside = np.ones(numbers.shape[1], bool)
    for axis, extent in enumerate(shape):
        at = sum(n * m.stride for n, m in zip(numbers, own, strict=True) if m.axis == axis)
        inside &= at < extent
        places = places * extent + np.minimum(at, extent - 1)
    held = places[inside]
    if len(np.unique(held)) < prod(shape):
        return f"{prod(shape) - len(np.unique(held)):,} of {prod(shape):,} elements lie nowhere"
    return "" if len(held) == prod(shape) else "some elements lie in several places"


@op("layouts.pin", stages=_TILE, executes=Actor.ROLE)
class Pin(Op):
    """The same elements in a layout, in its notation."""

    value: Value = operand()
    layout: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        held = tile_of(self.value)
        wrong = misfit(parse(self.layout), held.shape)
        check(not wrong, f"{self.layout}: {wrong}")
        return (Tile(held.dtype, held.shape),)


@op("layouts.like", stages=_TILE, executes=Actor.ROLE)
class Like(Op):
    """The same elements in the layout of another tile of their shape."""

    value: Value = operand()
    other: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        held, other = tile_of(self.value), tile_of(self.other)
        check(held.shape == other.shape, f"{held} like {other}")
        return (Tile(held.dtype, held.shape),)


@op("layouts.same", stages=_TILE, effects=(Effect.OUTSIDE,), executes=Actor.ROLE)
class Same(Op):
    """Refuse the kernel where a tile does not lie as another one does, or as a notation says."""

    value: Value = operand()
    other: Value | None = optional()
    layout: str = attribute(default="")

    def verify(self) -> None:
        check((self.other is None) == bool(self.layout), "one of a tile and a notation")

"""Layouts in the kernel: tiles pinned to one, and assertions at compile time."""

from __future__ import annotations

from typing import Any

from warploom.ir.layout.layout import LANES, Layout, parse
from warploom.ir.ops import layouts
from warploom.language import core
from warploom.language.context import Refused, acting_warps, builder, vocabulary
from warploom.language.values import Tile, need_tile


@vocabulary
def pin(tile: Tile, layout: Any) -> Tile:
    """The same elements in a layout of the kernel's choice: a notation, or another tile, whose
    layout is taken. Where `tile` could not be made in it, it is moved through shared memory.

    A notation is a list of digits, such as "l4:1*2 l8:0*1 w4:0*16 r2:1*1": of lanes (l, 32 in all),
    warps (w, all of the role) and registers (r), fastest first, each with its number of values, the
    axis that it counts on, and the elements that it counts by; `l4:_` repeats. Every element lies
    in one place, but for such repetitions; `warploom show KERNEL --level roles` prints layouts so.

    Shapes: any.
    Executes: the role.
    Since: sm_80.
    """
    held = need_tile(tile, "tile")
    if isinstance(layout, Tile):
        other = _of_one_shape(held, layout)
        return Tile(builder().emit(layouts.Like(value=held.value, other=other.value)))
    text = str(_layout(held, layout))
    return Tile(builder().emit(layouts.Pin(value=held.value, layout=text)))


@vocabulary
def assert_layout(tile: Tile, layout: Any) -> None:
    """Refuse the kernel at compile time unless a tile lies as a notation says (see `wl.pin`), or as
    another tile does. Costs nothing.

    Shapes: any.
    Executes: nothing.
    Since: sm_80.
    """
    held = need_tile(tile, "tile")
    if isinstance(layout, Tile):
        other = _of_one_shape(held, layout).value
        builder().add(layouts.Same(value=held.value, other=other))
    else:
        builder().add(layouts.Same(value=held.value, other=None, layout=str(_layout(held, layout))))


def _of_one_shape(tile: Tile, other: Tile) -> Tile:
    if tile.shape != other.shape:
        raise Refused(
            "T005",
            f"a tile of shape {core.shape_text(tile.shape)} cannot lie as one of shape "
            f"{core.shape_text(other.shape)}",
            argument="layout",
        )
    return other


def _layout(tile: Tile, notation: Any) -> Layout:
    """The layout of a notation, of the tile's shape and the role's warps."""
    if not isinstance(notation, str):
        raise Refused("T015", "a layout is a notation or a tile", argument="layout")
    shape, warps = "x".join(map(str, tile.shape)), acting_warps()
    digits = notation.strip()
    text = digits if digits.startswith("(") else f"({shape}; {digits})"
    try:
        made = parse(text)
        wrong = layouts.misfit(made, tile.shape)
    except ValueError as complaint:
        made, wrong = None, str(complaint)
    if made is not None and not wrong and made.warps != warps:
        wrong = f"its digits of warps multiply to {made.warps}, and {warps} warps act here"
    if made is None or wrong:
        raise Refused(
            "L026",
            f"this is no layout of a tile of shape {core.shape_text(tile.shape)}",
            argument="layout",
            notes=(wrong,),
            hint=f"digits such as l{LANES}:0*1 of lanes, w{warps}:… of warps and r…:… of registers",
        )
    return made

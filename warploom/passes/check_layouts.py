"""Holds what a kernel says of layouts against those that its tiles have got."""

from __future__ import annotations

from warploom.base.errors import Error, error
from warploom.base.target import Target
from warploom.ir.kernel import Kernel, walk
from warploom.ir.layout.layout import Layout, parse
from warploom.ir.op import Op, Value
from warploom.ir.ops import layouts
from warploom.ir.ops.tile import tile_of


def check_layouts(kernel: Kernel, target: Target) -> None:
    """Refuse a tile that could not be pinned, and an assertion that does not hold.

    Needs: a layout at every tile. Gives: nothing new. Raises CompileError L026, L027.
    """
    for op in walk(kernel.body):
        if isinstance(op, layouts.Pin) and _of(op.result) != parse(op.layout):
            raise _not_pinned(op)
        if isinstance(op, layouts.Same):
            wanted = parse(op.layout) if op.other is None else _of(op.other)
            if _of(op.value) != wanted:
                raise _differs(op, wanted)


def _of(value: Value) -> Layout:
    layout = tile_of(value).layout
    assert layout is not None
    return layout


def _not_pinned(op: layouts.Pin) -> Error:
    return error(
        "L026",
        f"{_name(op.value)} cannot be pinned here: it is combined with tiles of another layout",
        op.loc,
        label=f"pinned to {op.layout}",
        notes=(f"what it is combined with lies as {_of(op.result)}",),
        hint="pin the result of what combines them, or the others too",
    )


def _differs(op: layouts.Same, wanted: Layout) -> Error:
    named = "" if op.other is None else f", as {_name(op.other)} does"
    return error(
        "L027",
        f"{_name(op.value)} does not lie as is asserted",
        op.loc,
        notes=(f"it lies as {_of(op.value)}", f"asserted is {wanted}{named}"),
        hint="pin it: `t = wl.pin(t, …)`",
    )


def _name(value: Value) -> str:
    """A tile in words."""
    owner = value.owner
    name = value.name or (owner.OPCODE if isinstance(owner, Op) else "")
    return f"`{name}`" if value.name else f"this {tile_of(value).dtype} tile"

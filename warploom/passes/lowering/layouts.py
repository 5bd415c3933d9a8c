"""Layouts that a kernel asked for: by now every tile lies as it shall."""

from __future__ import annotations

from warploom.ir.ops import layouts
from warploom.passes.lowering.context import Lowering, lowers


@lowers(layouts.Pin, layouts.Like)
def pin(lower: Lowering, op: layouts.Pin | layouts.Like) -> None:
    lower.put(op.result, lower.get(op.value))


@lowers(layouts.Same)
def same(lower: Lowering, op: layouts.Same) -> None:
    """check_layouts has seen to it."""

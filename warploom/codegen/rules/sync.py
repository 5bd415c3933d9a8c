"""Barriers of a role and of a warp; the hazard that each settles stands beside it."""

from __future__ import annotations

from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter
from warploom.ir.ops import sync as ops


@emits(ops.Barrier)
def barrier(out: Emitter, op: ops.Barrier) -> None:
    out.prelude.use("bar_sync")
    out.lines.add(f"bar_sync<{op.id}, {op.threads}>();{_why(op.why)}")


@emits(ops.WarpSync)
def warp_sync(out: Emitter, op: ops.WarpSync) -> None:
    out.prelude.use("bar_warp_sync")
    out.lines.add(f"bar_warp_sync();{_why(op.why)}")


def _why(text: str) -> str:
    # A backslash at the end would join the next line to the comment.
    plain = " ".join(text.replace("\\", "/").split())
    return f"  // {plain}" if plain else ""

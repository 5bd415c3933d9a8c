"""Barriers of a role and of a warp, fences; the hazard that each settles stands beside it."""

from __future__ import annotations

from warploom.codegen import async_helpers
from warploom.codegen.lines import comment
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter
from warploom.ir.ops import sync as ops


@emits(ops.Barrier)
def barrier(out: Emitter, op: ops.Barrier) -> None:
    if op.per_replica and out.warps.replicas > 1:
        out.prelude.use("bar_sync_at")
        number = f"{op.id} + {out.warps.replica}"
        out.lines.add(f"bar_sync_at<{op.threads}>({number});{comment(op.why)}")
        return
    out.prelude.use("bar_sync")
    out.lines.add(f"bar_sync<{op.id}, {op.threads}>();{comment(op.why)}")


@emits(ops.Agree)
def agree(out: Emitter, op: ops.Agree) -> None:
    if op.threads == 32:
        out.prelude.use("vote_all")
        out.elementwise(op.result, (op.condition,), lambda x: f"vote_all({x})", "agreed")
        return
    out.prelude.use("bar_all")
    number = f"{op.id} + {out.warps.replica}" if op.per_replica else str(op.id)
    call = f"bar_all({number}, {op.threads}, {{}})"
    out.elementwise(op.result, (op.condition,), call.format, "agreed")


@emits(ops.Arrive)
def arrive(out: Emitter, op: ops.Arrive) -> None:
    out.prelude.use("bar_arrive")
    out.lines.add(f"bar_arrive<{op.id}, {op.threads}>();")


@emits(ops.WarpSync)
def warp_sync(out: Emitter, op: ops.WarpSync) -> None:
    out.prelude.use("bar_warp_sync")
    out.lines.add(f"bar_warp_sync();{comment(op.why)}")


@emits(ops.FenceAsync)
def fence_async(out: Emitter, op: ops.FenceAsync) -> None:
    name = "fence_async" if op.space == "shared" else f"fence_async_{op.space}"
    out.lines.add(f"{async_helpers.use(out.prelude, name)}();{comment(op.why)}")


@emits(ops.Fence)
def fence(out: Emitter, op: ops.Fence) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, f'fence_{op.scope}')}();")


@emits(ops.FenceBarrierInit)
def fence_barrier_init(out: Emitter, op: ops.FenceBarrierInit) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, 'fence_barrier_init')}();")

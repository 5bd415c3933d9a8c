"""Places and barriers of a cluster: one helper an operation and order."""

from __future__ import annotations

from warploom.codegen import async_helpers
from warploom.codegen.lines import comment
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter
from warploom.ir.ops import cluster as ops


@emits(ops.Rank)
def rank(out: Emitter, op: ops.Rank) -> None:
    name = async_helpers.use(out.prelude, "cluster_rank")
    out.elementwise(op.result, (), lambda: f"{name}()", "rank")


@emits(ops.Address)
def address(out: Emitter, op: ops.Address) -> None:
    name = async_helpers.use(out.prelude, "cluster_address")
    values = (op.address, op.rank)
    out.elementwise(op.result, values, lambda at, rank: f"{name}({at}, {rank})", "there")


@emits(ops.Arrive)
def arrive(out: Emitter, op: ops.Arrive) -> None:
    form = "cluster_arrive_release" if op.ordered else "cluster_arrive"
    name = async_helpers.use(out.prelude, form)
    out.lines.add(f"{name}({out.scalar(op.barrier)}, {op.count});")


@emits(ops.Sync)
def sync(out: Emitter, op: ops.Sync) -> None:
    form = "cluster_sync" if op.ordered else "cluster_sync_relaxed"
    name = async_helpers.use(out.prelude, form)
    out.lines.add(f"{name}();{comment(op.why)}")

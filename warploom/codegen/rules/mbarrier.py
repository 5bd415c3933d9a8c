"""mbarriers by their address in shared memory. Waiting is a loop inside one asm, so that the
compiler cannot take it apart."""

from __future__ import annotations

from warploom.codegen import async_helpers
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter
from warploom.ir.ops import mbarrier as ops


@emits(ops.Init)
def init(out: Emitter, op: ops.Init) -> None:
    name = async_helpers.use(out.prelude, "mbarrier_init")
    out.lines.add(f"{name}({out.scalar(op.barrier)}, {op.arrivals});")


@emits(ops.Arrive)
def arrive(out: Emitter, op: ops.Arrive) -> None:
    name = async_helpers.use(out.prelude, "mbarrier_arrive")
    out.lines.add(f"{name}({out.scalar(op.barrier)}, {op.count});")


@emits(ops.Expect)
def expect(out: Emitter, op: ops.Expect) -> None:
    name = async_helpers.use(out.prelude, "mbarrier_expect")
    out.lines.add(f"{name}({out.scalar(op.barrier)}, {op.bytes});")


@emits(ops.Wait)
def wait(out: Emitter, op: ops.Wait) -> None:
    name = async_helpers.use(out.prelude, f"mbarrier_wait{_scope(op)}")
    out.lines.add(f"{name}({out.scalar(op.barrier)}, {out.scalar(op.parity)});")


@emits(ops.Test)
def test(out: Emitter, op: ops.Test) -> None:
    name = async_helpers.use(out.prelude, f"mbarrier_test{_scope(op)}")
    out.elementwise(op.result, (op.barrier, op.parity), lambda at, p: f"{name}({at}, {p})", "done")


def _scope(op: ops.Wait | ops.Test) -> str:
    return "_cluster" if op.scope == "cluster" else ""

"""Structured control flow and the copies of carried values that assign_storage has placed."""

from __future__ import annotations

from warploom.codegen import async_helpers
from warploom.codegen.expressions import positive_literal
from warploom.codegen.places import Place
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, Fault, dtype_of
from warploom.ir.op import Block, Value
from warploom.ir.ops import control as ops


@emits(ops.For)
def loop(out: Emitter, op: ops.For) -> None:
    index, *carried = op.body.args
    for arg, result in zip(carried, op.results, strict=True):
        if arg.storage != result.storage:
            raise Fault(f"{arg} and {result} of one loop stand in two storages")
    _check_carried(op.body, op.results)
    lo, hi, step = out.scalar(op.lo), _kept(out, op.hi, "hi"), _kept(out, op.step, "step")
    name = out.names.take(index.name or "i")
    out.places[index] = Place.expression(name)
    if positive_literal(step) is not None:
        condition = f"{name} < {hi}"
    elif step.startswith("(-"):
        condition = f"{name} > {hi}"
    else:
        # A step of 0, which the simulator reports, makes no turn: better than a GPU that hangs.
        condition = f"{step} > 0 ? {name} < {hi} : {step} < 0 && {name} > {hi}"
    head = f"for ({out.type(dtype_of(index))} {name} = {lo}; {condition}; {name} += {step})"
    if op.unroll == 1:
        out.prelude.use("NOUNROLL")
        head = f"NOUNROLL {head}"
    else:
        out.lines.add(f"#pragma unroll {op.unroll}")
    with out.lines.braces(head):
        out.block(op.body)


@emits(ops.While)
def while_loop(out: Emitter, op: ops.While) -> None:
    for arg, result in zip(op.carried, op.results, strict=True):
        if arg.storage != result.storage:
            raise Fault(f"{arg} and {result} of one loop stand in two storages")
    _check_carried(op.body, op.results)
    out.prelude.use("NOUNROLL")
    with out.lines.braces(f"NOUNROLL while ({out.scalar(op.carried[0])})"):
        out.block(op.body)


def _kept(out: Emitter, bound: Value, hint: str) -> str:
    """A loop bound as it is before the loop, which may overwrite the storage it stands in."""
    place = out.place(bound)
    if not place.mutable:
        return place.only
    name = out.names.take(hint)
    out.lines.add(f"{out.type(dtype_of(bound))} {name} = {place.only};")
    return name


@emits(ops.If)
def branch(out: Emitter, op: ops.If) -> None:
    for block in (op.then, op.orelse):
        _check_carried(block, op.results)
    with out.lines.braces(f"if ({out.scalar(op.condition)})"):
        out.block(op.then)
    if len(op.orelse.ops) > 1:
        with out.lines.braces("else"):
            out.block(op.orelse)


@emits(ops.OneThread)
def one_thread(out: Emitter, op: ops.OneThread) -> None:
    out.prelude.use("bar_warp_sync")
    out.lines.add("bar_warp_sync();")
    first = op.per == "role" and out.warps.count > 1
    head = f"{out.warps.within} == 0 && " if first else ""
    with out.lines.braces(f"if ({head}{async_helpers.use(out.prelude, 'elected')}())"):
        out.alone = True
        out.block(op.body)
        out.alone = False


@emits(ops.Yield)
def end(out: Emitter, op: ops.Yield) -> None:
    """The copies before a yield move the values; the yield itself prints nothing."""


@emits(ops.Declare)
def declare(out: Emitter, op: ops.Declare) -> None:
    out.declare_storage(op.result)


@emits(ops.Assign)
def assign(out: Emitter, op: ops.Assign) -> None:
    source, target = out.place(op.source), out.assigned(op.target)
    found = out.walk(target.extents, target, source)
    to, register = found.registers
    if source.root == target.root and to != register:
        raise Fault(f"storage {target.root} is read after it is overwritten")
    out.lines.add(f"{found.header}{to} = {register};")


@emits(ops.Duplicate)
def duplicate(out: Emitter, op: ops.Duplicate) -> None:
    out.elementwise(op.result, (op.value,), lambda x: x, "old")


def _check_carried(block: Block, results: tuple[Value, ...]) -> None:
    """A yielded value must reach the storage of its result: it stands there, or is copied."""
    copied = {op.target.storage for op in block.ops if isinstance(op, ops.Assign)}
    for value, result in zip(block.ops[-1].operand_values(), results, strict=True):
        if value.storage != result.storage and result.storage not in copied:
            raise Fault(f"{value} is yielded as {result}, but nothing moves it there")

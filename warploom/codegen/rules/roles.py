"""Roles: one branch each on the number of the warp in the block."""

from __future__ import annotations

from warploom.codegen import async_helpers
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, Fault, Warps
from warploom.ir.ops import roles as ops


@emits(ops.Split)
def split(out: Emitter, op: ops.Split) -> None:
    name = out.names.take("warp")
    out.lines.add(f"const int {name} = {async_helpers.use(out.prelude, 'warp_of_block')}();")
    outer = out.warps
    fields = zip(op.names, op.first, op.warps, op.replicas, op.bodies, strict=True)
    for number, (role, first, warps, replicas, body) in enumerate(fields):
        if first < 0 or first + warps * replicas > out.kernel.warps:
            raise Fault(f"role {role} has no place among the {out.kernel.warps} warps")
        out.warps = Warps(name, first, warps, replicas)
        word = "else if" if number else "if"
        with out.lines.braces(f"{word} ({_inside(out)})", _comment(role, warps, replicas)):
            out.block(body)
    out.warps = outer


def _inside(out: Emitter) -> str:
    """Whether a warp belongs to the role."""
    warps = out.warps
    end = warps.first + warps.count * warps.replicas
    if end - warps.first == 1:
        return f"{warps.block_warp} == {warps.first}"
    tests = [f"{warps.block_warp} >= {warps.first}"] if warps.first else []
    tests += [f"{warps.block_warp} < {end}"] if end < out.kernel.warps or not tests else []
    return " && ".join(tests)


def _comment(role: str, warps: int, replicas: int) -> str:
    size = f"{warps} warp{'s' if warps > 1 else ''}"
    return f"role {role}: " + (f"{replicas} replicas of {size}" if replicas > 1 else size)


@emits(ops.Replica)
def replica(out: Emitter, op: ops.Replica) -> None:
    out.elementwise(op.result, (), lambda: out.warps.replica, "replica")


@emits(ops.SetRegisters)
def set_registers(out: Emitter, op: ops.SetRegisters) -> None:
    name = async_helpers.use(out.prelude, "setmaxnreg_inc" if op.grow else "setmaxnreg_dec")
    out.lines.add(f"{name}<{op.count}>();")

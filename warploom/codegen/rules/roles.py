"""Roles: one branch each on the number of the warp in the block.

Small roles share warpgroups, and a warpgroup changes its registers by one instruction of all its
warps: so it stands before their branches.
"""

from __future__ import annotations

from collections.abc import Sequence

from warploom.codegen import async_helpers
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, Fault, Warps
from warploom.ir.ops import roles as ops

_WARPGROUP = 4  # warps


def shared_registers(split: ops.Split) -> list[ops.SetRegisters]:
    """The changes of registers that small roles make together, one an operation of each role."""
    found = [
        op
        for warps, body in zip(split.warps, split.bodies, strict=True)
        for op in body.ops
        if warps % _WARPGROUP and isinstance(op, ops.SetRegisters)
    ]
    small = sum(1 for warps in split.warps if warps % _WARPGROUP)
    if found and (len(found) != small or len({(op.count, op.grow) for op in found}) > 1):
        raise Fault("roles that share a warpgroup change its registers differently")
    return found


@emits(ops.Split)
def split(out: Emitter, op: ops.Split) -> None:
    name = out.names.take("warp")
    out.lines.add(f"const int {name} = {async_helpers.use(out.prelude, 'warp_of_block')}();")
    outer = out.warps
    ends = []
    for number, role in enumerate(op.names):
        first, end = op.first[number], op.first[number] + op.warps[number] * op.replicas[number]
        if first < 0 or end > out.kernel.warps:
            raise Fault(f"role {role} has no place among the {out.kernel.warps} warps")
        ends.append(end)
    numbers = range(len(op.names))
    together = shared_registers(op)
    small = [i for i in numbers if op.warps[i] % _WARPGROUP] if len(together) > 1 else []
    _branches(out, op, name, [i for i in numbers if i not in small], "if")
    if small:
        first, end = min(op.first[i] for i in small), max(ends[i] for i in small)
        word = "else if" if len(small) < len(op.names) else "if"
        names = ", ".join(op.names[i] for i in small)
        with out.lines.braces(f"{word} ({_inside(out, name, first, end)})", f"roles {names}"):
            set_registers(out, together[0])
            out.printed.update(together)
            _branches(out, op, name, small, "if")
    out.warps = outer


def _branches(out: Emitter, op: ops.Split, name: str, numbers: Sequence[int], word: str) -> None:
    for number in numbers:
        first, warps, replicas = op.first[number], op.warps[number], op.replicas[number]
        out.warps = Warps(name, first, warps, replicas)
        size = f"{warps} warp{'s' if warps > 1 else ''}"
        size = f"{replicas} replicas of {size}" if replicas > 1 else size
        condition = _inside(out, name, first, first + warps * replicas)
        with out.lines.braces(f"{word} ({condition})", f"role {op.names[number]}: {size}"):
            out.block(op.bodies[number])
        word = "else if"


def _inside(out: Emitter, name: str, first: int, end: int) -> str:
    """Whether a warp is one of first … end-1."""
    if end - first == 1:
        return f"{name} == {first}"
    tests = [f"{name} >= {first}"] if first else []
    tests += [f"{name} < {end}"] if end < out.kernel.warps or not tests else []
    return " && ".join(tests)


@emits(ops.Replica)
def replica(out: Emitter, op: ops.Replica) -> None:
    out.elementwise(op.result, (), lambda: out.warps.replica, "replica")


@emits(ops.SetRegisters)
def set_registers(out: Emitter, op: ops.SetRegisters) -> None:
    if op in out.printed:
        return
    name = async_helpers.use(out.prelude, "setmaxnreg_inc" if op.grow else "setmaxnreg_dec")
    out.lines.add(f"{name}<{op.count}>();")

"""Lane and warp numbers, their digits, constants over registers."""

from __future__ import annotations

from warploom.base.dtypes import i32
from warploom.codegen.c_types import literal
from warploom.codegen.places import Place
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, extents_of
from warploom.ir.ops import index as ops


@emits(ops.Lane)
def lane(out: Emitter, op: ops.Lane) -> None:
    out.elementwise(op.result, (), lambda: "(int)(threadIdx.x % 32)", "lane")


@emits(ops.Warp)
def warp(out: Emitter, op: ops.Warp) -> None:
    out.elementwise(op.result, (), lambda: out.warps.within, "warp")


@emits(ops.Digit)
def digit(out: Emitter, op: ops.Digit) -> None:
    def text(x: str) -> str:
        # Lane and warp numbers are never negative, so C++ division is the one that is meant.
        divided = f"{x} / {op.divisor}" if op.divisor > 1 else x
        return f"{divided} % {op.extent}" if op.extent else divided

    out.elementwise(op.result, (op.value,), text, "digit")


@emits(ops.Constants)
def constants(out: Emitter, op: ops.Constants) -> None:
    if len(op.numbers) == 1:
        place = Place.expression(literal(op.numbers[0], i32), extents_of(op.result))
        out.alias(op.result, place)
        return
    _, declaration = out.declare(op.result, "at")
    numbers = ", ".join(str(n) for n in op.numbers)
    out.lines.add(f"{declaration.rstrip('; ')} = {{{numbers}}};")

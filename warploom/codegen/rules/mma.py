"""Products of single warps: the registers of one step, two 16-bit numbers a word."""

from __future__ import annotations

from warploom.codegen import product_helpers
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, dtype_of
from warploom.ir.op import Value
from warploom.ir.ops import mma as ops


@emits(ops.Multiply)
def multiply(out: Emitter, op: ops.Multiply) -> None:
    name = product_helpers.multiply_in_warp(out.prelude, dtype_of(op.a), dtype_of(op.b))
    a, b = _words(out, op.a, op.step, ops.LEFT), _words(out, op.b, op.step, ops.RIGHT)
    acc = out.place(op.acc)
    sums = [acc.at(str(acc.offset + e * acc.strides[1])) for e in range(ops.SUMS)]
    result = out.declare_only(op.result, "sums")
    out.lines.add(f"{name}({result.root}, {', '.join((*a, *b, *sums))});")


def _words(out: Emitter, value: Value, step: int, count: int) -> list[str]:
    """The elements of one step, first lowest in a word."""
    word = product_helpers.word(out.prelude, dtype_of(value))
    place = out.place(value)
    first = place.offset + step * place.strides[0]
    held = [place.at(str(first + e * place.strides[1])) for e in range(count)]
    return [f"{word}({held[e]}, {held[e + 1]})" for e in range(0, count, 2)]

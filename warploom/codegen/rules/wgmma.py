"""Products of the matrix unit, on one C array that every operation of a chain updates in place."""

from __future__ import annotations

from math import prod

from warploom.codegen import async_helpers, product_helpers
from warploom.codegen.places import Place
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, Fault, dtype_of, extents_of
from warploom.ir.op import Value
from warploom.ir.ops import wgmma as ops

# The two last bits of a matrix descriptor, by the span of the swizzle in bytes.
_SWIZZLE = {0: 0, 128: 1, 64: 2, 32: 3}


@emits(ops.Fence)
def fence(out: Emitter, op: ops.Fence) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, 'wgmma_fence')}();")


@emits(ops.Mma)
def multiply(out: Emitter, op: ops.Mma) -> None:
    rows = _accumulator_rows(out, op)
    name = product_helpers.multiply(
        out.prelude, (op.a_dtype, op.b_dtype), op.n, (op.a_transposed, op.b_transposed), op.fresh
    )
    a = _matrix(out, op.a, op.a_swizzle, op.a_lead, op.a_stride)
    b = _matrix(out, op.b, op.b_swizzle, op.b_lead, op.b_stride)
    out.lines.add(f"{name}({', '.join(rows)}, {a}, {b});")


@emits(ops.MmaRegisters)
def multiply_registers(out: Emitter, op: ops.MmaRegisters) -> None:
    """The fragment is four words: upper and lower row of the left columns, then of the right."""
    rows = _accumulator_rows(out, op)
    name = product_helpers.multiply(
        out.prelude, (op.a_dtype, op.b_dtype), op.n, (None, op.b_transposed), op.fresh
    )
    word = product_helpers.word(out.prelude, op.a_dtype)
    place = out.place(op.a)
    words = []
    for side in (0, 1):
        for half in (0, 1):
            first = place.offset + (2 * op.block + half) * place.strides[0]
            columns = [(2 * op.step + side) * op.run + e for e in range(op.run)]
            held = [place.at(str(first + c * place.strides[1])) for c in columns]
            words.append(f"{word}({', '.join(held)})")
    b = _matrix(out, op.b, op.b_swizzle, op.b_lead, op.b_stride)
    out.lines.add(f"{name}({', '.join((*rows, *words))}, {b});")


def _accumulator_rows(out: Emitter, op: ops.Mma | ops.MmaRegisters) -> list[str]:
    """The first register of each of the two rows that an instruction updates."""
    place = _in_place(out, op.acc, op.result)
    return [f"&{place.at(str((2 * op.block + half) * place.strides[0]))}" for half in (0, 1)]


@emits(ops.Commit)
def commit(out: Emitter, op: ops.Commit) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, 'wgmma_commit')}();")


@emits(ops.WaitGroup)
def wait_group(out: Emitter, op: ops.WaitGroup) -> None:
    place = _in_place(out, op.acc, op.result)
    name = product_helpers.wait_group(out.prelude, dtype_of(op.acc), prod(place.extents))
    out.lines.add(f"{name}<{op.pending}>({place.root});")


@emits(ops.Drain)
def drain(out: Emitter, op: ops.Drain) -> None:
    out.lines.add(f"{async_helpers.use(out.prelude, 'wgmma_wait')}<{op.pending}>();")


def _in_place(out: Emitter, acc: Value, result: Value) -> Place:
    """The array that an accumulator and its successor share, whole and row by row."""
    place = out.place(acc)
    if not result.storage or acc.storage != result.storage:
        raise Fault(f"{acc} and {result} of one product stand in two storages")
    out.overwrite(acc, result)
    return Place.of(place.root, extents_of(acc))


def _matrix(out: Emitter, address: Value, swizzle: int, lead: int, stride: int) -> str:
    """A matrix descriptor: what does not change is one constant."""
    for what, number in (("lead", lead), ("stride", stride)):
        if number % 16 or not 0 <= number < 1 << 18:
            raise Fault(f"a matrix {what} of {number} bytes")
    shape = (lead >> 4) << 16 | (stride >> 4) << 32 | _SWIZZLE[swizzle] << 62
    return f"{async_helpers.use(out.prelude, 'matrix')}<0x{shape:x}ull>({out.scalar(address)})"

"""Every machine operation × dtype compiles on every architecture, without a driver."""

from __future__ import annotations

import pytest

from warploom.base.dtypes import ALL, DType, boolean, f32, i32
from warploom.base.target import TARGETS, Target
from warploom.codegen.access_helpers import words_of
from warploom.codegen.emitter import emit, emits
from warploom.ir.op import Complaint
from warploom.ir.ops import global_memory, lanes, registers, scalar, shared_memory
from warploom.ir.ops.arithmetic import ARG_FOLD, BINARY, COMPARE, FOLD, UNARY
from warploom.ir.types import Regs, Scalar
from warploom.runtime.nvrtc import compile_cubin

DTYPES = [pytest.param(t, id=t.name) for t in ALL]
# 8-bit floats begin with a later architecture.
HELD = [
    pytest.param(target, dtype, id=f"{target.arch}-{dtype.name}")
    for target in TARGETS.values()
    for dtype in ALL
    if target.has_dtype(dtype)
]


def test_every_machine_operation_has_a_rule():
    assert emits.missing() == []


def legal(m, op):
    """Append an operation unless its declaration refuses these dtypes."""
    try:
        return m.build.add(op).results
    except Complaint:
        return ()


def register_operations(m, dtype: DType, target: Target, x, y) -> list:
    """Results of all register-wise operations that exist for a dtype on a target."""
    found = []
    for kind in BINARY:
        found += legal(m, registers.Binary(lhs=x, rhs=y, kind=kind))
    for kind in UNARY:
        found += legal(m, registers.Unary(value=x, kind=kind))
    for kind in COMPARE:
        found += legal(m, registers.Compare(lhs=x, rhs=y, kind=kind))
    for kind in FOLD:
        if dtype.is_bool == (kind in ("and", "or")):
            found += legal(m, registers.Fold(value=x, axis=0, kind=kind))
    at = m.offsets(4)
    for kind in ARG_FOLD:
        if not dtype.is_bool:
            found += legal(m, registers.ArgFold(value=x, index=at, axis=0, kind=kind))
    if dtype == f32:
        found += legal(m, registers.Fma(a=x, b=y, c=x))
    for other in filter(target.has_dtype, ALL):
        found += legal(m, registers.Cast(value=x, dtype=other))
    found += legal(m, lanes.ShuffleXor(value=x, mask=16))
    found += legal(m, lanes.Shuffle(value=x, lane=at))
    found += legal(m, lanes.Ballot(value=x))
    chosen = m.build.emit(registers.Compare(lhs=at, rhs=m.splat(2, i32), kind="lt"))
    found += legal(m, registers.Select(condition=chosen, yes=x, no=y))
    return found


def keep(m, values) -> None:
    """Store every value, so that none is dropped."""
    for number, value in enumerate(values):
        out = m.tensor(f"out{number}", value.type.dtype)
        m.store(out, value)


@pytest.mark.parametrize(("target", "dtype"), HELD)
def test_register_operations_compile(machine, target, dtype):
    m = machine
    x, y = m.load(m.tensor("a", dtype)), m.load(m.tensor("b", dtype))
    found = register_operations(m, dtype, target, x, y)
    assert len(found) >= (17 if dtype.is_f8 else 20)
    keep(m, found)
    assert compile_cubin(emit(m.kernel(), target), target, line_info=False).registers


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalar_operations_compile(machine, dtype):
    m, b = machine, machine.build
    x, y = m.parameter("a", Scalar(dtype)), m.parameter("b", Scalar(dtype))
    found = []
    for kind in BINARY:
        found += legal(m, scalar.Binary(lhs=x, rhs=y, kind=kind))
        found += legal(m, scalar.Binary(lhs=x, rhs=b.const(1, dtype), kind=kind))
        found += legal(m, scalar.Binary(lhs=b.const(1, dtype), rhs=y, kind=kind))
    for kind in UNARY:
        found += legal(m, scalar.Unary(value=x, kind=kind))
    for kind in COMPARE:
        found += legal(m, scalar.Compare(lhs=x, rhs=y, kind=kind))
    for other in ALL:
        found += legal(m, scalar.Cast(value=x, dtype=other))
    equal = b.emit(scalar.Compare(lhs=b.const(1), rhs=b.const(2), kind="eq"))
    found += legal(m, scalar.Select(condition=equal, yes=x, no=y))
    keep(m, [b.emit(registers.Splat(value=v, rank=1)) for v in found])
    target = TARGETS["sm_90a"]
    assert compile_cubin(emit(m.kernel(), target), target, line_info=False).registers


@pytest.mark.parametrize("dtype", DTYPES)
def test_accesses_compile_at_every_width(machine, dtype):
    m, b = machine, machine.build
    m.shared_bytes = 4096
    buffer = b.add(shared_memory.BufferOp(dtype=dtype, elements=256, at=0), "buffer").result
    source, out = m.tensor("source", dtype), m.tensor("out", dtype)
    zero = b.const(0)
    first = b.emit(registers.Compare(lhs=m.offsets(1, 1), rhs=m.splat(3, i32), kind="lt"))
    other = b.const(1, dtype)
    m.written.append(1)
    for vec in (1, 2, 4, 8, 16):
        try:
            words_of(dtype, vec)
        except ValueError:
            continue
        at = m.offsets(vec, vec)
        tiles = []
        for guard in ({}, {"predicate": first}, {"predicate": first, "other": other}):
            for read_only, cache in ((False, ""), (True, "no_allocate"), (True, "")):
                load = global_memory.Load(
                    tensor=source,
                    base=zero,
                    offset=at,
                    vec=vec,
                    read_only=read_only,
                    cache=cache,
                    **guard,
                )
                tiles.append(b.emit(load, "tile"))
        for tile in tiles:
            for guard in ({}, {"predicate": first}):
                store = shared_memory.Store(buffer=buffer, value=tile, offset=at, vec=vec, **guard)
                b.add(store)
                back = b.emit(shared_memory.Load(buffer=buffer, offset=at, vec=vec, **guard))
                store = global_memory.Store(
                    tensor=out,
                    value=back,
                    base=zero,
                    offset=at,
                    vec=vec,
                    cache="evict_first",
                    **guard,
                )
                b.add(store)
    target = TARGETS["sm_80"]
    assert compile_cubin(emit(m.kernel(), target), target, line_info=False).registers


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_compile(machine, dtype):
    m, b = machine, machine.build
    x = m.load(m.tensor("a", dtype), 8)
    flat = b.emit(registers.View(value=x, axes=(-1, 0)))
    wide = b.emit(registers.Spread(value=flat, extents=(2, 8)))
    turned = b.emit(registers.View(value=wide, axes=(1, 0)))
    part = b.emit(registers.Slice(value=turned, axis=0, start=3, size=4))
    both = b.emit(registers.Cat(values=(part, part), axis=1))
    row = b.emit(registers.Slice(value=both, axis=1, start=1, size=1))
    line = b.emit(registers.View(value=row, axes=(0,)))
    one = b.emit(registers.Slice(value=line, axis=0, start=0, size=1))
    number = b.emit(registers.ToScalar(value=one))
    again = b.emit(registers.Splat(value=number, rank=1))
    assert isinstance(line.type, Regs) and line.type.extents == (4,)
    keep(m, [line, again])
    target = TARGETS["sm_90a"]
    assert compile_cubin(emit(m.kernel(), target), target, line_info=False).registers


def test_bool_is_the_only_dtype_with_another_type_in_memory(machine):
    m = machine
    m.store(m.tensor("out", boolean), m.load(m.tensor("a", boolean), 2))
    text = emit(m.kernel(), TARGETS["sm_90a"]).text
    assert "const unsigned char* a" in text and "bool x[2];" in text

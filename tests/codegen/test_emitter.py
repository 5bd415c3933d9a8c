"""Emitted texts: whole kernels as goldens, and the rules that a golden would not explain."""

from __future__ import annotations

import re

import pytest

from warploom.base.dtypes import bf16, boolean, f32, i32, i64
from warploom.base.target import SM_90A
from warploom.codegen.emitter import Fault, emit
from warploom.ir.op import Block, Stage, Value
from warploom.ir.ops import (
    control,
    debug,
    global_memory,
    index,
    lanes,
    registers,
    scalar,
    shared_memory,
    sync,
)
from warploom.ir.types import Regs, Scalar, Uniformity
from warploom.runtime.nvrtc import compile_cubin


def declare(m, name, type_, storage):
    made = control.Declare(type=type_)
    made.results = (Value(type_, name),)
    made.result.owner = made
    made.result.storage = storage
    return m.build.add(made).result


def loop(m, lo, hi, step, carried, name="k", unroll=1):
    """A `for` whose carried values stand in declared storages; returns it and its arguments."""
    number = Value(Scalar(i32), name)
    args = tuple(Value(target.type, target.name) for target in carried)
    for arg, target in zip(args, carried, strict=True):
        arg.storage = target.storage
    made = control.For(
        lo=lo, hi=hi, step=step, inits=carried, unroll=unroll, body=Block((number, *args))
    )
    made.results = tuple(Value(t.type, t.name) for t in carried)
    for result, target in zip(made.results, carried, strict=True):
        result.owner = made
        result.storage = target.storage
    return made, number, args


def matvec(m):
    """acc[r] += w·x over k, then a butterfly: loads in a loop, casts, a map, a fold, shuffles."""
    w = m.tensor("w", bf16, "n1")
    x = m.tensor("x", f32)
    y = m.tensor("y", f32)
    b = m.build
    m.at_line(12)
    zero = m.splat(0.0, f32, (8,))
    acc = declare(m, "acc", zero.type, "acc_s0")
    b.add(control.Assign(source=zero, target=acc))
    lane = b.emit(index.Lane(rank=1), "lane")
    at = b.emit(registers.Binary(lhs=lane, rhs=m.splat(8, i32), kind="mul"), "at")
    steps = m.constants((0, 4))
    x_at = b.emit(registers.Binary(lhs=at, rhs=steps, kind="add"), "x_at")
    row = b.emit(scalar.BlockId(axis=0), "n")
    n1 = b.emit(scalar.Dim(tensor=w, axis=1))
    pitch = b.emit(scalar.Stride(tensor=w, axis=0))
    base = b.emit(scalar.Binary(lhs=row, rhs=pitch, kind="mul"), "w_base")
    m.at_line(13)
    made, k, (carried,) = loop(m, b.const(0), n1, b.const(256), (acc,))
    with b.inside(made.body):
        m.at_line(14)
        here = b.emit(scalar.Binary(lhs=base, rhs=k, kind="add"))
        left = b.emit(scalar.Binary(lhs=n1, rhs=k, kind="sub"))
        limit = b.emit(registers.Splat(value=left, rank=1))
        ok = b.emit(registers.Compare(lhs=at, rhs=limit, kind="lt"), "w_in")
        load = global_memory.Load(
            tensor=w, base=here, offset=at, predicate=ok, vec=8, read_only=True
        )
        wt = b.emit(load, "wt")
        load = global_memory.Load(
            tensor=x, base=k, offset=x_at, predicate=ok, vec=4, read_only=True
        )
        xt = b.emit(load, "xt")
        m.at_line(15)
        wide = Value(Regs(f32, (8,)), "wide")
        cast = registers.Cast(value=wt, dtype=f32, loc=b.loc, results=(wide,))
        total = Value(Regs(f32, (8,)), "acc")
        fma = registers.Fma(a=wide, b=xt, c=carried, loc=b.loc, results=(total,))
        wide.owner, total.owner = cast, fma
        body = Block((), [cast, fma, control.Yield(values=(total,))])
        sum_ = b.add(registers.Map(extents=(8,), body=body), "acc").result
        b.add(control.Assign(source=sum_, target=acc))
        b.add(control.Yield(values=(sum_,)))
    b.add(made)
    m.at_line(16)
    held = b.emit(registers.Fold(value=made.result, axis=0, kind="add"))
    for mask in (1, 2, 4, 8, 16):
        other = b.emit(lanes.ShuffleXor(value=held, mask=mask))
        held = b.emit(registers.Binary(lhs=held, rhs=other, kind="add"))
    total = b.emit(registers.View(value=held, axes=(0,)), "total")
    m.at_line(17)
    first = b.emit(registers.Compare(lhs=lane, rhs=m.splat(0, i32), kind="eq"), "first")
    zero_at = m.splat(0, i32)
    b.add(global_memory.Store(tensor=y, value=total, base=row, offset=zero_at, predicate=first))
    m.written.append(2)
    m.warps = 1
    return m.kernel("matvec")


def test_matvec(machine, golden):
    kernel = matvec(machine)
    source = emit(kernel, SM_90A)
    golden(source.text, "text")
    golden(source.readable, "readable")
    assert not compile_cubin(source, SM_90A).notes


def test_transpose_through_shared_memory(machine, golden):
    m, b = machine, machine.build
    x, y = m.tensor("x", bf16, "n1"), m.tensor("y", bf16, "n1")
    m.shared_bytes = 2048
    buffer = b.add(shared_memory.BufferOp(dtype=bf16, elements=1024, at=0), "scratch").result
    lane = b.emit(index.Lane(rank=2), "lane")
    columns = m.constants(tuple(range(0, 32, 8)), rank=2, axis=1)
    pitch = b.emit(scalar.Stride(tensor=x, axis=0))
    row = b.emit(registers.Splat(value=pitch, rank=2))
    at = m.binary("add", m.binary("mul", lane, row), columns, "x_at")
    zero = b.const(0)
    tile = b.emit(global_memory.Load(tensor=x, base=zero, offset=at, axis=1, vec=8), "tile")
    where = m.binary("add", m.binary("mul", lane, m.splat(32, i32, (1, 1))), columns)
    b.add(shared_memory.Store(buffer=buffer, value=tile, offset=where, axis=1, vec=8))
    b.add(sync.WarpSync(why="tile written by other lanes"))
    rows = m.constants(tuple(range(0, 1024, 32)), rank=2, axis=1)
    back = m.binary("add", rows, lane)
    turned = b.emit(shared_memory.Load(buffer=buffer, offset=back, axis=1), "turned")
    out = m.binary("add", m.binary("mul", lane, row), columns)
    b.add(global_memory.Store(tensor=y, value=turned, base=zero, offset=out, axis=1, vec=8))
    b.add(sync.Barrier(threads=32, id=1, why="end"))
    m.warps = 1
    kernel = m.kernel("transpose")
    golden(emit(kernel, SM_90A).readable)
    assert not compile_cubin(emit(kernel, SM_90A), SM_90A).notes


def test_swapping_loop(machine, body_of):
    """`a, b = b, a` keeps its copies in the order that assign_storage gave them."""
    m, b = machine, machine.build
    y = m.tensor("y", i32)
    one, two = b.const(1), b.const(2)
    first = declare(m, "a", one.type, "a_s0")
    second = declare(m, "b", two.type, "b_s0")
    b.add(control.Assign(source=one, target=first))
    b.add(control.Assign(source=two, target=second))
    made, _, (arg_a, arg_b) = loop(m, b.const(0), b.const(9), b.const(1), (first, second), "i")
    with b.inside(made.body):
        old = b.emit(control.Duplicate(value=arg_a), "a")
        b.add(control.Assign(source=arg_b, target=first))
        b.add(control.Assign(source=old, target=second))
        b.add(control.Yield(values=(arg_b, arg_a)))
    b.add(made)
    held = b.emit(registers.Splat(value=made.results[0], rank=1))
    m.store(y, held)
    text = body_of(m.kernel())
    assert text[:9] == [
        "int a;",
        "int b;",
        "a = 1;",
        "b = 2;",
        "NOUNROLL for (int i = 0; i < 9; i += 1) {",
        "  int a_1 = a;",
        "  a = b;",
        "  b = a_1;",
        "}",
    ]


def test_a_view_of_a_loop_argument_is_a_copy(machine, body_of):
    """The argument's storage is overwritten while its old value is still wanted."""
    m, b = machine, machine.build
    y = m.tensor("y", f32)
    start = m.splat(0.0, f32, (4,))
    acc = declare(m, "acc", start.type, "acc_s0")
    b.add(control.Assign(source=start, target=acc))
    made, _, (arg,) = loop(m, b.const(0), b.const(3), b.const(1), (acc,))
    with b.inside(made.body):
        part = b.emit(registers.Slice(value=arg, axis=0, start=2, size=2), "part")
        both = b.emit(registers.Cat(values=(part, part), axis=0), "both")
        b.add(control.Assign(source=both, target=acc))
        b.add(control.Yield(values=(both,)))
    b.add(made)
    m.store(y, made.result)
    text = "\n".join(body_of(m.kernel()))
    assert "float part[2]; UNROLL for (int r = 0; r < 2; ++r) part[r] = acc[r + 2];" in text
    assert "both[r + 2] = part[r];" in text


@pytest.mark.parametrize(
    ("step", "condition"),
    [(1, "k < 9"), (-2, "k > 9"), (None, "by > 0 ? k < 9 : by < 0 && k > 9")],
)
def test_loop_conditions_follow_the_step(machine, body_of, step, condition):
    m, b = machine, machine.build
    by = m.parameter("by", Scalar(i32)) if step is None else b.const(step)
    made, _, _ = loop(m, b.const(0), b.const(9), by, ())
    made.body.ops.append(control.Yield())
    b.add(made)
    (head, _) = body_of(m.kernel())
    assert f"; {condition}; " in head


def test_unroll_is_printed_as_given(machine, body_of):
    m, b = machine, machine.build
    made, _, _ = loop(m, b.const(0), b.const(9), b.const(1), (), unroll=3)
    made.body.ops.append(control.Yield())
    b.add(made)
    text = body_of(m.kernel())
    assert text[0] == "#pragma unroll 3" and text[1].startswith("for (int k")


def test_a_branch_assigns_storages(machine, golden):
    m, b = machine, machine.build
    n = m.parameter("n", Scalar(i32))
    y = m.tensor("y", i32)
    zero = b.const(0)
    picked = declare(m, "picked", Scalar(i32), "picked_s0")
    condition = b.emit(scalar.Compare(lhs=n, rhs=zero, kind="gt"), "positive")
    made = control.If(condition=condition)
    for block, value in ((made.then, n), (made.orelse, zero)):
        with b.inside(block):
            b.add(control.Assign(source=value, target=picked))
            b.add(control.Yield(values=(value,)))
    made.results = (Value(Scalar(i32), "picked"),)
    made.result.storage = picked.storage
    b.add(made)
    m.store(y, b.emit(registers.Splat(value=made.result, rank=1)))
    golden("\n".join(emit(m.kernel(), SM_90A).readable.splitlines()))


def test_a_carried_value_that_nothing_moves_is_a_fault(machine):
    m, b = machine, machine.build
    one = b.const(1)
    a = declare(m, "a", one.type, "a_s0")
    made, k, _ = loop(m, b.const(0), b.const(9), b.const(1), (a,))
    with b.inside(made.body):
        b.add(control.Yield(values=(k,)))
    b.add(made)
    with pytest.raises(Fault, match="nothing moves it"):
        emit(m.kernel(), SM_90A)


def test_a_tile_kernel_is_a_fault(machine):
    kernel = machine.kernel()
    kernel.stage = Stage.TILE
    with pytest.raises(Fault, match="stage TILE"):
        emit(kernel, SM_90A)


def test_an_unplanned_buffer_is_a_fault(machine):
    machine.build.add(shared_memory.BufferOp(dtype=f32, elements=4))
    with pytest.raises(Fault, match="no place in shared memory"):
        emit(machine.kernel(), SM_90A)


def test_parameters_in_the_order_of_words(machine):
    machine.tensor("x", f32, "n1")
    machine.parameter("eps", Scalar(f32))
    machine.tensor("y", bf16, "1", wide=True)
    text = emit(machine.kernel("f"), SM_90A).text
    signature = re.search(r"f\((.*)\) \{", text)
    assert signature
    assert signature.group(1) == (
        "const float* x, int x_n0, int x_n1, int x_s0, float eps, const bf16* y, long long y_n0"
    )


def test_only_used_helpers_are_printed(machine):
    assert emit(machine.kernel(), SM_90A).text.splitlines()[0] == '#line 8 "/src/kernel.py"'


def test_names_of_the_emitter_do_not_meet_names_of_the_user(machine, body_of):
    m, b = machine, machine.build
    x, y = m.tensor("lane", f32), m.tensor("smem", f32)
    tile = m.load(x, name="r")
    m.store(y, b.emit(registers.Unary(value=tile, kind="neg"), "float"))
    text = "\n".join(body_of(m.kernel()))
    assert "float r_1[4];" in text and "float_1[r] = -r_1[r];" in text


def test_the_text_is_the_same_each_time(machine):
    kernel = matvec(machine)
    assert emit(kernel, SM_90A) == emit(kernel, SM_90A)


def test_a_map_prints_one_loop_and_keeps_inner_values_in_it(machine, body_of):
    m, b = machine, machine.build
    x, y = m.tensor("x", f32), m.tensor("y", f32)
    tile = m.load(x)
    col = m.splat(2.0, f32)
    inner = Value(Regs(f32, (4,)), "twice")
    mul = registers.Binary(lhs=tile, rhs=col, kind="mul", results=(inner,))
    last = Value(Regs(f32, (4,)), "done")
    add = registers.Binary(lhs=inner, rhs=tile, kind="add", results=(last,))
    inner.owner, last.owner = mul, add
    body = Block((), [mul, add, control.Yield(values=(last,))])
    result = b.add(registers.Map(extents=(4,), body=body), "done").result
    m.store(y, result)
    text = body_of(m.kernel())
    start = text.index("float done[4];")
    assert text[start + 1 : start + 5] == [
        "UNROLL for (int r = 0; r < 4; ++r) {",
        "  float twice = x_1[r] * 2.0f;",
        "  done[r] = twice + x_1[r];",
        "}",
    ]


def test_a_vector_along_the_first_axis_names_its_step(machine):
    m, b = machine, machine.build
    x = m.tensor("x", f32)
    m.tensor("y", f32)
    offset = m.constants((0, 100), rank=2, axis=1)
    load = global_memory.Load(tensor=x, base=b.const(0), offset=offset, axis=0, vec=4)
    tile = b.emit(load, "tile")
    store = global_memory.Store(
        tensor=m.params[1], value=tile, base=b.const(0), offset=offset, axis=0, vec=4
    )
    b.add(store)
    source = emit(m.kernel(), SM_90A)
    text = source.text
    assert "ld_global_f32x4<2>(&tile[r], x + at[r]);" in text
    assert "st_global_f32x4<2>(y + at[r], &tile[r]);" in text
    compile_cubin(source, SM_90A)


def test_a_vector_wider_than_an_instruction_is_refused(machine):
    m, b = machine, machine.build
    x = m.tensor("x", f32)
    b.add(global_memory.Load(tensor=x, base=b.const(0), offset=m.offsets(8, 8), vec=8))
    with pytest.raises(ValueError, match="no instruction moves 8 × f32"):
        emit(m.kernel(), SM_90A)


def test_prints_and_assertions(machine, golden):
    m, b = machine, machine.build
    x = m.tensor("x", bf16, "1")
    n = m.parameter("n", Scalar(i64))
    flag = m.parameter("flag", Scalar(boolean))
    b.add(debug.Print(values=(n, flag), text='100 % "done"'))
    tile = m.load(x, 2)
    where = m.offsets(2)
    ok = b.emit(registers.Compare(lhs=where, rhs=m.splat(60, i32), kind="lt"), "ok")
    b.add(debug.PrintTile(value=tile, coordinates=(where,), predicate=ok, text="x", shape=(64,)))
    b.add(debug.Assert(condition=flag, text="flag is set"))
    positive = b.emit(registers.Compare(lhs=where, rhs=m.splat(0, i32), kind="ge"), "positive")
    b.add(debug.Assert(condition=positive, predicate=ok, text="what??/ \\ ä"))
    kernel = m.kernel("spoken")
    source = emit(kernel, SM_90A)
    golden(source.readable[source.readable.index("extern") :])
    compile_cubin(source, SM_90A)


def test_a_scalar_load_is_one_access(machine, body_of):
    m, b = machine, machine.build
    lengths = m.tensor("lengths", i32)
    number = b.emit(scalar.BlockId(axis=1), "i")
    end = b.emit(scalar.Dim(tensor=lengths, axis=0))
    inside = b.emit(scalar.Compare(lhs=number, rhs=end, kind="lt"), "inside")
    load = global_memory.LoadScalar(
        tensor=lengths, base=number, predicate=inside, other=b.const(-1), read_only=True
    )
    length = b.emit(load, "length")
    assert length.type.uniform is Uniformity.BLOCK
    text = body_of(m.kernel())
    assert text[-1] == ("int length; ld_global_nc_i32x1(&length, lengths + i, inside, (-1));")

"""Register-wise operations: a loop over registers each, or one for a whole map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from warploom.base.dtypes import f32
from warploom.codegen import expressions
from warploom.codegen.c_types import NARROW
from warploom.codegen.names import REGISTER_LOOPS
from warploom.codegen.places import Loop, index_text
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, Fault, dtype_of, extents_of
from warploom.ir.op import Op, Value
from warploom.ir.ops import registers as ops

# ---- views: another place over the same registers ------------------------------------------


@emits(ops.Splat)
def splat(out: Emitter, op: ops.Splat) -> None:
    place = out.place(op.value)
    out.alias(op.result, place.view((-1,) * op.rank))


@emits(ops.Spread)
def spread(out: Emitter, op: ops.Spread) -> None:
    out.alias(op.result, out.place(op.value).spread(op.extents))


@emits(ops.View)
def view(out: Emitter, op: ops.View) -> None:
    out.alias(op.result, out.place(op.value).view(op.axes))


@emits(ops.Slice)
def slice_registers(out: Emitter, op: ops.Slice) -> None:
    out.alias(op.result, out.place(op.value).slice(op.axis, op.start, op.size))


@emits(ops.ToScalar)
def to_scalar(out: Emitter, op: ops.ToScalar) -> None:
    out.alias(op.result, out.place(op.value).view(()), "s")


@emits(ops.Cat)
def cat(out: Emitter, op: ops.Cat) -> None:
    target = out.declare_only(op.result)
    start = 0
    for value in op.values:
        source = out.place(value)
        size = source.extents[op.axis]
        found = out.walk(source.extents, target.slice(op.axis, start, size), source)
        to, register = found.registers
        out.lines.add(f"{found.header}{to} = {register};")
        start += size


# ---- arithmetic ----------------------------------------------------------------------------


@emits(ops.Binary, ops.Unary, ops.Fma, ops.Compare, ops.Select)
def arithmetic(out: Emitter, op: Op) -> None:
    operands = tuple(op.operand_values())
    out.elementwise(op.result, operands, lambda *texts: expression(out, op, texts))


@emits(ops.Cast)
def cast(out: Emitter, op: ops.Cast) -> None:
    pairs = [axis for axis, n in enumerate(extents_of(op.result)) if n % 2 == 0]
    if op.dtype.name in NARROW and dtype_of(op.value) == f32 and pairs:
        _cast_pairs(out, op, pairs[-1])
    else:
        out.elementwise(op.result, (op.value,), lambda x: expression(out, op, (x,)))


def _cast_pairs(out: Emitter, op: ops.Cast, axis: int) -> None:
    """Two registers an instruction. The assembler would join single conversions by itself, but then
    puts them before the wait for the products that they convert, and runs these one by one."""
    target, source = out.declare_only(op.result), out.place(op.value)
    firsts = [p.groups(axis, 2) for p in (target, source)]
    seconds = [
        replace(first, offset=first.offset + p.strides[axis])
        for first, p in zip(firsts, (target, source), strict=True)
    ]
    found = out.walk(firsts[0].extents, *firsts, *seconds)
    to, x, to_next, x_next = found.registers
    name = f"to_{op.dtype.name}x2"
    out.prelude.use(name)
    out.lines.add(f"{found.header}{name}({to}, {to_next}, {x}, {x_next});")


def expression(out: Emitter, op: Op, texts: Sequence[str]) -> str:
    """One register of the result, from one register of each operand."""
    dtype = dtype_of(next(op.operand_values()))
    match op:
        case ops.Binary():
            return expressions.binary(out.prelude, op.kind, dtype, *texts)
        case ops.Unary():
            return expressions.unary(out.prelude, op.kind, dtype, *texts)
        case ops.Fma():
            return expressions.fma(*texts)
        case ops.Compare():
            return expressions.compare(out.prelude, op.kind, dtype, *texts)
        case ops.Select():
            return expressions.select(*texts)
        case ops.Cast():
            return expressions.cast(out.prelude, dtype, op.dtype, *texts)
        case ops.Spread():
            return texts[0]
    raise Fault(f"{op.OPCODE} does not act register by register")


# ---- one loop over registers for several operations -----------------------------------------


@emits(ops.Map)
def map_registers(out: Emitter, op: ops.Map) -> None:
    *body, last = op.body.ops
    given = tuple(last.operand_values())
    outer = _outer_values(body, given)
    targets = [out.declare(r) for r in op.results]
    found = out.walk(op.extents, *(p for p, _ in targets), *(out.place(v) for v in outer))
    to = found.registers[: len(targets)]
    texts = dict(zip(outer, found.registers[len(targets) :], strict=True))
    # An array is declared before the loop, a scalar (there is no loop then) where it is assigned.
    heads = {r: "" if p.array else d for r, (p, d) in zip(to, targets, strict=True)}
    for place, declaration in targets:
        if place.array:
            out.lines.add(declaration.strip())
    results: dict[Value, str] = {}
    for value, register in zip(given, to, strict=True):
        results.setdefault(value, register)
    lines: list[tuple[str, Op]] = []
    for o in body:
        text = expression(out, o, [texts[v] for v in o.operand_values()])
        register = results.get(o.result)
        if register is None:
            name = out.name_of(o.result)
            lines.append((f"{out.type(dtype_of(o.result))} {name} = {text};", o))
        else:
            name = register
            lines.append((f"{heads[name]}{name} = {text};", o))
        texts[o.result] = name
    for value, register in zip(given, to, strict=True):
        if texts[value] != register:
            lines.append((f"{heads[register]}{register} = {texts[value]};", last))
    _print_loops(out, found.loops, lines)


def _outer_values(body: Sequence[Op], given: Sequence[Value]) -> list[Value]:
    """Values from outside that the body reads, in order of first use."""
    inner = {r for o in body for r in o.results}
    seen: dict[Value, None] = {}
    for o in body:
        seen.update((v, None) for v in o.operand_values() if v not in inner)
    seen.update((v, None) for v in given if v not in inner)
    return list(seen)


def _print_loops(out: Emitter, loops: Sequence[Loop], lines: Sequence[tuple[str, Op]]) -> None:
    """The loops, the statements at the places of their operations."""

    def statements() -> None:
        for line, op in lines:
            if op.loc.line > 0:
                out.lines.loc = op.loc
            out.lines.add(line)

    if not loops:
        statements()
    elif len(lines) == 1:
        out.lines.add("".join(f"{loop} " for loop in loops) + lines[0][0])
    else:
        *around, last = loops
        with out.lines.braces("".join(f"{loop} " for loop in around) + str(last)):
            statements()


# ---- folds ---------------------------------------------------------------------------------


@emits(ops.Fold)
def fold(out: Emitter, op: ops.Fold) -> None:
    dtype = dtype_of(op.value)

    def step(held: Sequence[str], new: Sequence[str]) -> str:
        text = expressions.binary(out.prelude, op.kind, dtype, held[0], new[0])
        return f"{held[0]} = {text};"

    _fold(out, op.results, (op.value,), op.axis, step)


@emits(ops.ArgFold)
def arg_fold(out: Emitter, op: ops.ArgFold) -> None:
    name = f"take_{op.kind}_{dtype_of(op.value).name}"
    out.prelude.use(name)

    def step(held: Sequence[str], new: Sequence[str]) -> str:
        return f"{name}({', '.join((*held, *new))});"

    _fold(out, op.results, (op.value, op.index), op.axis, step)


def _fold(
    out: Emitter,
    results: Sequence[Value],
    values: Sequence[Value],
    axis: int,
    step: Callable[[Sequence[str], Sequence[str]], str],
) -> None:
    """Print a fold in index order: start with register 0 of the axis, then take the others in."""
    sources = [out.place(v).spread(extents_of(values[0])) for v in values]
    targets = [out.declare(r) for r in results]
    count = sources[0].extents[axis]
    firsts = [p.slice(axis, 0, 1) for p in sources]
    found = out.walk(firsts[0].extents, *(p for p, _ in targets), *firsts)
    held, start = found.registers[: len(targets)], found.registers[len(targets) :]
    inner = Loop(REGISTER_LOOPS[len(found.loops)], count)
    others = []
    for number, source in enumerate(sources):
        strides = (*found.strides[len(targets) + number], source.strides[axis])
        others.append(source.at(index_text((*found.loops, inner), strides, source.offset)))
    heads = ["" if p.array else d for p, d in targets]
    parts = [f"{h}{to} = {x};" for h, to, x in zip(heads, held, start, strict=True)]
    if count > 1:
        out.prelude.use("UNROLL")
        v = inner.variable
        loop = f"UNROLL for (int {v} = 1; {v} < {count}; ++{v})"
        parts.append(f"{loop} {step(held, others)}")
    for place, declaration in targets:
        if place.array:
            out.lines.add(declaration.strip())
    if not found.loops:
        out.lines.add(" ".join(parts))
        return
    *around, last = found.loops
    with out.lines.braces("".join(f"{loop} " for loop in around) + str(last)):
        out.lines.add(" ".join(parts))

"""Observation: prints of one thread a block, assertions that stop the launch."""

from __future__ import annotations

from warploom.base.dtypes import DType
from warploom.codegen import async_helpers, expressions
from warploom.codegen.registry import emits
from warploom.codegen.state import Emitter, dtype_of, extents_of
from warploom.ir.op import Loc
from warploom.ir.ops import debug as ops


@emits(ops.Print)
def print_scalars(out: Emitter, op: ops.Print) -> None:
    shown = [_shown(out, dtype_of(v), out.scalar(v)) for v in op.values]
    form = ops.print_line(_percent(op.text), [form for form, _ in shown])
    arguments = "".join(f", {text}" for _, text in shown)
    call = f'printf("{form}\\n"{arguments});'
    if out.alone:
        out.lines.add(call)
    else:
        out.lines.add(f"if ({out.warps.first_thread}) {call}")


@emits(ops.PrintTile)
def print_tile(out: Emitter, op: ops.PrintTile) -> None:
    extents = extents_of(op.value)
    places = [out.place(v) for v in (op.value, *op.coordinates)]
    if op.predicate is not None:
        places.append(out.place(op.predicate))
    found = out.walk(extents, *places)
    value, *rest = found.registers
    coordinates, guard = rest[: len(op.coordinates)], rest[len(op.coordinates) :]
    form, text = _shown(out, dtype_of(op.value), value)
    place = ", ".join(["%d"] * len(coordinates))
    head = f"{_percent(op.text)} " if op.text else ""
    arguments = ", ".join([*coordinates, text])
    condition = f"if ({guard[0]}) " if guard else ""
    out.lines.add(f'{found.header}{condition}printf("{head}[{place}] {form}\\n", {arguments});')


@emits(ops.Clock)
def clock(out: Emitter, op: ops.Clock) -> None:
    name = async_helpers.use(out.prelude, f"clock_{op.unit}")
    out.elementwise(op.result, (), lambda: f"{name}()", "now")


@emits(ops.Record)
def record(out: Emitter, op: ops.Record) -> None:
    async_helpers.use(out.prelude, "clock_cycles")
    name = async_helpers.use(out.prelude, "record_event")
    at = out.assigned(op.at).only
    row = f"{op.row} + {out.warps.replica}" if out.warps.replicas > 1 else str(op.row)
    value = out.scalar(op.value) if op.value is not None else "0"
    counts = f"{out.extents[(op.trace, 0)]}, {op.rows}, {row}, {op.entries}"
    call = f"{name}({out.scalar(op.trace)}, {counts}, {at}++, {op.event}, {value});"
    guard = ""
    if not out.alone:
        guard = f"if ({out.warps.first_thread}) "
    elif op.first_warp and out.warps.count > 1:
        guard = f"if ({out.warps.within} == 0) "
    out.lines.add(guard + call)


@emits(ops.Breakpoint)
def stop(out: Emitter, op: ops.Breakpoint) -> None:
    """Only the simulator has somebody to ask."""


@emits(ops.Assert)
def assertion(out: Emitter, op: ops.Assert) -> None:
    places = [out.place(v) for v in (op.condition, op.predicate) if v is not None]
    extents = extents_of(op.condition)
    if op.predicate is not None and op.condition.type != op.predicate.type and not extents:
        extents = extents_of(op.predicate)
    found = out.walk(extents, *places)
    condition, *guard = found.registers
    failed = f"!{condition}" + (f" & {guard[0]}" if guard else "")
    call = f'__assertfail("{_quoted(op.text)}", {_where(op.loc)}, "{out.kernel.name}", 1)'
    out.lines.add(f"{found.header}if ({failed}) {call};")


def _where(loc: Loc) -> str:
    return f'"{_quoted(loc.file)}", {max(loc.line, 0)}'


def _shown(out: Emitter, dtype: DType, text: str) -> tuple[str, str]:
    """How printf shows a value: its format and the argument."""
    if dtype.is_bool:
        return "%s", f'{text} ? "True" : "False"'
    if dtype.is_float:
        if dtype.bits <= 16:
            text = expressions.widened(out.prelude, dtype, text)
        return "%g", f"(double){text}"
    if dtype.bits == 64:
        return ("%llu" if dtype.kind.value == "uint" else "%lld"), text
    return ("%u" if dtype.kind.value == "uint" else "%d"), text


def _quoted(text: str) -> str:
    """The inside of a C string."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        if char in '"\\':
            out.append("\\" + char)
        elif 32 <= byte < 127 and char != "?":
            out.append(char)
        else:
            # Three octal digits end by themselves; question marks would make trigraphs.
            out.append(f"\\{byte:03o}")
    return "".join(out)


def _percent(text: str) -> str:
    return _quoted(text).replace("%", "%%")

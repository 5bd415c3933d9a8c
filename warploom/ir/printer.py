"""IR as text; `parser` reads it back. Every value prints with its type where it is defined."""

from __future__ import annotations

import json
from typing import Any

from warploom.base.dtypes import DType
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, FieldKind, Loc, Op, Value
from warploom.ir.types import Regs, Scalar, Tile, Type


def print_kernel(kernel: Kernel, *, locs: bool = False) -> str:
    """The text of a kernel; with `locs`, source places (line:column) at the end of each line."""
    return _Printer(locs).kernel(kernel)


def type_text(type: Type) -> str:
    """A type with its layout, if it has one."""
    if isinstance(type, Tile | Regs) and type.layout is not None:
        return f"{type} {type.layout}"
    return str(type)


class _Printer:
    def __init__(self, locs: bool) -> None:
        self.locs = locs
        self.names: dict[Value, str] = {}
        self.taken: dict[str, int] = {}
        self.lines: list[str] = []

    def kernel(self, kernel: Kernel) -> str:
        params = ", ".join(self.define(p) for p in kernel.params)
        assert kernel.stage.name is not None
        options = f"stage={kernel.stage.name.lower()} warps={kernel.warps}"
        if kernel.fast_math:
            options += " fast_math"
        if kernel.dependent:
            options += " dependent"
        if kernel.shared_bytes:
            options += f" shared={kernel.shared_bytes}"
        if kernel.written:
            options += " written=" + ",".join(map(str, kernel.written))
        if kernel.cluster != (1, 1, 1):
            options += " cluster=" + ",".join(map(str, kernel.cluster))
        if kernel.kept:
            options += f' kept="{" ".join(map(str, kernel.kept))}"'
        if kernel.maps:
            options += f' maps="{" ".join(map(str, kernel.maps))}"'
        self.lines.append(f"kernel @{kernel.name}({params}) {options} {{")
        self.block(kernel.body, 1)
        self.lines.append("}")
        return "\n".join(self.lines) + "\n"

    def define(self, value: Value) -> str:
        # No Python name is a number or holds a dot: neither can meet a name of the user's.
        count = self.taken.get(value.name, 0)
        self.taken[value.name] = count + 1
        numbered = f"{value.name}.{count}" if value.name else str(count)
        name = f"%{value.name}" if value.name and not count else f"%{numbered}"
        self.names[value] = name
        storage = f" ={value.storage}" if value.storage else ""
        return f"{name}: {type_text(value.type)}{storage}"

    def use(self, value: Value) -> str:
        return self.names.get(value, f"%?{value.name}")

    def block(self, block: Block, depth: int) -> None:
        for op in block.ops:
            self.op(op, depth)

    def op(self, op: Op, depth: int) -> None:
        pad = "  " * depth
        # Operands print before results are named, so that a use before its definition shows as %?.
        operands = ", ".join(
            self.field(op, i.name, i.kind) for i in op.FIELDS if _is_operand(i.kind)
        )
        regions = op.regions()
        held = [] if not regions else [self.nested(r, depth) for r in regions]
        results = ", ".join(self.define(v) for v in op.results)
        head = f"{results} = " if results else ""
        attributes = ", ".join(f"{n}={literal(v)}" for n, v in op.attributes().items())
        text = f"{pad}{head}{op.OPCODE}({operands})"
        if attributes:
            text += f" [{attributes}]"
        if held:
            text += " " + " ".join(held)
        self.lines.append(text + self.place(op.loc))

    def nested(self, block: Block, depth: int) -> str:
        outer, self.lines = self.lines, []
        args = ", ".join(self.define(a) for a in block.args)
        self.block(block, depth + 1)
        inner, self.lines = self.lines, outer
        head = f"({args}) " if args else ""
        return "\n".join([head + "{", *inner, "  " * depth + "}"])

    def field(self, op: Op, name: str, kind: FieldKind) -> str:
        held = getattr(op, name)
        if held is None:
            return "_"
        if kind is FieldKind.OPERANDS:
            return "[" + ", ".join(self.use(v) for v in held) + "]"
        return self.use(held)

    def place(self, loc: Loc) -> str:
        return f"  @{loc.line}:{loc.column}" if self.locs and loc.line else ""


def _is_operand(kind: FieldKind) -> bool:
    return kind in (FieldKind.OPERAND, FieldKind.OPERANDS, FieldKind.OPTIONAL)


def literal(value: Any) -> str:
    """An attribute as text."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Scalar | Tile | Regs):
        return type_text(value)
    if isinstance(value, tuple):
        return "(" + "".join(f"{literal(v)}, " for v in value).rstrip(" ") + ")"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)

"""Reads back what `printer` prints. A recursive-descent reader of one page; knows the registry
only."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from warploom.base import dtypes
from warploom.ir.kernel import Kept, Kernel, TensorMap
from warploom.ir.layout.layout import parse as parse_layout
from warploom.ir.layout.shared import SharedLayout
from warploom.ir.op import REGISTRY, Block, FieldKind, Loc, Op, Stage, Value
from warploom.ir.types import (
    Barriers,
    Buffer,
    Regs,
    RemoteBarrier,
    RemoteTile,
    Scalar,
    SharedTile,
    Tensor,
    TensorClass,
    Tile,
    Type,
    Uniformity,
)

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:\\.|[^"\\])*")
    |(?P<value>%[\w.]+)
    |(?P<type>(?:tensor|buffer|(?:remote_)?shared|barriers)<[^>]*>
        |[a-z]\w*(?:@\w+|<[\dx~]*>|\[[\dx]*\])(?:\ \([\dx]*;[^)]*\))?)
    |(?P<place>@\d+:\d+)
    |(?P<number>-?(?:inf|nan|\d[\d.]*(?:e[-+]?\d+)?)\b)
    |(?P<word>@?[\w.]+)
    |(?P<sign>[(){}\[\],:=_]))""",
    re.VERBOSE,
)


class ParseError(ValueError):
    """Text that is not IR; the message names the line."""


def parse_kernel(text: str) -> Kernel:
    """A kernel from its text."""
    return _Parser(text).kernel()


def parse_type(text: str) -> Type:
    """A type as printed by `printer.type_text`."""
    if text.startswith("shared<"):
        return _shared(text[7:-1])
    if text.startswith("remote_shared<"):
        return RemoteTile(_shared(text[14:-1]))
    core, _, layout_text = text.partition(" (")
    layout = parse_layout("(" + layout_text) if layout_text else None
    if core.startswith("tensor<"):
        return _tensor(core[7:-1])
    if core.startswith("barriers<"):
        return Barriers(int(core[9:-1]))
    if core == "remote_barrier<>":
        return RemoteBarrier()
    if core.startswith("buffer<"):
        name, n = core[7:-1].split(", ")
        return Buffer(dtypes.BY_NAME[name], int(n))
    name, mark, rest = re.split(r"([@<\[])", core.rstrip(">]"))
    dtype = dtypes.BY_NAME[name]
    if mark == "@":
        return Scalar(dtype, Uniformity[rest.upper()])
    extents = _extents(rest.rstrip("~"))
    if mark == "<":
        return Tile(dtype, extents, layout, pending=rest.endswith("~"))
    return Regs(dtype, extents, layout)


_SHARED = re.compile(r"(?:(\d+) of )?(\w+) ([\dx]+) @(\d*) \(([\dx]+); (\d+) B; swizzle (\d+)\)$")


def _shared(text: str) -> SharedTile:
    found = _SHARED.match(text)
    if found is None:
        raise ParseError(f"not a shared tile: {text}")
    slots, name, shape, order, stored, itemsize, swizzle = found.groups()
    layout = SharedLayout(_extents(stored), int(itemsize), int(swizzle))
    axes = tuple(int(a) for a in order)
    return SharedTile(dtypes.BY_NAME[name], _extents(shape), layout, axes, int(slots or 0))


def _extents(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split("x")) if text else ()


def _tensor(text: str) -> Tensor:
    name, strides, *rest = text.split(", ")
    strides = "" if strides == "-" else strides
    numbers = {w.split()[0]: int(w.split()[1]) for w in rest if " " in w}
    cls = TensorClass(
        strides, numbers["align"], numbers["extent"], "aliased" in rest, "wide" in rest
    )
    return Tensor(dtypes.BY_NAME[name], len(strides), cls)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.looked = 0
        self.warps = 4
        self.values: dict[str, Value] = {}

    # ---- tokens ------------------------------------------------------------------------------

    def peek(self) -> tuple[str, str]:
        kind, text, _ = self.look()
        return kind, text

    def next(self) -> tuple[str, str]:
        kind, text, end = self.look()
        if kind == "end":
            self.fail(f"unexpected {text!r}" if text else "unexpected end")
        self.at = end
        return kind, text

    def look(self) -> tuple[str, str, int]:
        """Kind, text and end of the next token."""
        found = _TOKEN.match(self.text, self.at)
        if found is None or found.lastgroup is None:
            rest = self.text[self.at :].lstrip()
            self.looked = len(self.text) - len(rest) if rest else len(self.text.rstrip())
            return "end", rest[:1], self.at
        self.looked = found.start(found.lastgroup)
        return found.lastgroup, found.group(found.lastgroup), found.end()

    def accept(self, text: str) -> bool:
        if self.peek()[1] == text:
            self.next()
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {self.peek()[1]!r}")

    def fail(self, message: str) -> NoReturn:
        raise ParseError(f"line {self.text.count(chr(10), 0, self.looked) + 1}: {message}")

    # ---- grammar -----------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        found = re.search(r"\bwarps=(\d+)", self.text.split("\n", 1)[0])
        self.warps = int(found.group(1)) if found else 4
        self.expect("kernel")
        name = self.next()[1].removeprefix("@")
        self.expect("(")
        params = self.definitions(")")
        self.expect(")")
        options: dict[str, str] = {}
        while not self.accept("{"):
            word = self.next()[1]
            options[word] = self.number_list() if self.accept("=") else "1"
        body = self.block_body()
        if self.peek() != ("end", ""):
            self.fail("text after the kernel")
        kernel = Kernel(name, params, body, Stage[options.get("stage", "tile").upper()], self.warps)
        kernel.fast_math = "fast_math" in options
        kernel.dependent = "dependent" in options
        kernel.shared_bytes = int(options.get("shared", "0"))
        kernel.written = (
            tuple(int(n) for n in options["written"].split(",")) if "written" in options else ()
        )
        if "cluster" in options:
            x, y, z = (int(n) for n in options["cluster"].split(","))
            kernel.cluster = (x, y, z)
        kept = options.get("kept", "").strip('"').split()
        kernel.kept = tuple(Kept.parse(word) for word in kept)
        words = options.get("maps", "").strip('"').split()
        kernel.maps = tuple(TensorMap.parse(word) for word in words)
        return kernel

    def number_list(self) -> str:
        text = self.next()[1]
        while self.accept(","):
            text += "," + self.next()[1]
        return text

    def definitions(self, closing: str) -> tuple[Value, ...]:
        found = []
        while self.peek()[1] != closing:
            found.append(self.definition())
            self.accept(",")
        return tuple(found)

    def definition(self) -> Value:
        name = self.next()[1]
        self.expect(":")
        kind, text = self.next()
        if kind != "type":
            self.fail(f"expected a type, found {text!r}")
        bare = name[1:]
        hint = "" if bare.isdigit() else bare.partition(".")[0]
        value = Value(self.type(text), hint)
        # `=name` after a type is a storage; `= opcode` after the last result is the operation.
        if re.match(r" =\w", self.text[self.at : self.at + 3]):
            self.expect("=")
            value.storage = self.next()[1]
        self.values[name] = value
        return value

    def type(self, text: str) -> Type:
        try:
            return parse_type(text)
        except (KeyError, ValueError) as error:
            self.fail(f"not a type: {text} ({error})")

    def block_body(self) -> Block:
        ops = []
        while not self.accept("}"):
            ops.append(self.op())
        return Block((), ops)

    def op(self) -> Op:
        results: list[Value] = []
        if self.peek()[0] == "value":
            # Results are named on the line that starts the operation but belong after its operands.
            while True:
                results.append(self.definition())
                if not self.accept(","):
                    break
            self.expect("=")
        opcode = self.next()[1]
        cls = REGISTRY.get(opcode)
        if cls is None:
            self.fail(f"unknown operation {opcode}")
        made = self.fields(cls)
        made.results = tuple(results)
        for value in results:
            value.owner = made
        kind, text = self.peek()
        if kind == "place":
            self.next()
            line, column = text[1:].split(":")
            made.loc = Loc("?", int(line), int(column))
        return made

    def fields(self, cls: type[Op]) -> Op:
        given: dict[str, Any] = {}
        self.expect("(")
        for info in cls.FIELDS:
            if info.kind in (FieldKind.OPERAND, FieldKind.OPTIONAL):
                given[info.name] = self.use()
            elif info.kind is FieldKind.OPERANDS:
                given[info.name] = self.uses()
            else:
                continue
            self.accept(",")
        self.expect(")")
        if self.accept("["):
            while not self.accept("]"):
                name = self.next()[1]
                self.expect("=")
                given[name] = self.literal()
                self.accept(",")
        for info in cls.FIELDS:
            if info.kind is FieldKind.REGIONS:
                given[info.name] = self.region_list()
            elif info.kind is FieldKind.REGION:
                given[info.name] = self.region()
        try:
            return cls(**given)
        except TypeError as error:
            self.fail(f"{cls.OPCODE}: {error}")

    def use(self) -> Value | None:
        kind, text = self.next()
        if text == "_":
            return None
        if kind != "value" or text not in self.values:
            self.fail(f"{text} is not defined here")
        return self.values[text]

    def uses(self) -> tuple[Value, ...]:
        self.expect("[")
        found = []
        while not self.accept("]"):
            value = self.use()
            assert value is not None
            found.append(value)
            self.accept(",")
        return tuple(found)

    def region_list(self) -> tuple[Block, ...]:
        found = []
        while self.peek()[1] in ("{", "("):
            found.append(self.region())
        return tuple(found)

    def region(self) -> Block:
        args: tuple[Value, ...] = ()
        if self.accept("("):
            args = self.definitions(")")
            self.expect(")")
        self.expect("{")
        block = self.block_body()
        block.args = args
        for arg in args:
            arg.owner = block
        return block

    def literal(self) -> Any:
        if self.accept("("):
            items = []
            while not self.accept(")"):
                items.append(self.literal())
                self.accept(",")
            return tuple(items)
        kind, text = self.next()
        if kind == "type":
            return self.type(text)
        if kind == "string":
            return json.loads(text, strict=False)
        if kind == "number":
            return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
        named = {"True": True, "False": False, "None": None}
        if text in named:
            return named[text]
        if text in dtypes.BY_NAME:
            return dtypes.BY_NAME[text]
        self.fail(f"not a literal: {text!r}")

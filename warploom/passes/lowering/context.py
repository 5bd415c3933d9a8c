"""What every lowering rule works with: where to emit, what each tile value became, and the
coordinates of a layout as integer operations. Layouts end here: after this only integers remain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeVar

from warploom.base.dtypes import DType, i32, i64
from warploom.base.target import Target
from warploom.ir.affine import ScalarFacts
from warploom.ir.builder import Builder
from warploom.ir.kernel import Kernel, walk
from warploom.ir.layout.layout import Layout, Mode, Place
from warploom.ir.op import REGISTRY, Block, Op, Stage, Value
from warploom.ir.ops import index, registers, scalar
from warploom.ir.ops.control import OneThread
from warploom.ir.ops.roles import HandBack, Position, Round, Skip
from warploom.ir.ops.sync import FenceAsync
from warploom.ir.ops.tensor import Rows
from warploom.ir.types import Regs, Scalar, Tensor, Tile
from warploom.passes.guard_cluster import reaches_peers
from warploom.passes.place_aliases import AliasPlace, place_aliases

T = TypeVar("T", bound=Op)
Rule = Callable[["Lowering", Any], None]


# What another pass has replaced by then.
_EARLIER = (Position, Round, HandBack, Skip)


class LoweringRules:
    """One rule an operation type."""

    def __init__(self) -> None:
        self.rules: dict[type[Op], Rule] = {}

    def __call__(self, *classes: type[Op]) -> Callable[[Rule], Rule]:
        def register(rule: Rule) -> Rule:
            for cls in classes:
                if cls in self.rules:
                    raise ValueError(f"{cls.OPCODE} has two lowering rules")
                self.rules[cls] = rule
            return rule

        return register

    def missing(self) -> list[str]:
        """Opcodes that are not legal at the machine stage and have no rule."""
        return sorted(
            opcode
            for opcode, cls in REGISTRY.items()
            if Stage.MACHINE not in cls.STAGES and cls not in self.rules and cls not in _EARLIER
        )


lowers = LoweringRules()


@dataclass(frozen=True, slots=True)
class SharedPlace:
    """Where a shared tile or barrier lies: a buffer and the bytes from its start (None: none).
    `alias` says where its slots are, if it shares bytes with others."""

    buffer: Value
    offset: Value | None
    alias: AliasPlace | None = None


def _tensor_uses(kernel: Kernel) -> dict[Value, dict[type[Op], Op]]:
    found: dict[Value, dict[type[Op], Op]] = {}
    for op in walk(kernel.body):
        for value in op.operand_values():
            if isinstance(value.type, Tensor):
                found.setdefault(_whole(value), {}).setdefault(type(op), op)
    return found


def _whole(view: Value) -> Value:
    """The argument that a tensor is a part of."""
    while isinstance(view.owner, Rows):
        view = view.owner.tensor
    return view


class Lowering:
    """State of one run of lower_tiles."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.target = target
        self.facts = ScalarFacts.of(kernel.body)
        self._uses = _tensor_uses(kernel)
        self._used = {v for op in walk(kernel.body) for v in op.operand_values()}
        self.reaches_peers = reaches_peers(kernel)
        self.fences = [op for op in walk(kernel.body) if isinstance(op, FenceAsync)]
        self.values: dict[Value, Value] = {}
        self.places: dict[Value, SharedPlace] = {}
        self.homes: dict[Value, Block] = {}  # where the buffers of shared tiles are made
        self.aliases = place_aliases(kernel)
        self.regions = 1 + max((a.region for a in self.aliases.values()), default=-1)
        self.barrier_makers: dict[Block, OneThread] = {}  # by the block that they stand in
        self.build = Builder(Block())
        self.replicas = 1  # of the role that is being lowered
        self.begin_role()

    def tensor_uses(self, tensor: Value) -> dict[type[Op], Op]:
        """What accesses a tensor anywhere in the kernel before lowering: the first one of each kind
        of operation."""
        return self._uses.get(_whole(tensor), {})

    def is_used(self, value: Value) -> bool:
        """Whether any operation before lowering reads a value."""
        return value in self._used

    def begin_role(self, replicas: int = 1) -> None:
        """Coordinates depend on nothing but lane and warp, so they are made once, before all else
        of the role: warp numbers count within it."""
        self.replicas = replicas
        self.prologue = Builder(Block(), self.kernel.loc)
        self._coordinates: dict[tuple[Layout, int, int], Value] = {}
        self._digits: dict[tuple[Layout, Mode, int, int], Value] = {}
        self._replica: dict[Layout, Value | None] = {}

    # ---- values ------------------------------------------------------------------------------

    def get(self, value: Value) -> Value:
        """What a value became; scalars and tensors that nothing replaced are themselves."""
        return self.values.get(value, value)

    def put(self, value: Value, lowered: Value) -> None:
        """Say what a value became, and hand on name and layout."""
        if isinstance(value.type, Tile) and isinstance(lowered.type, Regs):
            lowered.type = replace(lowered.type, layout=value.type.layout)
        if value.name and not lowered.name:
            lowered.name = value.name
        self.values[value] = lowered

    def layout(self, value: Value) -> Layout:
        """Layout of a tile value."""
        assert isinstance(value.type, Tile) and value.type.layout is not None
        return value.type.layout

    def full(self, lowered: Value, extents: tuple[int, ...]) -> Value:
        """The value with all its registers, where it is held with extents 1."""
        assert isinstance(lowered.type, Regs)
        if lowered.type.extents == extents:
            return lowered
        spread = self.build.emit(registers.Spread(value=lowered, extents=extents), lowered.name)
        spread.type = replace(registers.regs_of(spread), layout=lowered.type.layout)
        return spread

    def whole(self, value: Value) -> Value:
        """A tile value with all the registers of its layout."""
        return self.full(self.get(value), self.layout(value).reg_extents)

    # ---- scalars -----------------------------------------------------------------------------

    def index_cast(self, value: Value, dtype: DType) -> Value:
        """An integer scalar in the index dtype of a tensor."""
        assert isinstance(value.type, Scalar)
        if value.type.dtype == dtype:
            return value
        return self.build.emit(scalar.Cast(value=value, dtype=dtype))

    def arith(self, kind: str, lhs: Value, rhs: Value) -> Value:
        """Scalar arithmetic, made in i64 where the operands differ."""
        assert isinstance(lhs.type, Scalar) and isinstance(rhs.type, Scalar)
        if lhs.type.dtype != rhs.type.dtype:
            lhs, rhs = self.index_cast(lhs, i64), self.index_cast(rhs, i64)
        folded = self._fold(kind, lhs, rhs)
        if folded is not None:
            return folded
        return self.build.emit(scalar.Binary(lhs=lhs, rhs=rhs, kind=kind))

    def _fold(self, kind: str, lhs: Value, rhs: Value) -> Value | None:
        a, b = self.facts.constant(lhs), self.facts.constant(rhs)
        if kind in ("add", "sub") and b == 0:
            return lhs
        if kind == "add" and a == 0:
            return rhs
        if kind == "mul" and b == 1:
            return lhs
        if kind == "mul" and a == 1:
            return rhs
        return None

    def compare(self, kind: str, lhs: Value, rhs: Value) -> Value:
        """Scalar comparison, made in i64 where the operands differ."""
        assert isinstance(lhs.type, Scalar) and isinstance(rhs.type, Scalar)
        if lhs.type.dtype != rhs.type.dtype:
            lhs, rhs = self.index_cast(lhs, i64), self.index_cast(rhs, i64)
        return self.build.emit(scalar.Compare(lhs=lhs, rhs=rhs, kind=kind))

    def splat(self, value: Value, rank: int) -> Value:
        """A scalar as registers."""
        return self.build.emit(registers.Splat(value=value, rank=rank))

    def splat_const(self, number: int | float | bool, dtype: DType, rank: int) -> Value:
        """A literal as registers."""
        return self.splat(self.build.const(number, dtype), rank)

    def binary(self, kind: str, lhs: Value, rhs: Value) -> Value:
        """Register-wise arithmetic."""
        return self.build.emit(registers.Binary(lhs=lhs, rhs=rhs, kind=kind))

    def both(self, a: Value | None, b: Value | None) -> Value | None:
        """Conjunction of two predicates, either of which may be absent."""
        if a is None or b is None:
            return b if a is None else a
        return self.binary("and", a, b)

    # ---- coordinates -------------------------------------------------------------------------

    def coordinates(self, layout: Layout, axis: int, vec: int = 1) -> Value:
        """i32 coordinates on an axis, for every register or for the first of each group of
        `vec`."""
        key = (layout, axis, vec)
        found = self._coordinates.get(key)
        if found is not None:
            return found
        rank = len(layout.shape)
        numbers = layout.reg_values(axis)[::vec]
        total = self.prologue.emit(index.Constants(rank=rank, axis=axis, numbers=numbers))
        for place in (Place.WARP, Place.LANE):
            for mode in layout.of(place, axis):
                part = self._scaled(self._digit(layout, mode, rank), mode.stride, rank)
                total = self._sum(part, total, numbers)
        self._coordinates[key] = total
        return total

    def scaled_digit(self, layout: Layout, mode: Mode, stride: int) -> Value:
        """One digit of a layout times a stride, as registers of the layout's rank."""
        rank = len(layout.shape)
        return self._scaled(self._digit(layout, mode, rank), stride, rank)

    def _sum(self, part: Value, total: Value, numbers: tuple[int, ...]) -> Value:
        if numbers == (0,) and isinstance(total.owner, index.Constants):
            return part
        return self.prologue.emit(registers.Binary(lhs=part, rhs=total, kind="add"))

    def _scaled(self, digit: Value, stride: int, rank: int) -> Value:
        if stride == 1:
            return digit
        by = self.prologue.emit(
            registers.Splat(value=self.prologue.const(stride), rank=rank),
        )
        return self.prologue.emit(registers.Binary(lhs=digit, rhs=by, kind="mul"))

    def _digit(self, layout: Layout, mode: Mode, rank: int) -> Value:
        # Two replicating digits of a layout may be equal but for where they stand.
        divisor = layout.divisor(mode)
        key = (layout, mode, divisor, rank)
        found = self._digits.get(key)
        if found is None:
            lane = mode.place is Place.LANE
            source = index.Lane(rank=rank) if lane else index.Warp(rank=rank)
            number = self.prologue.emit(source)
            total = 32 if lane else layout.warps
            if divisor == 1 and mode.extent == total:
                found = number
            else:
                extent = 0 if divisor * mode.extent == total else mode.extent
                found = self.prologue.emit(
                    index.Digit(value=number, divisor=divisor, extent=extent)
                )
            self._digits[key] = found
        return found

    def digit_is_zero(self, layout: Layout, modes: tuple[Mode, ...]) -> Value | None:
        """Predicate (extents 1): all these digits are 0; None where there are no digits."""
        return self._digits_are(layout, modes, 0)

    def _digits_are(self, layout: Layout, modes: tuple[Mode, ...], number: int) -> Value | None:
        """Predicate (extents 1): the digits are those of a number, the fastest first."""
        rank = len(layout.shape)
        predicate: Value | None = None
        for mode in modes:
            digit = self._digit(layout, mode, rank)
            number, wanted = divmod(number, mode.extent)
            value = self.prologue.const(wanted, i32)
            value = self.prologue.emit(registers.Splat(value=value, rank=rank))
            first = self.prologue.emit(registers.Compare(lhs=digit, rhs=value, kind="eq"))
            predicate = (
                first
                if predicate is None
                else self.prologue.emit(registers.Binary(lhs=predicate, rhs=first, kind="and"))
            )
        return predicate

    def first_replica(self, layout: Layout) -> Value | None:
        """Predicate (extents 1) of the threads that execute effects; None where all do."""
        if layout not in self._replica:
            self._replica[layout] = self.digit_is_zero(layout, layout.replicas)
        return self._replica[layout]

    def replica(self, layout: Layout, number: int) -> Value | None:
        """As `first_replica`, of the replica of a number, which goes round those that there are."""
        count = prod(mode.extent for mode in layout.replicas)
        if not number % count:
            return self.first_replica(layout)
        return self._digits_are(layout, layout.replicas, number % count)

    def inside_tile(self, layout: Layout, axis: int, vec: int = 1) -> Value | None:
        """Predicate of coordinates that are no padding along an axis; None where none is."""
        if not layout.is_padded(axis):
            return None
        rank = len(layout.shape)
        limit = self.splat_const(layout.shape[axis], i32, rank)
        coordinate = self.coordinates(layout, axis, vec)
        return self.build.emit(registers.Compare(lhs=coordinate, rhs=limit, kind="lt"))

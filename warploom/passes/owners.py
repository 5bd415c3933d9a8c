"""Which thread touches which element of a shared buffer, as offsets show it: an offset is what the
threads of a role count, and where the window stands, which is one number for all of them. Knows
nothing of order.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from warploom.ir.affine import ScalarFacts
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Value
from warploom.ir.ops import index, registers, scalar, shared_memory
from warploom.ir.ops.control import OneThread
from warploom.ir.ops.registers import regs_of
from warploom.ir.roles import walk_roles
from warploom.ir.types import Regs

Key = tuple[object, ...]
_LANES = 32


class _Count(NamedTuple):
    """A number that threads count, the same way wherever `key` is equal: from `lo` to `hi`."""

    key: Key
    lo: int
    hi: int


class Owner(NamedTuple):
    """How the elements of a buffer fall to threads in one access: as `key` says, within `span`
    elements of where its window stands, which is a multiple of `step`."""

    key: Key
    step: int = 0
    span: int = 0

    def same(self, other: Owner) -> bool:
        """Whether both leave each element to one thread, the same one, wherever the windows stand:
        these are one, or have nothing in common."""
        if self.key != other.key:
            return False
        step = gcd(self.step, other.step)
        return step == 0 or step >= self.span


class Owners:
    """Those of the elements of one kernel's shared buffers."""

    def __init__(self, kernel: Kernel) -> None:
        self._facts = ScalarFacts.of(kernel.body)
        self._warps = dict(walk_roles(kernel))
        blocks = [op.body for op in walk(kernel.body) if isinstance(op, OneThread)]
        self._alone = {op for block in blocks for op in walk(block)}
        self._counts: dict[Value, _Count | None] = {}

    def of(self, op: shared_memory.Load | shared_memory.Store) -> Owner | None:
        """That of an access; None where it is not known."""
        if op in self._alone:
            return None
        if isinstance(op, shared_memory.Store):
            if self._by_first_lane(op):
                return Owner((op.buffer, "first lane"))
            value = op.value
        else:
            value = op.result
        layout = value.type.layout if isinstance(value.type, Regs) else None
        if layout is None or layout.replicas:
            return None
        counts: list[_Count] = []
        step = self._split(op.offset, counts)
        span = sum(c.hi - c.lo for c in counts) + op.vec
        if step and step < span:
            return None
        extents = regs_of(op.offset).extents
        key = (op.buffer, extents, op.axis, op.vec, *(c.key for c in counts))
        return Owner(key, step, span)

    def _by_first_lane(self, op: shared_memory.Store) -> bool:
        """Whether only lane 0 of a role of one warp stores."""
        return self._warps.get(op) == 1 and self._asks_for_lane_0(op.predicate)

    def _asks_for_lane_0(self, predicate: Value | None) -> bool:
        asked = None if predicate is None else predicate.owner
        if isinstance(asked, registers.Binary) and asked.kind == "and":
            return self._asks_for_lane_0(asked.lhs) or self._asks_for_lane_0(asked.rhs)
        if isinstance(asked, registers.Spread):
            return self._asks_for_lane_0(asked.value)
        if not isinstance(asked, registers.Compare) or asked.kind != "eq":
            return False
        return isinstance(asked.lhs.owner, index.Lane) and self._constant(asked.rhs) == 0

    def _constant(self, value: Value) -> int | None:
        op = value.owner
        return self._facts.constant(op.value) if isinstance(op, registers.Splat) else None

    # ---- offsets -------------------------------------------------------------------------------

    def _split(self, offset: Value, counts: list[_Count]) -> int:
        """Add what the threads count to `counts`; gives a number that divides where the window
        stands, 0 where it stands at 0, 1 where nothing is known of a part."""
        op = offset.owner
        if isinstance(op, registers.Spread):
            return self._split(op.value, counts)
        if isinstance(op, registers.Binary) and op.kind == "add":
            return gcd(self._split(op.lhs, counts), self._split(op.rhs, counts))
        if isinstance(op, registers.Splat):
            return self._divisor(op.value)
        found = self._count(offset)
        if found is None:
            return 1  # less than any span, as an access has one element at least
        counts.append(found)
        return 0

    def _divisor(self, start: Value) -> int:
        """What divides a number that is the same for all threads; 0 if it is 0."""
        op = start.owner
        if isinstance(op, scalar.Binary) and op.kind == "floordiv":
            by, whole = self._facts.constant(op.rhs), self._divisor(op.lhs)
            return whole // by if by is not None and by > 0 and whole % by == 0 else 1
        form = self._facts.affine(start)
        return gcd(form.constant, *(factor for _, factor in form.terms))

    def _count(self, value: Value) -> _Count | None:
        if value not in self._counts:
            self._counts[value] = self._counted(value.owner)
        return self._counts[value]

    def _counted(self, op: object) -> _Count | None:
        if isinstance(op, index.Lane):
            return _Count(("lane",), 0, _LANES - 1)
        if isinstance(op, index.Warp):
            return _Count(("warp",), 0, self._warps[op] - 1)
        if isinstance(op, index.Constants):
            return _Count(("constants", op.axis, op.numbers), min(op.numbers), max(op.numbers))
        if isinstance(op, index.Digit):
            inner = self._count(op.value)
            return None if inner is None else _digit(op, inner)
        if isinstance(op, registers.Spread):
            return self._count(op.value)
        if isinstance(op, registers.Splat):
            number = self._facts.constant(op.value)
            return None if number is None else _Count(("number", number), number, number)
        if isinstance(op, registers.Binary):
            lhs, rhs = self._count(op.lhs), self._count(op.rhs)
            return None if lhs is None or rhs is None else _both(op.kind, lhs, rhs)
        return None


def _digit(op: index.Digit, inner: _Count) -> _Count:
    """A digit of a count; of the slowest one nothing is cut off."""
    most = inner.hi // op.divisor
    most = min(most, op.extent - 1) if op.extent else most
    return _Count(("digit", op.divisor, op.extent, inner.key), 0, most)


def _both(kind: str, lhs: _Count, rhs: _Count) -> _Count | None:
    """Arithmetic of two counts that are not negative."""
    if lhs.lo < 0 or rhs.lo < 0:
        return None
    key = (kind, lhs.key, rhs.key)
    if kind == "add":
        return _Count(key, lhs.lo + rhs.lo, lhs.hi + rhs.hi)
    if kind == "mul":
        return _Count(key, lhs.lo * rhs.lo, lhs.hi * rhs.hi)
    if kind == "floordiv" and rhs.lo > 0:
        return _Count(key, lhs.lo // rhs.hi, lhs.hi // rhs.lo)
    if kind == "mod" and rhs.lo > 0:
        return _Count(key, 0, min(lhs.hi, rhs.hi - 1))
    if kind == "and":
        return _Count(key, 0, min(lhs.hi, rhs.hi))
    if kind in ("xor", "or"):
        return _Count(key, 0, (1 << max(lhs.hi, rhs.hi).bit_length()) - 1)
    return None

"""What is known of integer scalars without running anything: affine form, divisibility, sign. The
front end recognises windows with it (`hi − lo` constant), lowering picks access widths and drops
checks."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import gcd

from warploom.ir.kernel import walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops.control import For
from warploom.ir.ops.scalar import Binary, BlockId, Cast, Const, Dim, GridDim, Select
from warploom.ir.types import Scalar

_CAP = 1 << 20  # no access is wider than 16 elements; a bound keeps zero finite


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ coefficient · root; roots are compared by meaning, not by identity."""

    constant: int = 0
    terms: tuple[tuple[Hashable, int], ...] = ()

    def plus(self, other: Affine, sign: int = 1) -> Affine:
        """self + sign · other."""
        total = dict(self.terms)
        for root, c in other.terms:
            total[root] = total.get(root, 0) + sign * c
        return _pack(self.constant + sign * other.constant, total)

    def times(self, factor: int) -> Affine:
        """factor · self."""
        return _pack(self.constant * factor, {root: c * factor for root, c in self.terms})

    @property
    def is_constant(self) -> bool:
        return not self.terms


def _pack(constant: int, terms: dict[Hashable, int]) -> Affine:
    kept = tuple(sorted(((r, c) for r, c in terms.items() if c), key=lambda t: (hash(t[0]), t[1])))
    return Affine(constant, kept)


@dataclass(slots=True)
class ScalarFacts:
    """Facts of the scalars of one kernel. Loops must be noted to know anything of their indices."""

    loops: dict[Value, tuple[Value, Value]] = field(default_factory=dict)
    _forms: dict[Value, Affine] = field(default_factory=dict)
    _divisors: dict[Value, int] = field(default_factory=dict)

    @classmethod
    def of(cls, block: Block) -> ScalarFacts:
        """Facts for everything inside a finished block."""
        facts = cls()
        for op in walk(block):
            if isinstance(op, For):
                facts.note_loop(op.body.args[0], op.lo, op.step)
        return facts

    def note_loop(self, index: Value, lo: Value, step: Value) -> None:
        """`index` runs from lo by step."""
        self.loops[index] = (lo, step)

    def affine(self, value: Value) -> Affine:
        """Affine form; what is not a sum or a multiple by a constant is a root."""
        form = self._forms.get(value)
        if form is None:
            form = self._forms[value] = self._affine(value)
        return form

    def difference(self, hi: Value, lo: Value) -> int | None:
        """hi − lo where it is the same number always."""
        form = self.affine(hi).plus(self.affine(lo), -1)
        return form.constant if form.is_constant else None

    def constant(self, value: Value) -> int | None:
        """The number that a scalar always has, or None."""
        form = self.affine(value)
        return form.constant if form.is_constant else None

    def _affine(self, value: Value) -> Affine:
        op = value.owner
        if isinstance(op, Const) and not isinstance(op.number, float):
            return Affine(int(op.number))
        if isinstance(op, Cast) and _is_index(op.value) and _is_index(value):
            return self.affine(op.value)
        if isinstance(op, Binary) and _is_index(value):
            lhs, rhs = self.affine(op.lhs), self.affine(op.rhs)
            if op.kind == "add":
                return lhs.plus(rhs)
            if op.kind == "sub":
                return lhs.plus(rhs, -1)
            if op.kind == "mul" and (lhs.is_constant or rhs.is_constant):
                return rhs.times(lhs.constant) if lhs.is_constant else lhs.times(rhs.constant)
        return Affine(0, ((self._root(value), 1),))

    def _root(self, value: Value) -> Hashable:
        op = value.owner
        if isinstance(op, Dim):
            return ("dim", op.tensor, op.axis)
        if isinstance(op, BlockId | GridDim):
            return (op.OPCODE, op.axis)
        if (
            isinstance(op, Op)
            and op.is_pure
            and len(op.results) == 1
            and isinstance(value.type, Scalar)
        ):
            inner = tuple(self.affine(v) if _is_index(v) else v for v in op.operand_values())
            return (op.OPCODE, tuple(op.attributes().values()), inner)
        return value

    def divisor(self, value: Value) -> int:
        """The largest known power of two that always divides the value."""
        known = self._divisors.get(value)
        if known is None:
            self._divisors[value] = 1  # a carried value that depends on itself proves nothing
            known = self._divisors[value] = self._divisor(value)
        return known

    def _divisor(self, value: Value) -> int:
        op = value.owner
        if isinstance(op, Const):
            return _power(int(op.number)) if not isinstance(op.number, float) else 1
        if value in self.loops:
            lo, step = self.loops[value]
            return gcd(self.divisor(lo), self.divisor(step))
        if isinstance(op, Cast) and _is_index(op.value):
            return self.divisor(op.value)
        if isinstance(op, Select):
            return gcd(self.divisor(op.yes), self.divisor(op.no))
        if isinstance(op, Binary):
            lhs, rhs = self.divisor(op.lhs), self.divisor(op.rhs)
            if op.kind == "mul":
                return min(lhs * rhs, _CAP)
            if op.kind in ("add", "sub", "max", "min"):
                return gcd(lhs, rhs)
        return 1

    def is_nonnegative(self, value: Value) -> bool:
        """True where the value is proven to be ≥ 0."""
        op = value.owner
        if isinstance(op, Const):
            return op.number >= 0
        if isinstance(op, Dim | BlockId | GridDim):
            return True
        if value in self.loops:
            lo, step = self.loops[value]
            return self.is_nonnegative(lo) and self.is_nonnegative(step)
        if isinstance(op, Cast):
            return self.is_nonnegative(op.value)
        if isinstance(op, Select):
            return self.is_nonnegative(op.yes) and self.is_nonnegative(op.no)
        if isinstance(op, Binary):
            lhs, rhs = self.is_nonnegative(op.lhs), self.is_nonnegative(op.rhs)
            if op.kind in ("add", "mul", "floordiv", "min", "and", "shr"):
                return lhs and rhs
            if op.kind == "max":
                return lhs or rhs
            if op.kind == "mod":
                return rhs
        return False


def _is_index(value: Value) -> bool:
    return isinstance(value.type, Scalar) and value.type.dtype.is_int


def _power(n: int) -> int:
    return _CAP if n == 0 else min(n & -n, _CAP)

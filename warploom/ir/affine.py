"""What is known of integer scalars without running anything: affine form, divisibility, sign. The
front end recognises windows with it (`hi − lo` constant), lowering picks access widths and drops
checks. Index arithmetic is taken not to overflow its dtype; constants wrap as both devices do."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from math import gcd

from warploom.base.dtypes import DType
from warploom.ir.kernel import walk
from warploom.ir.op import Block, Op, Value
from warploom.ir.ops.cluster import Rank
from warploom.ir.ops.control import For, While
from warploom.ir.ops.roles import Replica
from warploom.ir.ops.scalar import (
    Binary,
    BlockId,
    Cast,
    Const,
    Dim,
    GridDim,
    Select,
    scalar_of,
)
from warploom.ir.types import Scalar

_CAP = 1 << 20  # no access is wider than 16 elements; a bound keeps zero finite

_FOLDED: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ coefficient · root. Roots are numbers that `ScalarFacts` gives out by meaning;
    only forms of one `ScalarFacts` may be compared."""

    constant: int = 0
    terms: tuple[tuple[int, int], ...] = ()

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

    @property
    def is_root(self) -> bool:
        """One root and nothing else."""
        return self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1


def _pack(constant: int, terms: dict[int, int]) -> Affine:
    return Affine(constant, tuple(sorted((root, c) for root, c in terms.items() if c)))


@dataclass(frozen=True, slots=True)
class _Fact:
    form: Affine
    divisor: int
    nonnegative: bool


@dataclass(slots=True)
class ScalarFacts:
    """Facts of the scalars of one kernel. Loops must be noted before their index is asked for."""

    loops: dict[Value, tuple[Value, Value]] = field(default_factory=dict)
    # What a `while` carries and is never negative.
    nonnegative: set[Value] = field(default_factory=set)
    _facts: dict[Value, _Fact] = field(default_factory=dict)
    _roots: dict[Hashable, int] = field(default_factory=dict)
    _values: list[Value] = field(default_factory=list)

    @classmethod
    def of(cls, block: Block) -> ScalarFacts:
        """Facts for everything inside a finished block."""
        facts = cls()
        for op in walk(block):
            if isinstance(op, For):
                facts.note_loop(op.body.args[0], op.lo, op.step)
        for op in walk(block):
            if isinstance(op, While):
                facts.nonnegative |= facts.never_negative(op)
                facts._facts.clear()  # what was found before did not know it
        return facts

    def never_negative(self, op: While) -> set[Value]:
        """The carried integers that enter as no negative number and become none in a trip."""
        ends = op.body.ops[-1].operand_values()
        carried = [c for c in zip(op.carried, op.inits, ends, strict=True) if _is_index(c[0])]
        kept = {arg for arg, init, _ in carried if self.is_nonnegative(init)}
        while True:
            trial = ScalarFacts(loops=self.loops, nonnegative=self.nonnegative | kept)
            left = {a for a, _, end in carried if a in kept and trial.is_nonnegative(end)}
            if left == kept:
                return kept
            kept = left

    def note_loop(self, index: Value, lo: Value, step: Value) -> None:
        """`index` runs from lo by step."""
        self.loops[index] = (lo, step)

    def affine(self, value: Value) -> Affine:
        """Affine form; what is not a sum or a multiple by a constant is a root."""
        return self._fact(value).form

    def difference(self, hi: Value, lo: Value) -> int | None:
        """hi − lo where it is the same number always."""
        form = self.affine(hi).plus(self.affine(lo), -1)
        return form.constant if form.is_constant else None

    def constant(self, value: Value) -> int | None:
        """The number that an integer scalar always has, or None."""
        form = self.affine(value)
        return form.constant if form.is_constant else None

    def value_of(self, root: int) -> Value:
        """The first value that was found to be this root."""
        return self._values[root]

    def divisor(self, value: Value) -> int:
        """The largest known power of two that always divides the value."""
        return self._fact(value).divisor

    def is_nonnegative(self, value: Value) -> bool:
        """True where the value is proven to be ≥ 0."""
        return self._fact(value).nonnegative

    # ---- how they are found: operands first, without recursion, each value once ------------

    def _fact(self, value: Value) -> _Fact:
        stack = [value]
        while value not in self._facts:
            top = stack[-1]
            waiting = [v for v in self._sources(top) if v not in self._facts]
            if waiting:
                stack += waiting
                continue
            form = self._affine(top)
            if form.is_constant:
                number = _wrapped(form.constant, scalar_of(top).dtype)
                self._facts[top] = _Fact(Affine(number), _power(number), number >= 0)
            else:
                self._facts[top] = _Fact(form, self._divisor(top), self._nonnegative(top))
            stack.pop()
        return self._facts[value]

    def _sources(self, value: Value) -> Iterator[Value]:
        """The scalars that a value's facts follow from."""
        if value in self.loops:
            yield from self.loops[value]
        elif _is_arithmetic(value.owner):
            assert isinstance(value.owner, Op)
            yield from (v for v in value.owner.operand_values() if isinstance(v.type, Scalar))

    def _affine(self, value: Value) -> Affine:
        op = value.owner
        if not _is_index(value):
            return self._root(value)
        if isinstance(op, Const):
            return Affine(int(op.number))
        if isinstance(op, Cast) and _is_index(op.value):
            form = self.affine(op.value)
            # A sum may have wrapped before it was cast: only a plain value is looked through.
            plain = form.is_constant or (form.is_root and _keeps_number(op))
            return form if plain else self._root(value)
        if isinstance(op, Binary):
            return self._binary(op)
        return self._root(value)

    def _binary(self, op: Binary) -> Affine:
        lhs, rhs = self.affine(op.lhs), self.affine(op.rhs)
        if lhs.is_constant and rhs.is_constant:
            number = _folded(op, lhs.constant, rhs.constant)
            return self._root(op.result) if number is None else Affine(number)
        if op.kind == "add":
            return lhs.plus(rhs)
        if op.kind == "sub":
            return lhs.plus(rhs, -1)
        if op.kind == "mul" and lhs.is_constant:
            return rhs.times(lhs.constant)
        if op.kind == "mul" and rhs.is_constant:
            return lhs.times(rhs.constant)
        return self._root(op.result)

    def _root(self, value: Value) -> Affine:
        root = self._roots.setdefault(self._meaning(value), len(self._roots))
        if root == len(self._values):
            self._values.append(value)
        return Affine(0, ((root, 1),))

    def _meaning(self, value: Value) -> Hashable:
        """Equal for two values that are computed alike from equal values."""
        op = value.owner
        if not _is_arithmetic(op):
            return value
        assert isinstance(op, Op)
        inner = tuple(
            self.affine(v) if isinstance(v.type, Scalar) else v for v in op.operand_values()
        )
        # Attributes as text: 0.0 and −0.0 are equal numbers and different values.
        return (op.OPCODE, tuple(map(repr, op.attributes().values())), inner)

    def _divisor(self, value: Value) -> int:
        op = value.owner
        if value in self.loops:
            return gcd(*map(self.divisor, self.loops[value]))
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

    def _nonnegative(self, value: Value) -> bool:
        op = value.owner
        if value in self.loops:
            return all(map(self.is_nonnegative, self.loops[value]))
        if isinstance(op, Dim | BlockId | GridDim | Replica | Rank) or value in self.nonnegative:
            return True
        if isinstance(op, Cast):
            return _keeps_number(op) and self.is_nonnegative(op.value)
        if isinstance(op, Select):
            return self.is_nonnegative(op.yes) and self.is_nonnegative(op.no)
        if isinstance(op, Binary):
            lhs, rhs = self.is_nonnegative(op.lhs), self.is_nonnegative(op.rhs)
            if op.kind in ("add", "mul", "floordiv", "min", "shr"):
                return lhs and rhs
            if op.kind in ("max", "and"):
                return lhs or rhs
            if op.kind == "mod":  # by zero it is the dividend
                return rhs and (lhs or self.constant(op.rhs) not in (None, 0))
        return False


def _is_index(value: Value) -> bool:
    return isinstance(value.type, Scalar) and value.type.dtype.is_int


def _is_arithmetic(op: Op | Block | None) -> bool:
    """A pure operation that makes one scalar: equal operands give an equal result."""
    if not isinstance(op, Op) or not op.is_pure or len(op.results) != 1:
        return False
    return isinstance(op.results[0].type, Scalar)


def _keeps_number(op: Cast) -> bool:
    """Whether a cast is from one integer type to another that holds all its numbers."""
    if not (_is_index(op.value) and op.dtype.is_int):
        return False
    (low, high), (least, most) = scalar_of(op.value).dtype.int_range, op.dtype.int_range
    return least <= low and high <= most


def _wrapped(number: int, dtype: DType) -> int:
    """The number that the low bits of `number` mean."""
    low, _ = dtype.int_range
    return (number - low) % (1 << dtype.bits) + low


def _folded(op: Binary, lhs: int, rhs: int) -> int | None:
    """Arithmetic of two constants; None where only a device may say what comes out."""
    rule = _FOLDED.get(op.kind)
    if rule is None or (rhs == 0 and op.kind in ("floordiv", "mod")):
        return None
    return rule(lhs, rhs)


def _power(n: int) -> int:
    return _CAP if n == 0 else min(n & -n, _CAP)

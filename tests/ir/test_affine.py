"""Facts about index scalars: windows, divisibility, sign. Each is held against real numbers."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.kernels import Body, argument, tensor
from warploom.base.dtypes import DType, boolean, f32, i32, i64, u8
from warploom.ir.affine import ScalarFacts
from warploom.ir.op import Value
from warploom.ir.ops import scalar
from warploom.ir.ops import tensor as tensors


class Numbers:
    """Scalars over arguments n, m (i32) and w (i64), and a block index."""

    def __init__(self) -> None:
        self.x = tensor()
        self.n, self.m, self.w = argument(), argument(name="m"), argument(i64, "w")
        self.body = Body(self.x, self.n, self.m, self.w)
        self.facts = ScalarFacts()

    def const(self, number: float, dtype: DType = i32) -> Value:
        return self.body.build.const(number, dtype)

    def cast(self, value: Value, dtype: DType) -> Value:
        return self.body.emit(scalar.Cast(value=value, dtype=dtype))

    def __call__(self, kind: str, lhs: Value | int, rhs: Value | int) -> Value:
        sides = [self.const(v) if isinstance(v, int) else v for v in (lhs, rhs)]
        return self.body.binary(kind, *sides)

    def block(self) -> Value:
        return self.body.emit(scalar.BlockId(axis=0))

    def dim(self, axis: int, x: Value | None = None) -> Value:
        return self.body.emit(scalar.Dim(tensor=x or self.x, axis=axis))


@pytest.fixture
def s() -> Numbers:
    return Numbers()


def test_windows_are_recognised_by_value_not_by_spelling(s: Numbers) -> None:
    difference = s.facts.difference
    assert difference(s("add", s.n, 64), s.n) == 64
    assert difference(s("add", 64, s.m), s.m) == 64
    k = s("add", s.n, 1)
    assert difference(s("mul", k, 32), s("mul", s.n, 32)) == 32
    assert difference(s("mul", s("add", s.block(), 1), 8), s("mul", s.block(), 8)) == 8
    assert difference(s("sub", s.dim(1), 16), s.dim(1)) == -16
    assert difference(s.n, s.m) is None
    assert difference(s.dim(0), s.dim(1)) is None
    assert difference(s("mul", s.n, 3), s("mul", s.n, 2)) is None


def test_what_is_computed_alike_is_equal(s: Numbers) -> None:
    for kind in ("mul", "floordiv", "mod", "max", "min", "and", "shl"):
        one, two = s(kind, s.n, s.m), s("add", s(kind, s.n, s.m), 4)
        assert s.facts.difference(two, one) == 4, kind
    assert s.facts.difference(s("floordiv", s.n, s.m), s("mod", s.n, s.m)) is None
    one = s.body.emit(scalar.Unary(value=s.n, kind="abs"))
    two = s.body.emit(scalar.Unary(value=s.n, kind="neg"))
    assert s.facts.difference(one, two) is None


def test_a_plain_value_is_the_same_number_in_a_wider_type(s: Numbers) -> None:
    wide = s.cast(s.n, i64)
    assert s.facts.difference(s.cast(s.n, i64), wide) == 0
    assert s.facts.difference(s.body.binary("add", wide, s.const(5, i64)), wide) == 5
    # An i32 sum may have wrapped before it was widened.
    assert s.facts.difference(s.cast(s("add", s.n, 5), i64), wide) is None
    assert s.facts.difference(s.cast(s("add", s.n, 5), i64), s.cast(s("add", s.n, 5), i64)) == 0
    # A narrow type need not hold the number.
    assert s.facts.difference(s.cast(s.cast(s.w, i32), i64), s.w) is None
    assert s.facts.difference(s.cast(s.cast(s.n, u8), i32), s.n) is None


def test_loads_are_different_each_time(s: Numbers) -> None:
    x = tensor("1", i32)
    one, two = (s.body.emit(scalar.Load(tensor=x, indices=(s.n,))) for _ in range(2))
    assert s.facts.difference(one, one) == 0
    assert s.facts.difference(one, two) is None


@pytest.mark.parametrize(
    ("kind", "lhs", "rhs", "number"),
    [
        ("add", 2**31 - 1, 1, -(2**31)),
        ("mul", 65536, 65536, 0),
        ("mul", -(2**31), -1, -(2**31)),
        ("floordiv", -7, 2, -4),
        ("mod", -7, 4, 1),
        ("mod", 7, -4, -1),
        ("max", -3, 2, 2),
        ("xor", 5, -1, -6),
        ("floordiv", 1, 0, None),
        ("mod", 1, 0, None),
        ("shl", 1, 40, None),
    ],
)
def test_constants_wrap_as_devices_do(
    s: Numbers, kind: str, lhs: int, rhs: int, number: int | None
) -> None:
    assert s.facts.constant(s(kind, lhs, rhs)) == number


def test_a_wrapped_constant_stays_wrapped_in_a_wider_type(s: Numbers) -> None:
    assert s.facts.constant(s.cast(s("mul", 65536, 65536), i64)) == 0
    assert s.facts.constant(s.cast(s.const(2**32 + 5, i64), i32)) == 5
    assert s.facts.constant(s.cast(s.const(300), u8)) == 44
    assert s.facts.constant(s("sub", s("add", s.n, 2**31 - 1), s("add", s.n, -2))) == -(2**31) + 1


def test_floats_have_no_affine_form(s: Numbers) -> None:
    zero, minus = s.const(0.0, f32), s.const(-0.0, f32)
    assert s.facts.constant(zero) is None
    assert s.facts.affine(zero) != s.facts.affine(minus)
    assert s.facts.constant(s.cast(zero, i32)) is None
    assert s.facts.constant(s.const(True, boolean)) is None


def test_divisors(s: Numbers) -> None:
    divisor = s.facts.divisor
    assert divisor(s("mul", s.n, 24)) == 8
    assert divisor(s("mul", s("mul", s.n, 4), 4)) == 16
    assert divisor(s("add", s("mul", s.n, 16), s("mul", s.m, 4))) == 4
    assert divisor(s("max", s("mul", s.n, 16), 0)) == 16
    assert divisor(s.cast(s("mul", s.n, 8), i64)) == 8
    assert divisor(s.n) == 1
    assert divisor(s("floordiv", s("mul", s.n, 16), 2)) == 1
    assert divisor(s.const(0)) >= 2**20
    assert divisor(s.const(-12)) == 4
    condition = s.body.emit(scalar.Compare(lhs=s.n, rhs=s.m, kind="lt"))
    chosen = scalar.Select(condition=condition, yes=s("mul", s.n, 8), no=s.const(12))
    assert divisor(s.body.emit(chosen)) == 4


def test_loop_indices(s: Numbers) -> None:
    with s.body.loop(s("mul", s.block(), 64), s.n, s.const(32)) as loop:
        inner = s("add", loop.index, 16)
    facts = ScalarFacts.of(s.body.block)
    assert facts.divisor(loop.index) == 32
    assert facts.divisor(inner) == 16
    assert facts.is_nonnegative(loop.index)
    assert facts.difference(inner, loop.index) == 16
    assert not s.facts.is_nonnegative(loop.index)
    with s.body.loop(s.const(100), s.const(0), s.const(-1)) as loop:
        pass
    assert not ScalarFacts.of(s.body.block).is_nonnegative(loop.index)


def test_signs(s: Numbers) -> None:
    positive = s.facts.is_nonnegative
    b, d = s.block(), s.dim(0)
    assert positive(b) and positive(d) and positive(s("mul", b, 16)) and positive(s("add", b, d))
    assert positive(s("min", b, d)) and positive(s("max", s.n, 0)) and positive(s("mod", s.n, 7))
    assert positive(s("and", s.n, 7)) and positive(s("floordiv", b, 2)) and positive(s("shr", b, 1))
    assert positive(s.cast(b, i64))
    assert not positive(s.n)
    assert not positive(s("sub", b, d)) and not positive(s("min", s.n, b))
    # What is divided by zero remains.
    assert positive(s("mod", b, d)) and not positive(s("mod", s.n, d))
    assert not positive(s("mod", b, s.n)) and not positive(s("floordiv", b, s.n))
    assert not positive(s("mul", s.const(-1), b)) and not positive(s("xor", s.n, s.n))
    # The low 32 bits of a large number may be a negative one.
    assert not positive(s.cast(s.cast(b, i64), i32))
    assert not positive(s.cast(s.const(-0.5, f32), i32))


def test_long_chains_need_no_stack(s: Numbers) -> None:
    value = s.n
    for _ in range(3000):
        value = s("add", value, 1)
    assert s.facts.difference(value, s.n) == 3000
    square = s.block()
    for _ in range(200):  # each value twice an operand: 2**200 paths
        square = s("mul", square, square)
    assert s.facts.is_nonnegative(square)


def test_extents_of_a_view_are_its_own(s: Numbers) -> None:
    view = s.body.emit(tensors.Rows(tensor=s.x, lo=s.const(0), hi=s.n))
    assert s.facts.difference(s.dim(0, view), s.dim(0)) is None


KINDS = ("add", "sub", "mul", "max", "min", "mod", "floordiv", "and")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_facts_hold_for_real_numbers(data: st.DataObject) -> None:
    """Random expressions, evaluated: constants, divisors and signs are never wrong."""
    s = Numbers()
    leaves = [s.block(), s.n, s.m, *(s.const(c) for c in (0, 1, 8, -12, 64))]
    pool = list(leaves)
    for _ in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(KINDS))
        pool.append(s(kind, data.draw(st.sampled_from(pool)), data.draw(st.sampled_from(pool))))
    for b, n, m in itertools.product((0, 3, 40), (-17, 0, 24), (-8, 5)):
        numbers = {leaves[0]: b, s.n: n, s.m: m}
        for value in pool:
            try:
                number = evaluate(value, numbers)
            except ZeroDivisionError:
                continue
            constant = s.facts.constant(value)
            assert constant is None or constant == number
            assert number % s.facts.divisor(value) == 0
            assert number >= 0 or not s.facts.is_nonnegative(value)


def evaluate(value: Value, numbers: dict[Value, int]) -> int:
    op = value.owner
    if value not in numbers:
        if isinstance(op, scalar.Const):
            numbers[value] = int(op.number)
        else:
            assert isinstance(op, scalar.Binary)
            a, b = evaluate(op.lhs, numbers), evaluate(op.rhs, numbers)
            if b == 0 and op.kind in ("mod", "floordiv"):
                raise ZeroDivisionError
            rule = {
                "add": int.__add__,
                "sub": int.__sub__,
                "mul": int.__mul__,
                "max": max,
                "min": min,
                "mod": int.__mod__,
                "floordiv": int.__floordiv__,
                "and": int.__and__,
            }[op.kind]
            numbers[value] = rule(a, b)
            if abs(numbers[value]) >= 2**31:  # index arithmetic is taken not to overflow
                raise ZeroDivisionError
    return int(np.int64(numbers[value]))

"""Arithmetic of the contract: zeros, NaN, wrap-around, one rounding."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.base.dtypes import BY_NAME, bf16, f16, f32, i32, i64, u32
from warploom.sim import arithmetic

FLOATS = (f32, f16, bf16, BY_NAME["f64"])
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, 3.0e-39, -3.0e-39, math.inf, -math.inf, math.nan]


def bits(array, dtype):
    """Bits, NaN as one class."""
    array = np.asarray(array)
    held = array.view(ml_dtypes.bfloat16) if dtype == bf16 else array
    word = {2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize]
    return np.where(np.isnan(held.astype(np.float64)), word(0xFFFF), held.view(word))


def carried(numbers, dtype):
    with np.errstate(all="ignore"):
        array = np.array(numbers, np.float64).astype(dtype.numpy)
    return array.view(np.uint16) if dtype == bf16 else array


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kind", ["max", "min"])
def test_extremes_order_zeros_and_propagate_nan(kind, dtype):
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL]
    a, b = (carried([p[i] for p in pairs], dtype) for i in (0, 1))
    with np.errstate(all="ignore"):
        found = arithmetic.binary(kind, dtype)(a, b)

    def choose(x, y):
        if math.isnan(x) or math.isnan(y):
            return math.nan
        key = [(x, math.copysign(1, x)), (y, math.copysign(1, y))]
        return (max if kind == "max" else min)(zip(key, (x, y), strict=True))[1]

    assert np.array_equal(
        bits(found, dtype), bits(carried([choose(*p) for p in pairs], dtype), dtype)
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div"])
def test_float_arithmetic_rounds_once(kind, dtype):
    rng = np.random.default_rng(3)
    reach = 6 if dtype == f16 else 20
    a, b = (
        carried((1 + rng.random(500)) * 2.0 ** rng.integers(-reach, reach, 500), dtype)
        for _ in "ab"
    )
    wide = [v.view(ml_dtypes.bfloat16) if dtype == bf16 else v for v in (a, b)]
    found = arithmetic.binary(kind, dtype)(a, b)
    op = {"add": "__add__", "sub": "__sub__", "mul": "__mul__", "div": "__truediv__"}[kind]
    exact = [
        getattr(Fraction(float(x)), op)(Fraction(float(y))) for x, y in zip(*wide, strict=True)
    ]
    shown = found.view(ml_dtypes.bfloat16) if dtype == bf16 else found
    for value, truth in zip(shown, exact, strict=True):
        neighbours = [np.nextafter(value, dtype.numpy.type(s * np.inf)) for s in (1, -1)]
        error = abs(Fraction(float(value)) - truth)
        assert all(
            error <= abs(Fraction(float(n)) - truth) for n in neighbours if np.isfinite(float(n))
        )


def round_f32(exact):
    """A fraction as float32, to nearest even, by bisection of the two neighbours."""
    guess = np.float32(float(exact))
    around = {
        guess,
        np.nextafter(guess, np.float32(np.inf)),
        np.nextafter(guess, np.float32(-np.inf)),
    }
    finite = [v for v in around if np.isfinite(v)]
    return min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1))


BITS = st.integers(0, 2**32 - 1).map(lambda b: np.uint32(b).view(np.float32))
SHORT = st.builds(
    lambda m, e: np.float32(math.ldexp(m, e)), st.integers(-4096, 4096), st.integers(-80, 20)
)


@given(st.lists(st.tuples(SHORT, SHORT, SHORT) | st.tuples(BITS, BITS, BITS), min_size=1))
@settings(max_examples=300, deadline=None)
def test_fma_rounds_once(triples):
    a, b, c = (np.array([t[i] for t in triples], np.float32) for i in range(3))
    with np.errstate(all="ignore"):
        found = arithmetic.fma(a, b, c)
    for x, y, z, value in zip(a, b, c, found, strict=True):
        if not all(np.isfinite(v) for v in (x, y, z)) or not np.isfinite(value):
            continue
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        expected = round_f32(exact)
        assert value == expected
        if exact == 0:
            assert value == 0


def test_fma_where_two_roundings_go_wrong():
    """1 + 2^-24 + 2^-60 is above the tie: rounding through float64 loses the last term."""
    a = np.float32([1 + 2**-12, 2.0**-75, 3.0])
    b = np.float32([2.0**-12, 2.0**-75, 1.0])
    c = np.float32([1.0, 2.0**-149, -3.0])
    found = arithmetic.fma(a, b, c)
    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        for x, y, z in zip(a, b, c, strict=True)
    ]
    assert found.tolist() == [float(round_f32(e)) for e in exact]
    tie = arithmetic.fma(np.float32([2.0**-30]), np.float32([2.0**-30]), np.float32([1 + 2.0**-23]))
    assert tie[0] == np.float32(1 + 2.0**-23)


def test_fma_of_infinities_and_nan():
    inf, nan = np.float32(np.inf), np.float32(np.nan)
    with np.errstate(all="ignore"):
        found = arithmetic.fma(
            np.float32([inf, inf, 1, 3e38, 0]),
            np.float32([1, 0, 1, 3e38, 5]),
            np.float32([-inf, 1, nan, 0, -0.0]),
        )
    assert np.isnan(found[:3]).all()
    assert found[3] == inf
    assert found[4] == 0
    assert not np.signbit(found[4])


INTEGERS = {
    i32: [0, 1, -1, 2, -7, 7, 2**31 - 1, -(2**31), 33],
    i64: [0, 1, -1, -7, 7, 2**63 - 1, -(2**63), 65],
    u32: [0, 1, 7, 2**32 - 1, 2**31, 40],
}


def expected_integer(kind, a, b, dtype):
    """The rule of the contract on Python integers."""
    bits_ = dtype.bits
    if kind == "floordiv":
        r = a // b if b else 0
    elif kind == "mod":
        r = a % b if b else a
    elif kind == "shl":
        r = a << b if 0 <= b < bits_ else 0
    elif kind == "shr":
        r = a >> b if 0 <= b < bits_ else (-1 if a < 0 else 0)
    else:
        r = {
            "add": a + b, "sub": a - b, "mul": a * b, "max": max(a, b), "min": min(a, b),
            "and": a & b, "or": a | b, "xor": a ^ b,
        }[kind]  # fmt: skip
    r &= (1 << bits_) - 1
    return r - (1 << bits_) if dtype.name[0] == "i" and r >> (bits_ - 1) else r


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize(
    "kind",
    ["add", "sub", "mul", "floordiv", "mod", "max", "min", "and", "or", "xor", "shl", "shr"],
)
def test_integers_wrap_and_never_trap(kind, dtype):
    pairs = [(a, b) for a in INTEGERS[dtype] for b in INTEGERS[dtype]]
    expected = [expected_integer(kind, a, b, dtype) for a, b in pairs]
    a, b = (np.array([p[i] for p in pairs], dtype.numpy) for i in (0, 1))
    with np.errstate(all="ignore"):
        assert arithmetic.binary(kind, dtype)(a, b).tolist() == expected
        # Scalars: numbers among themselves, and numbers with arrays over blocks.
        f = arithmetic.scalar_binary(kind, dtype)
        assert [f(x, y) for x, y in pairs] == expected
        for (x, y), r in zip(pairs, expected, strict=True):
            mixed = f(np.full((2, 1, 1), x, dtype.numpy), y)
            assert mixed.dtype == dtype.numpy
            assert mixed.reshape(-1).tolist() == [r, r]


@pytest.mark.parametrize("dtype", [i32, u32], ids=str)
def test_unary_integers(dtype):
    numbers = INTEGERS[dtype]
    array = np.array(numbers, dtype.numpy)
    for kind in ("neg", "abs", "not"):
        found = arithmetic.unary(kind, dtype)(array)
        assert [arithmetic.scalar_unary(kind, dtype)(n) for n in numbers] == found.tolist()
    assert arithmetic.unary("abs", i32)(np.int32([-(2**31)]))[0] == -(2**31)


def test_bool_scalars_stay_bool():
    assert arithmetic.scalar_binary("and", BY_NAME["bool"])(True, False) is False
    assert arithmetic.scalar_unary("not", BY_NAME["bool"])(True) is False
    array = np.array([[[True]], [[False]]])
    assert arithmetic.scalar_binary("or", BY_NAME["bool"])(array, False).tolist() == array.tolist()
    assert arithmetic.scalar_compare("lt", f32)(np.float32(1), np.float32(2)) is True


def test_bf16_signs():
    values = carried([0.0, -0.0, 1.5, math.nan, -math.inf], bf16)
    assert np.array_equal(
        bits(arithmetic.unary("neg", bf16)(values), bf16),
        bits(carried([-0.0, 0.0, -1.5, math.nan, math.inf], bf16), bf16),
    )
    assert np.array_equal(
        bits(arithmetic.unary("abs", bf16)(values), bf16),
        bits(carried([0.0, 0.0, 1.5, math.nan, math.inf], bf16), bf16),
    )

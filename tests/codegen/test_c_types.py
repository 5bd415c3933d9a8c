"""Literals: the same bits as the constant rounded to its dtype."""

import math
import re

import ml_dtypes
import numpy as np
import pytest

from warploom.base.dtypes import bf16, boolean, f16, f32, f64, i8, i32, i64, u32, u64
from warploom.codegen.c_types import literal


@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, 0.1, -1e-45, 3.4e38, 16777217, 1e-8, 2.5e10])
def test_f32_literals_read_back(number):
    text = literal(number, f32).strip("()")
    assert text.endswith("f")
    back = np.float32(text[:-1])
    assert back.tobytes() == np.float32(number).tobytes()


@pytest.mark.parametrize("number", [0.1, -0.0, 1e300, 5e-324])
def test_f64_literals_read_back(number):
    assert float(literal(number, f64).strip("()")) == number


def test_floats_without_digits():
    assert literal(math.inf, f32) == "__int_as_float(0x7f800000)"
    assert literal(-math.inf, f32) == "__int_as_float(0xff800000)"
    assert literal(1e39, f32) == "__int_as_float(0x7f800000)"
    assert literal(math.nan, f32) == "__int_as_float(0x7fffffff)"
    assert "0xfff0000000000000ll" in literal(-math.inf, f64)


@pytest.mark.parametrize(("dtype", "kind"), [(f16, np.float16), (bf16, ml_dtypes.bfloat16)])
@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, 0.1, -3.14159, 1e30])
def test_halves_are_spelt_by_their_bits(dtype, kind, number):
    found = re.match(rf"{dtype.name}\{{0x([0-9a-f]{{4}})\}}", literal(number, dtype))
    assert found
    with np.errstate(over="ignore"):
        expected = np.array(number).astype(kind).view(np.uint16)
    assert int(found.group(1), 16) == int(expected)


@pytest.mark.parametrize(
    ("number", "dtype", "text"),
    [
        (5, i32, "5"),
        (-5, i32, "(-5)"),
        (-(2**31), i32, "(-2147483647 - 1)"),
        (-(2**63), i64, "(-9223372036854775807ll - 1)"),
        (2**32 + 3, i32, "3"),
        (-1, u32, "4294967295u"),
        (7, u64, "7ull"),
        (-128, i8, "(-128)"),
        (True, boolean, "true"),
        (0, boolean, "false"),
    ],
)
def test_integers(number, dtype, text):
    assert literal(number, dtype) == text

"""Casts: rounding, saturation, NaN, on arrays and on scalars alike."""

import math

import ml_dtypes
import numpy as np
import pytest

from warploom.base.dtypes import ALL, BY_NAME, bf16, boolean, f16, f32, i32, i64
from warploom.sim.conversions import conversion, narrow_bf16, scalar_conversion, widen_bf16
from warploom.sim.values import carrier


def test_bf16_equals_ml_dtypes():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    values = np.concatenate([values, np.float32([0, -0.0, np.inf, -np.inf, 3.4e38, 1e-40])])
    real = ~np.isnan(values)
    with np.errstate(all="ignore"):
        expected = values[real].astype(ml_dtypes.bfloat16).view(np.uint16)
    assert np.array_equal(narrow_bf16(values)[real], expected)
    assert np.isnan(widen_bf16(narrow_bf16(values[~real]))).all()


def test_bf16_ties_go_to_even():
    ties = np.float32([1 + 2**-8, 1 + 3 * 2**-8, -(1 + 2**-8)])
    assert widen_bf16(narrow_bf16(ties)).tolist() == [1.0, 1 + 2**-6, -1.0]


@pytest.mark.parametrize("source", ["f32", "f16", "bf16", "f64"])
@pytest.mark.parametrize("target", ["i8", "u8", "i16", "i32", "u32", "i64", "u64"])
def test_floats_saturate_to_integers(source, target):
    from_type, to_type = BY_NAME[source], BY_NAME[target]
    numbers = [0.0, -0.9, 1.9, -1.9, 2.5, 1e30, -1e30, math.inf, -math.inf, math.nan, 200.0, -200.0]
    numbers += [2.0**31, 2.0**31 - 128, 2.0**63, -(2.0**31), -(2.0**63)]
    with np.errstate(all="ignore"):
        array = np.array(numbers).astype(from_type.numpy)
        found = conversion(from_type, to_type)(array.view(carrier(from_type)))
    info = np.iinfo(to_type.numpy)
    for value, result in zip(array, found, strict=True):
        value = float(value)
        if math.isnan(value):
            expected = 0
        elif math.isinf(value):
            expected = info.max if value > 0 else info.min
        else:
            expected = min(max(math.trunc(value), info.min), info.max)
        assert int(result) == expected, value


@pytest.mark.parametrize("source", ALL, ids=str)
@pytest.mark.parametrize("target", ALL, ids=str)
def test_scalars_convert_like_arrays(source, target):
    numbers = [0, 1, 2, 100] if source.kind.value == "uint" else [0, 1, -2, 100]
    if source == boolean:
        numbers = [False, True]
    with np.errstate(all="ignore"):
        array = np.array(numbers).astype(source.numpy).view(carrier(source))
        converted = conversion(source, target)(array)
        assert converted.dtype == carrier(target)
        for held, expected in zip(array, converted, strict=True):
            scalar = held if source.is_float else held.item()
            found = scalar_conversion(source, target)(scalar)
            assert found == expected
            if target.is_int or target == boolean:
                assert type(found) in (int, bool)
            block = np.full((2, 1, 1), held)
            assert (scalar_conversion(source, target)(block) == expected).all()


def test_wide_integers_reach_16_bits_by_way_of_f32():
    number = np.int32([2**24 + 2**15 + 1])  # above a tie of bf16 only before it is rounded to f32
    once = conversion(i32, bf16)(number)
    twice = narrow_bf16(number.astype(np.float32))
    assert np.array_equal(once, twice)
    assert conversion(i64, f16)(np.int64([2049]))[0] == np.float16(2048)


def test_to_bool_tests_for_non_zero():
    values = np.float32([0.0, -0.0, 1e-45, math.nan, -1])
    assert conversion(f32, boolean)(values).tolist() == [False, False, True, True, True]
    assert conversion(bf16, boolean)(np.uint16([0x8000, 1, 0])).tolist() == [False, True, False]
    assert scalar_conversion(bf16, boolean)(np.uint16(0x8000)) is False


def test_f32_to_f16_overflows_to_infinity():
    with np.errstate(all="ignore"):
        found = conversion(f32, f16)(np.float32([65520.0, 65519.0, -1e9, 6e-8]))
    assert found.tolist() == [math.inf, 65504.0, -math.inf, float(np.float16(6e-8))]

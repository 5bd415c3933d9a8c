"""Which shapes fit, and what a Python number becomes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.trial import nearest_f8
from warploom.base import dtypes
from warploom.ir.builder import Builder
from warploom.ir.op import Block, Value
from warploom.ir.types import Tile
from warploom.language import core
from warploom.language.context import Building, Refused, building

SHAPES = st.lists(st.sampled_from([1, 2, 3, 5]), max_size=4).map(tuple)


@pytest.fixture
def kernel():
    """A kernel under construction."""
    with building(Building(Builder(Block()))) as held:
        yield held


@given(SHAPES, SHAPES)
def test_shapes_fit_as_in_numpy(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        expected = None
    assert core.broadcast_shape(a, b) == expected


@given(SHAPES, SHAPES)
def test_operands_are_spread_to_the_common_shape(a, b):
    with building(Building(Builder(Block()))):
        x, y = (Value(Tile(dtypes.f32, shape), name) for shape, name in ((a, "x"), (b, "y")))
        expected = core.broadcast_shape(a, b)
        if expected is None:
            with pytest.raises(Refused) as caught:
                core.binary("add", x, y)
            assert caught.value.code == "T005"
        else:
            assert core.shape_of(core.binary("add", x, y)) == expected


@pytest.mark.parametrize("dtype", [t for t in dtypes.ALL if t.is_int])
def test_limits_are_those_of_numpy(dtype):
    info = np.iinfo(dtype.numpy)
    assert core.int_limits(dtype) == (info.min, info.max)


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (1, dtypes.f32),
        (-0.0, dtypes.f16),
        (math.inf, dtypes.bf16),
        (1e300, dtypes.f64),
        (3.4e38, dtypes.f32),
        (65504.0, dtypes.f16),
        (448.0, dtypes.f8e4m3),
        (-(2.0**-9), dtypes.f8e4m3),
        (-57344.0, dtypes.f8e5m2),
        (-0.0, dtypes.f8e5m2),
        (True, dtypes.boolean),
        (0, dtypes.boolean),
        (True, dtypes.i32),
        (-(2**31), dtypes.i32),
        (2**63 - 1, dtypes.i64),
        (255, dtypes.u8),
    ],
)
def test_numbers_that_fit(kernel, number, dtype):
    op = core.literal(number, dtype).owner
    assert op.number == number
    assert type(op.number) is (bool if dtype.is_bool else float if dtype.is_float else int)
    assert math.copysign(1, op.number) == math.copysign(1, number)


@pytest.mark.parametrize("name", ["f8e4m3", "f8e5m2"])
def test_numbers_are_rounded_once_to_eight_bits(kernel, name):
    dtype = dtypes.BY_NAME[name]
    near = np.arange(120, dtype=np.uint8).view(dtype.numpy).astype(np.float64)
    ties = (near[1:] + near[:-1]) / 2
    for number in (*ties, *np.nextafter(ties, np.inf), *np.nextafter(ties, 0), 1e-30):
        assert core.literal(float(number), dtype).owner.number == nearest_f8(number, name)


@pytest.mark.parametrize(
    ("number", "dtype", "code"),
    [
        (0.5, dtypes.i32, "T002"),
        (1.0, dtypes.i64, "T002"),
        (2**31, dtypes.i32, "T003"),
        (-1, dtypes.u8, "T003"),
        (1e39, dtypes.f32, "T003"),
        (65520.0, dtypes.f16, "T003"),
        (449, dtypes.f8e4m3, "T003"),
        (math.inf, dtypes.f8e5m2, "T003"),
        (2, dtypes.boolean, "T003"),
    ],
)
def test_numbers_that_do_not_fit(kernel, number, dtype, code):
    with pytest.raises(Refused) as caught:
        core.literal(number, dtype)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (True, dtypes.boolean),
        (1, dtypes.i32),
        (2**31, dtypes.i64),
        (1.0, dtypes.f32),
    ],
)
def test_natural_dtypes(number, dtype):
    assert core.natural_dtype(number) == dtype


@pytest.mark.parametrize("kind", ["add", "and", "div", "floordiv", "mod", "shl", "max", "lt"])
@pytest.mark.parametrize("dtype", [t for t in dtypes.ALL if t.bits >= 16 or not t.is_int])
def test_what_the_language_takes_the_ir_takes(kernel, kind, dtype):
    # A refusal comes from the language, in its words, and never from the declaration of the IR.
    x = Value(Tile(dtype, (4,)), "x")
    try:
        made = core.compare(kind, x, x) if kind == "lt" else core.binary(kind, x, x)
    except Refused as refused:
        assert refused.code == "T004" and refused.hint
    else:
        assert core.dtype_of(made) == (dtypes.boolean if kind == "lt" else dtype)


@pytest.mark.parametrize("kind", ["neg", "abs", "not", "round", "exp", "sqrt", "rsqrt", "erf"])
@pytest.mark.parametrize("dtype", [t for t in dtypes.ALL if t.bits >= 16 or not t.is_int])
def test_what_the_language_takes_the_ir_takes_unary(kernel, kind, dtype):
    x = Value(Tile(dtype, (4,)), "x")
    try:
        made = core.unary(kind, x)
    except Refused as refused:
        assert refused.code == "T004" and refused.hint
    else:
        assert core.dtype_of(made) == dtype

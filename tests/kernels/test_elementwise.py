"""Addition of arrays of one and two axes."""

import ml_dtypes
import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels import elementwise
from warploom.kernels.elementwise import reference


@pytest.mark.parametrize("shape", [(1,), (1100,), (0, 7), (1, 1), (17, 80), (3, 2500)])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_add(device, randn, shape, dtype):
    a, b = randn(shape, dtype), randn(shape, "f32")
    out = device.empty(shape, np.float32)
    elementwise.add(device.put(a), device.put(b), out)
    assert np.array_equal(device.get(out), reference.add(a, b))


def test_one_rounding(device, randn):
    a, b = randn((3, 70), "bf16"), randn((3, 70), "bf16")
    out = device.empty((3, 70), ml_dtypes.bfloat16)
    elementwise.add(device.put(a), device.put(b), out)
    assert np.array_equal(device.get(out), reference.add(a, b).astype(ml_dtypes.bfloat16))


def test_in_place(device, randn):
    a, b = randn((3, 70)), randn((3, 70))
    both = device.put(a)
    elementwise.add(both, device.put(b), both)
    assert np.array_equal(device.get(both), a + b)


@pytest.mark.parametrize("how", ["strided", "offset", "transposed"])
def test_views(device, randn, seen_as, how):
    a, b = randn((17, 80)), randn((17, 80), "bf16")
    out = device.put_strided(seen_as(np.zeros((17, 80), np.float32), how))
    elementwise.add(device.put_strided(seen_as(a, how)), device.put_strided(seen_as(b, how)), out)
    assert np.array_equal(device.get(out), reference.add(a, b))


def test_wrong_arguments(randn):
    with pytest.raises(ShapeError, match="`b` has 1 axes where"):
        elementwise.add(randn((2, 8)), randn(8), randn((2, 8)))

"""Positions that count on the device."""

import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels import position
from warploom.kernels.position import reference


@pytest.mark.parametrize("count", [0, 1, 5, 1024])
@pytest.mark.parametrize("by", [1, -3])
def test_advance(device, count, by):
    before = np.arange(count, dtype=np.int32) * 7
    positions = device.put(before)
    position.advance(positions, by)
    assert np.array_equal(device.get(positions), reference.advance(before, by))


def test_wrong_arguments():
    with pytest.raises(ShapeError, match="1025 positions are too many"):
        position.advance(np.zeros(1025, np.int32))
    with pytest.raises(ShapeError, match="`positions` is i64"):
        position.advance(np.zeros(2, np.int64))

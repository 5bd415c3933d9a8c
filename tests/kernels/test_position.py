"""Positions that advance on the device."""

import numpy as np
import pytest

from warploom.base.errors import ShapeError
from warploom.kernels import position
from warploom.kernels.position import reference


@pytest.mark.parametrize("count", [1, 2, 5, 8, 1000])
@pytest.mark.parametrize("by", [1, -3, 2**20])
def test_every_position_moves(device, count, by):
    before = np.arange(count, dtype=np.int32) * 7
    positions = device.put(before)
    position.advance(positions, by)
    position.advance(positions)
    wanted = reference.advance(reference.advance(before, by))
    np.testing.assert_array_equal(device.get(positions), wanted)


def test_only_the_view_moves(device):
    positions = device.put(np.zeros(8, np.int32))
    position.advance(positions[2:5])
    assert device.get(positions).tolist() == [0, 0, 1, 1, 1, 0, 0, 0]


def test_no_position_is_fine():
    position.advance(np.zeros(0, np.int32))


def test_wrong_arguments():
    with pytest.raises(ShapeError, match="`positions` is i64"):
        position.advance(np.zeros(3, np.int64))
    with pytest.raises(ShapeError, match="too many"):
        position.advance(np.zeros(2000, np.int32))

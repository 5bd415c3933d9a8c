"""What the devices of tests promise about memory: copies, strides, offsets."""

import ml_dtypes
import numpy as np
import pytest

from warploom.testing.devices import SimDevice, owner_of

BASE = np.arange(120, dtype=np.float32).reshape(10, 12)
VIEWS = {
    "offset": lambda a: a[2:5, 3:9],
    "step": lambda a: a[::3, ::2],
    "transposed": lambda a: a.T,
    "backwards": lambda a: a[::-1, 1::5],
    "fortran": lambda a: np.asfortranarray(a)[1:, 2:],
    "empty": lambda a: a[3:3],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int16])
def test_put_strided_keeps_values_strides_and_offset(name: str, dtype: type) -> None:
    view = VIEWS[name](BASE.astype(dtype))
    copy = SimDevice().put_strided(view)
    assert copy.dtype == view.dtype
    assert copy.strides == view.strides
    assert np.array_equal(copy, view)
    assert owner_of(copy)[1] == owner_of(view)[1]
    if copy.size:
        copy[...] = 0
        assert not np.array_equal(copy, view), "the copy shares memory with the original"


def test_an_owner_that_is_itself_strided_is_refused() -> None:
    odd = np.ndarray((4, 4), np.float32, bytearray(256), 0, (64, 8))
    with pytest.raises(ValueError, match="itself strided"):
        owner_of(odd)


def test_put_copies_and_makes_contiguous() -> None:
    source = BASE[:, ::2]
    copy = SimDevice().put(source)
    assert copy.flags.c_contiguous
    copy[...] = -1
    assert BASE[0, 0] == 0


def test_empty_is_not_zero() -> None:
    assert (SimDevice().empty((3, 5), np.int32) == np.int32(-1515870811)).all()
    assert SimDevice().empty(7, ml_dtypes.bfloat16).shape == (7,)

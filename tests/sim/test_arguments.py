"""Arrays as arguments: the memory between the outermost elements, and where they start."""

import ml_dtypes
import numpy as np
import pytest

from warploom.base.dtypes import bf16, f32
from warploom.sim.arguments import TensorArg, tensor_argument

BASE = np.arange(60, dtype=np.float32).reshape(5, 12)
VIEWS = {
    "whole": BASE,
    "rows": BASE[1:4],
    "columns": BASE[:, 2:7],
    "strided": BASE[::2, ::3],
    "transposed": BASE.T,
    "backwards": BASE[::-1, 3:],
    "backwards twice": BASE[::-2, ::-1],
    "repeated": np.broadcast_to(BASE[2], (3, 12)),
    "one": BASE[2:3, 4:5],
    "row": BASE[3],
    "scalar": BASE[2, 3:4].reshape(()),
    "three axes": BASE.reshape(5, 3, 4)[:, ::-1, 1:],
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_element_is_found(name):
    view = VIEWS[name]
    arg = tensor_argument(view)
    assert arg.dtype == f32
    assert arg.shape == view.shape
    for index in np.ndindex(*view.shape):
        place = arg.base + sum(i * s for i, s in zip(index, arg.strides, strict=True))
        assert arg.flat[place] == view[index]
    # Nothing beyond the outermost elements belongs to the argument.
    assert arg.flat[0] in (view.min(), view.max())
    assert arg.flat[-1] in (view.min(), view.max())


def test_writing_through_an_argument():
    memory = np.zeros((4, 6), np.float32)
    arg = tensor_argument(memory[::-1, 1:3])
    arg.flat[arg.base + arg.strides[0] * 1 + arg.strides[1] * 1] = 7
    assert memory[2, 2] == 7
    assert memory.sum() == 7


def test_read_only_arrays_stay_read_only():
    array = np.arange(4, dtype=np.float32)
    array.flags.writeable = False
    arg = tensor_argument(array)
    assert not arg.flat.flags.writeable
    assert not arg.memory.writable


def test_empty_arrays_have_no_memory():
    for shape in ((0,), (3, 0), (0, 5)):
        arg = tensor_argument(np.zeros(shape, np.float32))
        assert arg.flat.size == 0
        assert arg.memory.size == 0


def test_given_strides_and_bf16():
    arg = TensorArg(np.zeros((1, 4), ml_dtypes.bfloat16), (99, 1))
    assert arg.strides == (99, 1)
    assert arg.dtype == bf16
    assert arg.memory.flat.dtype == np.uint16


def test_what_cannot_be_an_argument():
    with pytest.raises(ValueError, match="complex64"):
        tensor_argument(np.zeros(3, np.complex64))
    records = np.zeros(4, np.dtype([("a", np.float32), ("b", np.int16)]))
    with pytest.raises(ValueError, match="multiples of 4 bytes"):
        tensor_argument(records["a"])


def test_alignment_is_that_of_the_real_address():
    array = np.zeros(64, np.float32)
    start = array.__array_interface__["data"][0] // 4
    for shift in range(4):
        assert tensor_argument(array[shift:]).memory.unit % 16 == (start + shift) % 16

"""Views seen otherwise, and arrays made beside others: the values are NumPy's, no memory moves."""

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warploom.base.dtypes import bf16, f32
from warploom.runtime import arrays, memory


@st.composite
def cubes(draw: st.DrawFn) -> np.ndarray:
    """Arrays of three axes, contiguous or seen in steps, some axes of one element or none."""
    shape = draw(st.tuples(*[st.integers(0, 4)] * 3))
    steps = draw(st.tuples(*[st.integers(1, 2)] * 3))
    order = draw(st.permutations(range(3)))
    whole = np.arange(np.prod([n * s for n, s in zip(shape, steps, strict=True)]))
    whole = whole.astype(np.float32).reshape([n * s for n, s in zip(shape, steps, strict=True)])
    return whole[tuple(slice(None, None, s) for s in steps)].transpose(order)


def same(view: arrays.View, expected: np.ndarray) -> None:
    assert view.host is not None
    assert view.shape == expected.shape
    assert np.array_equal(view.host, expected)
    if expected.size:
        assert view.address == view.host.ctypes.data
        moving = [i for i, n in enumerate(view.shape) if n > 1]
        real = [stride // 4 for stride in view.host.strides]
        assert [view.strides[i] for i in moving] == [real[i] for i in moving]


@given(cubes())
def test_axes_exchanged_and_the_first_one_taken(array: np.ndarray) -> None:
    view = arrays.read(array, "x")
    same(view.turned, array.swapaxes(1, 2))
    if array.shape[0]:
        same(view.first, array[0])
        same(view.first.turned, array[0].T)


@given(cubes())
def test_two_axes_become_one_where_no_copy_is_needed(array: np.ndarray) -> None:
    made = arrays.read(array, "x").merged
    shape = (array.shape[0] * array.shape[1], array.shape[2])
    try:
        expected = array.reshape(shape, copy=False)
    except ValueError:
        assert made is None
        return
    if made is not None:
        same(made, expected)
    else:  # an array without elements may be refused although any shape would do
        assert not array.size


def test_a_view_is_an_argument() -> None:
    view = arrays.read(np.zeros((2, 3), np.float32), "x")
    assert arrays.read(view, "y") is view


@pytest.mark.parametrize("dtype", [f32, bf16])
def test_an_array_beside_numpys(dtype) -> None:
    made = memory.empty_like(np.zeros(3), (2, 5), dtype)
    assert made.shape == (2, 5) and made.dtype == dtype.numpy and made.flags.c_contiguous


def test_an_array_beside_cupys(monkeypatch) -> None:
    """CuPy makes it on the device of the other one; no GPU needed to see that."""
    entered: list[str] = []

    @contextmanager
    def device():
        entered.append("device of the other array")
        yield

    class Fake:
        def __init__(self) -> None:
            self.device = device()

    def empty(shape, dtype):
        return SimpleNamespace(shape=shape, dtype=dtype, inside=list(entered))

    cupy = ModuleType("cupy")
    vars(cupy).update(ndarray=Fake, empty=empty)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    made = memory.empty_like(Fake(), (4,), bf16)
    assert made.shape == (4,) and made.dtype == ml_dtypes.bfloat16
    assert made.inside == ["device of the other array"]


@pytest.mark.torch
def test_an_array_beside_torchs() -> None:
    import torch

    made = memory.empty_like(torch.zeros(3, dtype=torch.int32), (2, 5), bf16)
    assert isinstance(made, torch.Tensor)
    assert made.shape == (2, 5) and made.dtype is torch.bfloat16
    assert memory.element_type(torch.bfloat16) is bf16

"""Words of a GPU launch: order, widths, and the pointers that the driver follows."""

import ctypes

import numpy as np
import pytest

from warploom.base import dtypes
from warploom.ir.kernel import Kernel
from warploom.ir.op import Block, Value
from warploom.ir.types import Scalar, Tensor, TensorClass
from warploom.runtime.argument_class import geometry, tensor_type
from warploom.runtime.arrays import read
from warploom.runtime.packing import Pack, layout_of

TYPES = {
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "bool": ctypes.c_bool,
}


def kernel(*types: Tensor | Scalar) -> Kernel:
    return Kernel("k", tuple(Value(t, f"p{i}") for i, t in enumerate(types)), Block())


def words(pack: Pack, *kinds: type) -> list[object]:
    """What a driver would read through the pointers."""
    pointers = ctypes.cast(pack.address, ctypes.POINTER(ctypes.c_void_p))
    return [ctypes.cast(pointers[i], ctypes.POINTER(k)).contents.value for i, k in enumerate(kinds)]


def test_a_tensor_gives_address_extents_and_free_strides() -> None:
    array = np.zeros((4, 6, 8), np.float32)[:, ::2]
    view = read(array, "x")
    found = geometry(view)
    strides = found.strides
    layout = layout_of(kernel(tensor_type(found.plain), Scalar(dtypes.f32), Scalar(dtypes.i64)))
    assert layout.count == 8
    pack = Pack(layout)
    pack.fill(layout.values([view, 1.5, -3], [strides, None, None]))
    kinds = (ctypes.c_uint64, *[ctypes.c_int32] * 5, ctypes.c_float, ctypes.c_int64)
    assert words(pack, *kinds) == [array.ctypes.data, 4, 3, 8, 48, 16, 1.5, -3]


def test_a_wide_tensor_has_wide_words() -> None:
    cls = TensorClass("n1", wide=True)
    layout = layout_of(kernel(Tensor(dtypes.u8, 2, cls)))
    view = read(np.zeros((2, 2), np.uint8), "x")
    view.shape, view.address = (3, 5), 2**40
    pack = Pack(layout)
    pack.fill(layout.values([view], [(2**31 + 16, 1)]))
    kinds = (ctypes.c_uint64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    assert words(pack, *kinds) == [2**40, 3, 5, 2**31 + 16]


@pytest.mark.parametrize(("name", "value"), [("i32", -7), ("f64", 0.1), ("bool", True)])
def test_scalars(name: str, value: object) -> None:
    layout = layout_of(kernel(Scalar(dtypes.BY_NAME[name])))
    pack = Pack(layout)
    pack.fill(layout.values([value], [None]))
    assert words(pack, TYPES[name]) == [value]


def test_bf16_scalars_are_bits() -> None:
    layout = layout_of(kernel(Scalar(dtypes.bf16)))
    pack = Pack(layout)
    pack.fill(layout.values([1.5], [None]))
    assert words(pack, ctypes.c_uint16) == [0x3FC0]


def test_a_kernel_without_parameters() -> None:
    layout = layout_of(kernel())
    assert layout.count == 0
    assert Pack(layout).fill(layout.values([], [])) != 0

"""Arguments of the tensor copy engine: what is refused, and what its descriptors are made of."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from warploom.base.errors import LaunchError
from warploom.frontend.signature import parse_signature
from warploom.ir.kernel import Kernel, TensorMap
from warploom.ir.op import Block, Value
from warploom.language.types import Tensor
from warploom.runtime import arguments, driver, tensor_maps
from warploom.runtime.packing import Layout, Pack, layout_of

PLAIN = TensorMap(0, (1, 0), (64, 8), 128)


def one(x: Tensor):
    pass


def bind(array: np.ndarray) -> arguments.Arguments:
    return arguments.bind("one", parse_signature(one), (array,), {})


def bf16(*shape: int) -> np.ndarray:
    return np.zeros(shape, ml_dtypes.bfloat16)


def refusal(array: np.ndarray, made: TensorMap = PLAIN) -> LaunchError:
    with pytest.raises(LaunchError) as caught:
        tensor_maps.check((made,), bind(array))
    assert caught.value.code == "H029"
    return caught.value


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[object, ...]]]:
    """What the driver is asked for, without a driver."""
    asked: list[tuple[object, ...]] = []

    def encode(*args: object) -> bytes:
        asked.append(args)
        return bytes([len(asked)]) * tensor_maps.BYTES

    monkeypatch.setattr(driver, "encode_tensor_map", encode)
    tensor_maps._kept.clear()
    yield asked
    tensor_maps._kept.clear()


def test_a_stride_that_is_no_multiple_of_16_bytes(golden) -> None:
    golden(str(refusal(bf16(16, 511))))


@pytest.mark.case("C18")
@pytest.mark.parametrize("columns", [511, 512, 515, 520])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
def test_rows_of_several_lengths(columns: int, dtype: type) -> None:
    array = np.zeros((16, columns), dtype)
    box = TensorMap(0, (1, 0), (32, 8), 128)
    if array.strides[0] % 16:
        assert f"stride {array.strides[0]} bytes" in str(refusal(array, box))
    else:
        tensor_maps.check((box,), bind(array))


def test_a_base_that_is_no_multiple_of_16_bytes(golden) -> None:
    memory = np.zeros(16 * 512 + 64, ml_dtypes.bfloat16)
    start = (-memory.ctypes.data // 2) % 8 + 3
    golden(str(refusal(memory[start : start + 16 * 512].reshape(16, 512))))


def test_a_negative_stride(golden) -> None:
    golden(str(refusal(bf16(16, 512)[::-1])))


@pytest.mark.parametrize(
    ("box", "swizzle", "what"),
    [
        ((64, 257), 128, "a box of 257 elements along an axis"),
        ((36, 8), 0, "rows of 72 bytes, no multiple of 16"),
        ((64, 8), 64, "rows of 128 bytes under a swizzle of 64"),
    ],
)
def test_boxes(box: tuple[int, ...], swizzle: int, what: str) -> None:
    assert what in str(refusal(bf16(16, 512), TensorMap(0, (1, 0), box, swizzle)))


def test_six_axes() -> None:
    array = np.zeros((2, 2, 2, 2, 2, 16), np.float32)
    made = TensorMap(0, (5, 4, 3, 2, 1, 0), (16, 1, 1, 1, 1, 1), 0)
    assert "6 axes" in str(refusal(array, made))


def test_what_the_driver_is_asked_for(made: list[tuple[object, ...]]) -> None:
    array = bf16(4, 16, 64)[:, ::2]
    box = TensorMap(0, (2, 1, 0), (64, 8, 1), 128)
    tensor_maps.encoded((box,), bind(array))
    address = array.ctypes.data
    assert made == [("bf16", address, [64, 8, 4], [256, 2048], (64, 8, 1), 128, False)]


def test_a_descriptor_is_made_once(made: list[tuple[object, ...]]) -> None:
    array, other = bf16(16, 512), bf16(16, 520)
    first = tensor_maps.encoded((PLAIN, PLAIN), bind(array))
    assert first == tensor_maps.encoded((PLAIN, PLAIN), bind(array)) and len(made) == 1
    tensor_maps.encoded((PLAIN,), bind(other))
    tensor_maps.encoded((PLAIN,), bind(array[:8]))
    assert len(made) == 3


def test_the_store_of_descriptors_is_bounded(
    made: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensor_maps, "_MOST_KEPT", 2)
    array = bf16(16, 512)
    for rows in (1, 2, 3):
        tensor_maps.encoded((PLAIN,), bind(array[:rows]))
    assert len(made) == 3 and len(tensor_maps._kept) == 1


def test_an_axis_of_one_element_has_any_stride(made: list[tuple[object, ...]]) -> None:
    tensor_maps.encoded((PLAIN,), bind(bf16(1, 511)))
    assert made[0][2:4] == ([511, 1], [16])


def test_an_empty_tensor_lies_nowhere(made: list[tuple[object, ...]]) -> None:
    tensor_maps.encoded((PLAIN,), bind(bf16(16, 511)[:0]))
    assert made[0][1:4] == (16, [511, 1], [16])


def test_maps_follow_the_words_of_a_launch() -> None:
    kind = bind(bf16(16, 512)).types()[0][1]
    kernel = Kernel("k", (Value(kind, "x"),), Block(), maps=(PLAIN, PLAIN))
    layout = layout_of(kernel)
    assert layout == Layout(layout.format, ((0,),), (str(PLAIN),) * 2) and layout.count == 4
    pack = Pack(layout)
    pack.fill([1, 16, 512, 512], [b"a" * 128, b"b" * 128])
    pointers = ctypes.cast(pack.address, ctypes.POINTER(ctypes.c_uint64))
    assert [ctypes.string_at(pointers[4 + i], 128) for i in (0, 1)] == [b"a" * 128, b"b" * 128]
    assert all(pointers[4 + i] % 64 == 0 for i in (0, 1))

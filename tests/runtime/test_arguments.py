"""Binding arguments: places, scalars, constants, and what each mistake of a first day says."""

from typing import ClassVar

import ml_dtypes
import numpy as np
import pytest

import warploom as wl
from warploom.base.dtypes import f32, i32
from warploom.base.errors import LaunchError
from warploom.frontend.signature import parse_signature
from warploom.ir.types import Scalar, Tensor
from warploom.runtime import arguments, memory
from warploom.runtime.arrays import View, read


def scale(x: wl.Tensor, y: wl.Tensor, n: wl.i32, eps: wl.f32, BM: wl.const, flag: wl.const = False):
    pass


def maybe(x: wl.Tensor, bias: wl.Tensor = None, BM: wl.const = 4):
    pass


X = np.zeros((4, 8), np.float32)
Y = np.zeros((4, 8), np.float32)


def bind(*args: object, **kwargs: object) -> arguments.Arguments:
    return arguments.bind("scale", parse_signature(scale), args, kwargs)


def test_names_types_and_constants() -> None:
    made = bind(X, Y, 3, 1e-5, BM=4)
    assert made.names == ("x", "y", "n", "eps")
    kinds = [kind for _, kind in made.types()]
    assert isinstance(kinds[0], Tensor)
    assert kinds[2:] == [Scalar(i32), Scalar(f32)]
    assert made.constants == {"BM": 4, "flag": False}
    assert made.place == "sim"
    assert made.key == bind(X, Y, 5, 2.0, 4, False).key
    assert made.key != bind(X, Y, 5, 2.0, BM=4, flag=True).key


def test_constants_that_compare_equal_are_told_apart() -> None:
    keys = {
        bind(X, Y, 1, 1.0, BM=value).key for value in (1, 1.0, True, -0.0, 0.0, 0, (1,), (1.0,))
    }
    assert len(keys) == 8


def test_none_for_a_tensor_with_that_default_is_a_constant() -> None:
    made = arguments.bind("maybe", parse_signature(maybe), (X,), {})
    assert made.names == ("x",)
    assert made.constants == {"bias": None, "BM": 4}
    assert arguments.bind("maybe", parse_signature(maybe), (X, Y), {}).names == ("x", "bias")


def either(
    x: wl.Tensor,
    bias: wl.Tensor = None,
    residual: wl.Tensor = None,
    alpha: wl.f32 = None,
    beta: wl.f32 = None,
):
    pass


def test_which_argument_is_absent_belongs_to_the_key() -> None:
    """Others of the same class in other places make another variant."""
    given: list[dict[str, object]] = [{}]
    given += [{"bias": X}, {"residual": X}, {"alpha": 2.0}, {"beta": 2.0}, {"alpha": 1, "beta": 1}]
    signature = parse_signature(either)
    made = [arguments.bind("either", signature, (Y,), kwargs) for kwargs in given]
    assert len({one.key for one in made}) == len(given)
    assert made[3].names == ("x", "alpha") and made[3].constants["beta"] is None


def test_numpy_numbers_are_scalars() -> None:
    made = bind(X, Y, np.int64(3), np.float32(0.5), BM=4)
    assert made.values[2:] == [3, 0.5]
    assert type(made.values[2]) is int


class Interface:
    """An array of CUDA by its word; what it says of itself lacks something."""

    __cuda_array_interface__: ClassVar[dict[str, object]] = {"shape": (4, 8)}


class Capsule:
    """An array of DLPack by its word, whose capsule is none."""

    def __init__(self, kind: int, capsule: object) -> None:
        self.kind, self.capsule = kind, capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **options: object) -> object:
        if self.capsule is None:
            raise RuntimeError("its memory is gone")
        return self.capsule


MISTAKES = {
    "interface in part": lambda: bind(Interface(), Y, 1, 1.0, BM=4),
    "no capsule": lambda: bind(Capsule(1, 3), Y, 1, 1.0, BM=4),
    "capsule refused": lambda: bind(Capsule(1, None), Y, 1, 1.0, BM=4),
    "kind of device": lambda: bind(Capsule(7, 3), Y, 1, 1.0, BM=4),
    "masked array": lambda: bind(np.ma.masked_array(X, mask=X > 0), Y, 1, 1.0, BM=4),
    "integer too large for a float": lambda: bind(X, Y, 3, 10**400, BM=4),
    "integer of 70 bits": lambda: bind(X, Y, 2**70, 1.0, BM=4),
    "None for an integer": lambda: bind(X, Y, None, 1.0, BM=4),
    "complex for a float": lambda: bind(X, Y, 3, 1j, BM=4),
    "unknown name": lambda: bind(X, Y, 3, 1.0, BM=4, whatever=8),
    "dtype that is none": lambda: memory.device_empty((1,), "f99"),
    "shape below zero": lambda: memory.device_empty((2, -1), np.float32),
    "shape of text": lambda: memory.device_zeros("ab", np.float32),
    "list for a tensor": lambda: bind([1.0, 2.0], Y, 1, 1.0, BM=4),
    "None for a tensor": lambda: bind(None, Y, 1, 1.0, BM=4),
    "number for a tensor": lambda: bind(3.0, Y, 1, 1.0, BM=4),
    "array of rank 0 for a tensor": lambda: bind(np.float32(1)[...], Y, 1, 1.0, BM=4),
    "object for a tensor": lambda: bind({"a": 1}, Y, 1, 1.0, BM=4),
    "complex": lambda: bind(X.astype(np.complex64), Y, 1, 1.0, BM=4),
    "unknown dtype": lambda: bind(X.astype("U3"), Y, 1, 1.0, BM=4),
    "swapped bytes": lambda: bind(X.astype(">f4"), Y, 1, 1.0, BM=4),
    "nine axes": lambda: bind(np.zeros((1,) * 9, np.float32), Y, 1, 1.0, BM=4),
    "array for a scalar": lambda: bind(X, Y, np.array(3), 1.0, BM=4),
    "float for an integer": lambda: bind(X, Y, 3.0, 1.0, BM=4),
    "bool for an integer": lambda: bind(X, Y, True, 1.0, BM=4),
    "text for a float": lambda: bind(X, Y, 3, "1.0", BM=4),
    "integer too large": lambda: bind(X, Y, 2**31, 1.0, BM=4),
    "float too large": lambda: bind(X, Y, 3, 1e39, BM=4),
    "constant missing": lambda: bind(X, Y, 3, 1.0),
    "constant misspelt": lambda: bind(X, Y, 3, 1.0, BN=4),
    "constant in the wrong case": lambda: bind(X, Y, 3, 1.0, bm=4),
    "constant not hashable": lambda: bind(X, Y, 3, 1.0, BM=[4]),
    "array as a constant": lambda: bind(X, Y, 3, 1.0, BM=X),
    "argument missing": lambda: bind(X, Y, 3, BM=4),
    "too many arguments": lambda: bind(X, Y, 3, 1.0, 4, False, 9),
    "given twice": lambda: bind(X, Y, 3, 1.0, x=X, BM=4),
    "launch option as an argument": lambda: bind(X, Y, 3, 1.0, BM=4, warps=8),
    "option of triton": lambda: bind(X, Y, 3, 1.0, BM=4, num_warps=8),
    "grid as an argument": lambda: bind(X, Y, 3, 1.0, BM=4, grid=8),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str, golden) -> None:
    with pytest.raises(LaunchError) as caught:
        MISTAKES[name]()
    golden(str(caught.value), name)


def moved(view: View, place: str) -> View:
    view.place = place
    return view


class Elsewhere:
    """An array that says that it lives on a GPU."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __warploom_view__(self) -> View:
        return moved(read(X.copy(), "x"), self.place)


def test_arguments_on_several_devices(golden) -> None:
    with pytest.raises(LaunchError) as caught:
        bind(X, Elsewhere("gpu:1"), 3, 1.0, BM=4)
    golden(str(caught.value))


def test_the_place_is_that_of_the_arrays() -> None:
    assert bind(Elsewhere("gpu:1"), Elsewhere("gpu:1"), 3, 1.0, BM=4).place == "gpu:1"


def test_an_output_on_an_input_where_that_is_forbidden(golden) -> None:
    arguments.forbid_overlap("linear", ("out", Y), x=X, bias=None)
    with pytest.raises(LaunchError) as caught:
        arguments.forbid_overlap("linear", ("out", Y[1:]), x=X, w=Y[:2])
    golden(str(caught.value))


# Outputs --------------------------------------------------------------------------------------


def written(y: np.ndarray) -> None:
    arguments.check_written("scale", bind(X, y, 3, 1.0, BM=4), (1,))


def test_an_output_that_is_read_only(golden) -> None:
    frozen = Y.copy()
    frozen.setflags(write=False)
    with pytest.raises(LaunchError) as caught:
        written(frozen)
    golden(str(caught.value))


def test_an_output_that_is_expanded(golden) -> None:
    wide = np.lib.stride_tricks.as_strided(Y.copy(), (4, 8), (0, 4))
    with pytest.raises(LaunchError) as caught:
        written(wide)
    golden(str(caught.value))


@pytest.mark.parametrize(
    ("shape", "strides", "overlaps"),
    [
        ((3, 3), (3, 2), False),
        ((3, 3), (2, 1), True),
        ((2, 3), (3, 1), False),
        ((4, 4), (-4, 1), False),
        ((4, 0), (0, 0), False),
        ((1, 4), (0, 1), False),
        ((4, 4, 4), (1, 16, 4), False),
        ((4, 4, 4), (1, 16, 3), True),
    ],
)
def test_outputs_whose_elements_share_places(
    shape: tuple[int, ...], strides: tuple[int, ...], overlaps: bool
) -> None:
    memory = np.zeros(400, np.float32)[200:]
    view = np.lib.stride_tricks.as_strided(memory, shape, tuple(4 * s for s in strides))
    if overlaps:
        with pytest.raises(LaunchError, match="H006"):
            written(view)
    else:
        written(view)


def test_bf16_and_offsets_are_read_in_elements() -> None:
    base = np.zeros((10, 12), ml_dtypes.bfloat16)
    view = read(base[2:5, 3:9:2].T, "x")
    assert (view.shape, view.strides, view.dtype.name) == ((3, 3), (2, 12), "bf16")
    assert view.address == base.ctypes.data + (2 * 12 + 3) * 2
    low, high = view.extent_bytes()
    assert (low, high - low) == (view.address, (2 * 2 + 2 * 12 + 1) * 2)

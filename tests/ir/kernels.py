"""Kernels of the tile stage for tests of IR and passes: built by hand, without the front end."""

from warploom.base.dtypes import DType, f32, i32
from warploom.base.target import SM_90A
from warploom.ir.kernel import Kernel
from warploom.ir.op import Stage, Value
from warploom.ir.types import Scalar, Tensor, TensorClass
from warploom.passes.pipeline import lower
from warploom.testing.fuzz.body import Body

__all__ = ["Body", "argument", "lowered", "tensor"]


def tensor(strides: str = "n1", dtype: DType = f32, name: str = "x", **cls: object) -> Value:
    """A tensor argument; `cls` are fields of its class."""
    return Value(Tensor(dtype, len(strides), TensorClass(strides, **cls)), name)  # type: ignore[arg-type]


def argument(dtype: DType = i32, name: str = "n") -> Value:
    """A scalar argument."""
    return Value(Scalar(dtype), name)


def lowered(kernel: Kernel) -> Kernel:
    """The kernel at the machine stage, verified after each pass."""
    lower(kernel, SM_90A)
    assert kernel.stage is Stage.MACHINE
    return kernel

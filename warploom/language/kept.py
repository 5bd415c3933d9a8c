"""Memory in front of which no launch stands empty-handed: tensors behind the arguments of a kernel,
which its launches hand on to each other. Knows neither what they hold nor who makes them."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.base.dtypes import DType
from warploom.ir import types
from warploom.ir.kernel import Kept as KeptTensor
from warploom.ir.op import Value
from warploom.language.context import builder, current
from warploom.language.values import Tensor

# Elements: extents are multiples of it, as the class of such a tensor promises.
_UNIT = 16


@dataclass(slots=True)
class Kept:
    """One tensor of one axis, and how many elements have been taken of it: `fixed`, and `each` for
    every block of the grid."""

    value: Value
    tensor: Tensor
    fixed: int = 0
    each: int = 0

    def described(self) -> KeptTensor:
        """What a launch must know of it."""
        return KeptTensor(self.tensor.param, self.tensor.dtype.name, self.fixed, self.each)


def keep(name: str, dtype: DType, fixed: int, each: int = 0) -> Tensor:
    """A new tensor of `fixed` elements and `each` more for every block of the grid, rounded up:
    zero before the first launch, and then as the launch before has left it."""
    held = current()
    cls = types.TensorClass("1")
    value = Value(types.Tensor(dtype, 1, cls), name, builder().loc)
    tensor = Tensor(value, held.params + len(held.kept))
    held.kept.append(Kept(value, tensor, _rounded(fixed), _rounded(each)))
    return tensor


def take_more(tensor: Tensor, count: int) -> int:
    """`count` more elements of a tensor without parts by block; gives where they begin."""
    made = next(k for k in current().kept if k.tensor is tensor)
    start = made.fixed
    made.fixed += _rounded(count)
    return start


def _rounded(count: int) -> int:
    return -(-count // _UNIT) * _UNIT

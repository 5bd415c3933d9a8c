"""Memory that launches of a kernel hand on to each other: tensors behind its arguments, which it
asks for while it is built. Knows neither what they hold nor who makes them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

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
    """One tensor, and how many rows have been taken of it: `fixed`, and `each` for every block of
    the grid. `inner` is the shape of a row."""

    value: Value
    tensor: Tensor
    fixed: int = 0
    each: int = 0
    inner: tuple[int, ...] = ()

    def described(self) -> KeptTensor:
        """What a launch must know of it."""
        held = self.tensor
        return KeptTensor(held.param, held.dtype.name, self.fixed, self.each, self.inner)


def keep(name: str, dtype: DType, fixed: int, each: int = 0, inner: tuple[int, ...] = ()) -> Tensor:
    """A new tensor of `fixed` rows and `each` more for every block of the grid, each of the shape
    `inner` (of single elements, whose numbers are rounded up): zero before the first launch, and
    then as the launch before has left it."""
    held = current()
    strides = [prod(inner[axis:]) * dtype.bytes for axis in range(len(inner))]
    align = min((_power(s) for s in strides), default=_UNIT)
    letters = "n" * len(inner) + "1"
    cls = types.TensorClass(letters, align, _power(inner[-1]) if inner else _UNIT)
    value = Value(types.Tensor(dtype, len(letters), cls), name, builder().loc)
    tensor = Tensor(value, held.params + len(held.kept))
    rows = (fixed, each) if inner else (_rounded(fixed), _rounded(each))
    held.kept.append(Kept(value, tensor, *rows, inner))
    return tensor


def take_more(tensor: Tensor, count: int) -> int:
    """`count` more elements of a tensor without parts by block; gives where they begin."""
    made = next(k for k in current().kept if k.tensor is tensor)
    start = made.fixed
    made.fixed += _rounded(count)
    return start


def _power(number: int) -> int:
    """The largest power of two up to the unit that divides a number."""
    return min(number & -number, _UNIT)


def _rounded(count: int) -> int:
    return -(-count // _UNIT) * _UNIT

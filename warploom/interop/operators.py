"""What a framework needs to know of a library call: its arguments, its result, what it writes.

Families of kernels declare their calls here. Knows no framework; the arguments are written in the
schema language of torch because that has a word for everything that is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from warploom.base.dtypes import DType
from warploom.runtime.compile import tile_kernel
from warploom.runtime.jit import Kernel

Result = tuple[tuple[int, ...], DType]


@dataclass(frozen=True, slots=True)
class Shaped:
    """An array of which only shape and element type are known."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def first(self) -> Shaped:
        """What stands at the start of the first axis."""
        return Shaped(self.shape[1:], self.dtype)


@dataclass(frozen=True, slots=True)
class Operator:
    """A library call `call(**arguments, out=array)`, or without `result` one without `out`.

    `arguments`: "Tensor a", "Tensor? bias=None", "float eps", those without a default first.
    `result`: shape and element type of `out` from the arguments by name (tensors as `Shaped`, those
    that were left out absent); may raise what the call would raise for them.
    `kernels`: those that the call launches, and `names`: their parameters that the call names
    otherwise. `scratch`: their parameters that the call makes for itself.
    """

    name: str
    call: Callable[..., Any]
    arguments: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    result: Callable[[Mapping[str, Any]], Result] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    scratch: tuple[str, ...] = ()

    @property
    def argument_names(self) -> tuple[str, ...]:
        """The names of the arguments, without `out`."""
        return tuple(name_of(argument) for argument in self.arguments)

    def written(self) -> frozenset[str]:
        """The arguments that the kernels write, as their IR says."""
        found = set[str]()
        for kernel in self.kernels:
            made = tile_kernel(kernel.example_call().request)
            found |= {made.params[index].name for index in made.written}
        return frozenset(self.names.get(name, name) for name in found) - {*self.scratch}


def name_of(argument: str) -> str:
    """The name in an argument of a schema."""
    return argument.partition("=")[0].split()[-1]


def like(name: str) -> Callable[[Mapping[str, Any]], Result]:
    """The result has shape and element type of an argument."""
    return lambda given: (given[name].shape, given[name].dtype)


declared: dict[str, Operator] = {}
_followers: list[Callable[[Operator], None]] = []


def declare(operator: Operator) -> Operator:
    """Make a call known to the frameworks, those that are loaded later included."""
    if operator.name in declared:
        raise ValueError(f"two operators are called {operator.name}")
    declared[operator.name] = operator
    for follower in _followers:
        follower(operator)
    return operator


def follow(follower: Callable[[Operator], None]) -> None:
    """Have a function see every operator, those that are declared already first."""
    for operator in declared.values():
        follower(operator)
    _followers.append(follower)

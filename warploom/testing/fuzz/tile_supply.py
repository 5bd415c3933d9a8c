"""What random kernels of the tile stage are made from: arguments, extents, and what is in scope.

Draws; writes no statement (`tile_generator`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from warploom.base.dtypes import DType, bf16, f32, i32
from warploom.ir.op import Value
from warploom.ir.ops import scalar, tile
from warploom.ir.types import Scalar, Tensor
from warploom.testing.fuzz.body import Body
from warploom.testing.fuzz.tile_case import class_of, dtype_of, shape_of

EXTENTS = (1, 2, 3, 4, 6, 7, 8, 12, 16, 20, 33, 64)
MOST = 700  # elements of a tile


@dataclass
class Scope:
    """What may be used at a place: values by type, and the greatest size of integer values."""

    tiles: list[Value] = field(default_factory=list)
    scalars: list[Value] = field(default_factory=list)
    bound: dict[Value, int] = field(default_factory=dict)

    def inner(self) -> Scope:
        """A scope that sees this one."""
        return Scope(list(self.tiles), list(self.scalars), self.bound)


class Supply:
    """What the statements of one kernel draw from, and what they have made so far."""

    def __init__(self, number: Callable[[int, int], int]) -> None:
        self.number = number
        self.rng = np.random.default_rng(number(0, 2**32 - 1))
        self.params: list[Value] = []
        self.args: list[Any] = []
        # A few extents a kernel, so that shapes meet again.
        self.extents = self.shuffled(EXTENTS)[:3]
        self.grid = self.pick(((1, 1, 1), (3, 1, 1), (2, 2, 1)))
        self.body = Body(warps=self.pick((1, 2, 3, 4, 8)))
        self.inputs = [
            self.tensor(dtype, name)
            for dtype, name in zip((f32, bf16, i32, f32), "xhzs", strict=True)
        ]
        self.args[3].flat[:: max(self.args[3].size // 5, 1)] = np.nan
        self.args[3].flat[1 :: max(self.args[3].size // 4, 1)] = -0.0
        self.outputs: dict[tuple[DType, int], Value] = {}
        self.scope = Scope()
        for _ in range(3):
            self.argument(self.number(-3, 9))
        self.scope.scalars += [self.body.build.const(n) for n in (0, 1, 4, 16)]
        self.block = self.block_number()
        self.scope.scalars.append(self.mul(self.block, self.pick((1, 4, 5))))

    # ---- arguments -------------------------------------------------------------------------------

    def tensor(self, dtype: DType, name: str) -> Value:
        """An input: any shape, strides of any kind, small integers."""
        rank = 1 if dtype is i32 else 2
        shape = tuple(self.pick((1, 5, 16, 24, 40)) for _ in range(rank))
        kind = self.pick(("plain", "plain", "transposed", "pitch", "offset", "step"))
        wide = (*shape[:-1], shape[-1] + 8)
        numbers = self.rng.integers(-8, 9, size=(2, *wide)).astype(dtype.numpy)
        array = numbers[0][..., : shape[-1]]
        if kind == "plain":
            array = np.ascontiguousarray(array)
        elif kind == "transposed":
            array = np.asfortranarray(array)
        elif kind == "offset":
            array = numbers[0][..., 3 : shape[-1] + 3]
        elif kind == "step":
            array = numbers[0][..., ::2]
        return self.parameter(array, dtype, name)

    def parameter(self, array: np.ndarray, dtype: DType, name: str) -> Value:
        value = Value(Tensor(dtype, array.ndim, class_of(array)), name)
        self.params.append(value)
        self.args.append(array)
        return value

    def argument(self, number: int) -> None:
        value = Value(Scalar(i32), f"n{len(self.params)}")
        self.params.append(value)
        self.args.append(number)
        self.scope.scalars.append(value)

    def block_number(self) -> Value:
        x, y = (self.emit(scalar.BlockId(axis=a)) for a in (0, 1))
        across = self.emit(scalar.GridDim(axis=0))
        return self.body.binary("add", self.body.binary("mul", y, across), x)

    # ---- drawing ---------------------------------------------------------------------------------

    def pick(self, choices: Any) -> Any:
        found = list(choices)
        return found[self.number(0, len(found) - 1)]

    def maybe(self) -> bool:
        return self.number(0, 1) == 1

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        left = list(items)
        return [left.pop(self.number(0, len(left) - 1)) for _ in items]

    def emit(self, op: Any) -> Value:
        return self.body.emit(op)

    def mul(self, value: Value, factor: int) -> Value:
        return self.body.binary("mul", value, self.body.build.const(factor))

    def shape(self, rank: int) -> tuple[int, ...]:
        shape: tuple[int, ...] = ()
        for _ in range(rank):
            room = MOST // max(prod(shape), 1)
            shape += (self.extent(room),)
        return shape

    def extent(self, most: int) -> int:
        return self.pick([n for n in self.extents if n <= most] or [1])

    def a_tile(self, *dtypes: DType) -> Value | None:
        """A tile of one of these dtypes (any without)."""
        found = [t for t in self.scope.tiles if not dtypes or dtype_of(t) in dtypes]
        return self.pick(found) if found else None

    def like(self, value: Value) -> Value:
        """A tile of the same type: an old one or a fresh one."""
        old = [t for t in self.scope.tiles if t.type == value.type]
        if self.maybe() and old:
            return self.pick(old)
        return self.fit(self.fresh(dtype_of(value)), shape_of(value))

    def fresh(self, dtype: DType) -> Value:
        number = self.pick((0, 1, 3, -2)) if not dtype.is_bool else self.pick((True, False))
        made = self.body.build.const(float(number) if dtype.is_float else number, dtype)
        return made

    def fit(self, value: Value, shape: tuple[int, ...]) -> Value:
        made = self.emit(tile.Splat(value=value, shape=shape))
        return self.add(made, 3)

    def add(self, value: Value, bound: int | None = None) -> Value:
        """Enter a tile; `bound` where it holds integers of at most this size."""
        if value not in self.scope.tiles:
            self.scope.tiles.append(value)
        if bound is not None:
            self.scope.bound[value] = bound
        return value

    def bound(self, *values: Value) -> int | None:
        """The largest bound of values that all have one."""
        found = [self.scope.bound.get(v) for v in values]
        known = [b for b in found if b is not None]
        return max(known) if len(known) == len(found) else None

"""Random kernels of the tile stage, with arguments to run them on.

Every operation of the stage takes part; floats that are summed are small integers, so that each
order of summation gives the same. What a kernel stores goes to a tensor of its own, at the block's
number.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from warploom.base.dtypes import bf16, boolean, f16, f32, i32, i64
from warploom.ir.op import Value
from warploom.ir.ops import scalar, tile
from warploom.ir.ops import tensor as tensors
from warploom.ir.ops.control import Yield
from warploom.ir.ops.scalar import tensor_of
from warploom.testing.fuzz.tile_case import Case, dtype_of, shape_of
from warploom.testing.fuzz.tile_supply import MOST, Supply

FLOATS = (f32, f16, bf16)
_EXACT = {f32: 2**20, f16: 2**10, bf16: 2**7}  # integers below are exact, sums of two as well


class Generator(Supply):
    """Draws one kernel, statement by statement."""

    # ---- statements ------------------------------------------------------------------------------

    def statements(self, least: int, most: int, depth: int) -> None:
        for _ in range(self.number(least, most)):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        kinds = [
            self.load,
            self.load,
            self.binary,
            self.binary,
            self.unary,
            self.compare,
            self.select,
            self.cast,
            self.spread,
            self.permute,
            self.slice,
            self.cat,
            self.reduce,
            self.reduce,
            self.arg_reduce,
            self.gather,
            self.to_scalar,
            self.scalar_arithmetic,
            self.load_scalar,
            self.arange,
            self.store,
            self.read_back,
        ]
        if depth:
            kinds += [lambda: self.loop(depth), lambda: self.branch(depth)]
        self.pick(kinds)()

    def a_view(self) -> Value:
        x = self.pick(self.inputs)
        if self.number(0, 4) == 0:
            lo, hi = self.pick(self.scope.scalars), self.pick(self.scope.scalars)
            axis = self.number(0, tensor_of(x).rank - 1)
            x = self.emit(tensors.Rows(tensor=x, lo=lo, hi=hi, axis=axis))
        return x

    def load(self) -> None:
        x = self.a_view()
        rank = tensor_of(x).rank
        shape = self.shape(rank)
        sizes = tuple(None if self.number(0, 4) == 0 else n for n in shape)
        starts = tuple(self.pick(self.scope.scalars) for _ in range(rank))
        other = self.fresh(tensor_of(x).dtype) if self.maybe() else None
        op = tile.Load(tensor=x, starts=starts, sizes=sizes, other=other)
        special = x is self.inputs[3] or x.owner is not None
        self.add(self.emit(op), None if special else 8)

    def load_scalar(self) -> None:
        z = self.inputs[2]
        made = self.emit(
            scalar.Load(tensor=z, indices=(self.pick(self.scope.scalars),), other=None)
        )
        self.scope.scalars.append(made)

    def scalar_arithmetic(self) -> None:
        a, b = self.pick(self.scope.scalars), self.pick(self.scope.scalars)
        kind = self.pick(("add", "sub", "min", "max", "mod", "floordiv"))
        self.scope.scalars.append(self.body.binary(kind, a, b))

    def arange(self) -> None:
        n = self.extent(MOST)
        self.add(self.emit(tile.Arange(n=n)), n)

    def binary(self) -> None:
        a = self.a_tile()
        if a is None:
            self.load()
            return
        b, dtype = self.like(a), dtype_of(a)
        kinds = ["and", "or", "xor"]
        if not dtype.is_bool:
            kinds = ["add", "sub", "mul", "max", "min"]
            kinds += ["mod", "floordiv"] + (["div"] if dtype.is_float else ["and", "xor"])
        kind = self.pick(kinds)
        bound = self.bound(a, b)
        if bound is not None:
            grown = {"add": 2 * bound, "sub": 2 * bound, "mul": bound * bound}.get(kind, bound)
            bound = grown if kind in ("add", "sub", "mul", "max", "min", "mod") else None
            if bound is not None and bound > _EXACT.get(dtype, 2**20):
                bound = None
        self.add(self.emit(tile.Binary(lhs=a, rhs=b, kind=kind)), bound)

    def unary(self) -> None:
        a = self.a_tile(*FLOATS, i32, i64)
        if a is None:
            return
        kinds = ["neg", "abs"] + (["floor", "ceil", "round"] if dtype_of(a) is f32 else [])
        self.add(self.emit(tile.Unary(value=a, kind=self.pick(kinds))), self.bound(a))

    def compare(self) -> None:
        a = self.a_tile()
        if a is None or dtype_of(a).is_bool:
            return
        kind = self.pick(("eq", "ne", "lt", "le", "gt", "ge"))
        self.add(self.emit(tile.Compare(lhs=a, rhs=self.like(a), kind=kind)))

    def select(self) -> None:
        c, a = self.a_tile(boolean), self.a_tile()
        if c is None or a is None:
            return
        same = [t for t in self.scope.tiles if shape_of(t) == shape_of(c)]
        yes = self.pick(same)
        no = self.like(yes)
        made = tile.Select(condition=c, yes=yes, no=no)
        self.add(self.emit(made), self.bound(yes, no))

    def cast(self) -> None:
        a = self.a_tile()
        if a is None:
            return
        dtype, bound = self.pick((f32, f16, bf16, i32, i64, boolean)), self.bound(a)
        if dtype.is_bool or dtype_of(a).is_bool:
            bound = 1
        elif dtype.is_float and (bound is None or bound > _EXACT[dtype]):
            if not dtype_of(a).is_float:
                return
            bound = None
        self.add(self.emit(tile.Cast(value=a, dtype=dtype)), bound)

    def spread(self) -> None:
        a = self.a_tile()
        if a is None or len(shape_of(a)) > 2:
            return
        axis = self.number(0, len(shape_of(a)))
        made = self.add(self.emit(tile.InsertAxis(value=a, axis=axis)), self.bound(a))
        room = MOST // prod(shape_of(a))
        n = self.extent(room)
        shape = (*shape_of(made)[:axis], n, *shape_of(made)[axis + 1 :])
        self.add(self.emit(tile.Broadcast(value=made, shape=shape)), self.bound(a))

    def permute(self) -> None:
        a = self.a_tile()
        if a is not None:
            order = tuple(self.shuffled(range(len(shape_of(a)))))
            self.add(self.emit(tile.Permute(value=a, order=order)), self.bound(a))

    def slice(self) -> None:
        a = self.a_tile()
        if a is None:
            return
        sizes = tuple(self.number(1, n) for n in shape_of(a))
        starts = tuple(self.number(0, n - s) for n, s in zip(shape_of(a), sizes, strict=True))
        made = self.add(self.emit(tile.Slice(value=a, starts=starts, sizes=sizes)), self.bound(a))
        if shape_of(made) and shape_of(made)[0] == 1:
            self.add(self.emit(tile.DropAxis(value=made, axis=0)), self.bound(a))

    def cat(self) -> None:
        a = self.a_tile()
        if a is None or not shape_of(a) or prod(shape_of(a)) * 2 > MOST:
            return
        b = self.like(a)
        axis = self.number(0, len(shape_of(a)) - 1)
        self.add(self.emit(tile.Cat(values=(a, b), axis=axis)), self.bound(a, b))

    def reduce(self) -> None:
        a = self.a_tile()
        if a is None or not shape_of(a):
            return
        axis = self.number(0, len(shape_of(a)) - 1)
        dtype, bound = dtype_of(a), self.bound(a)
        kinds = ["and", "or"] if dtype.is_bool else ["max", "min", "add"]
        kind = self.pick(kinds)
        if kind == "add":
            total = None if bound is None else bound * shape_of(a)[axis]
            if dtype.is_float and (total is None or total > _EXACT[dtype]):
                kind = "max"
            else:
                bound = total
        self.add(self.emit(tile.Reduce(value=a, axis=axis, kind=kind)), bound)

    def arg_reduce(self) -> None:
        a = self.a_tile(f32, f16, bf16, i32)
        if a is None or not shape_of(a):
            return
        axis = self.number(0, len(shape_of(a)) - 1)
        made = tile.ArgReduce(value=a, axis=axis, kind=self.pick(("max", "min")))
        self.add(self.emit(made), shape_of(a)[axis])

    def gather(self) -> None:
        at = self.a_tile(i32, i64)
        if at is None:
            return
        x = self.a_view()
        indices: list[Value] = [at]
        while len(indices) < tensor_of(x).rank:
            same = [t for t in self.scope.tiles if t.type == at.type]
            indices.append(self.pick([*same, *self.scope.scalars]))
        masks = [t for t in self.scope.tiles if dtype_of(t).is_bool and shape_of(t) == shape_of(at)]
        mask = self.pick(masks) if masks and self.maybe() else None
        other = self.fresh(tensor_of(x).dtype) if self.maybe() else None
        order = tuple(self.shuffled(indices))
        self.add(self.emit(tile.Gather(tensor=x, indices=order, mask=mask, other=other)))

    def to_scalar(self) -> None:
        a = self.a_tile(i32)
        if a is None:
            return
        while shape_of(a):
            a = self.emit(tile.Reduce(value=a, axis=0, kind="max"))
        made = self.emit(tile.ToScalar(value=a))
        limit = self.body.build.const(50)
        self.scope.scalars.append(self.body.binary("mod", made, limit))

    # ---- stores ----------------------------------------------------------------------------------

    def store(self) -> None:
        a = self.a_tile()
        if a is None:
            a = self.fit(self.fresh(f32), self.shape(2))
        self.put(a)

    def put(self, a: Value) -> None:
        dtype, shape = dtype_of(a), shape_of(a)
        key = (dtype, len(shape))
        if key not in self.outputs:
            extents = tuple(self.pick((1, 7, 16, 33, 64)) for _ in shape)
            array = np.zeros((prod(self.grid), *extents), dtype.numpy)
            if self.maybe() and len(shape) > 1:
                array = np.ascontiguousarray(array.transpose(0, 2, 1, *range(3, array.ndim)))
                array = array.transpose(0, 2, 1, *range(3, array.ndim))
            self.outputs[key] = self.parameter(array, dtype, f"y{len(self.params)}")
        starts = tuple(self.pick(self.scope.scalars) for _ in shape)
        op = tile.Store(
            tensor=self.outputs[key], value=a, starts=(self.block, *starts), sizes=(None, *shape)
        )
        self.body.build.add(op)

    def read_back(self) -> None:
        if not self.outputs:
            return
        dtype, rank = self.pick(self.outputs)
        starts = tuple(self.pick(self.scope.scalars) for _ in range(rank))
        op = tile.Load(
            tensor=self.outputs[dtype, rank],
            starts=(self.block, *starts),
            sizes=(None, *self.shape(rank)),
            other=None,
        )
        self.add(self.emit(op))

    # ---- control ---------------------------------------------------------------------------------

    def loop(self, depth: int) -> None:
        count = self.number(0, 3)
        inits = [self.pick(self.scope.tiles) for _ in range(count) if self.scope.tiles]
        if inits and self.maybe():  # a second one of the same type, to be permuted
            inits.append(self.like(inits[0]))
        lo = self.body.build.const(self.number(0, 2))
        # At most a handful of trips, whatever the argument is.
        hi = self.body.binary("min", self.pick(self.scope.scalars), self.body.build.const(4))
        step = self.body.build.const(self.number(1, 2))
        outer = self.scope
        weaker = self.body.binary("add", self.block, hi)
        loop = self.body.loop(lo, hi, step, *inits)
        loop.index.type = weaker.type
        with loop:
            self.scope = outer.inner()
            self.scope.tiles += loop.carried
            self.scope.scalars.append(loop.index)
            self.statements(2, 6, depth - 1)
            # Half of what is carried on are arguments of the loop: they change places.
            args = loop.carried if self.maybe() else ()
            given = [
                self.pick(
                    [t for t in args if t.type == v.type]
                    or [t for t in self.scope.tiles if t.type == v.type]
                )
                for v in inits
            ]
            loop.give(*given)
        self.scope = outer
        for result in loop.results:
            self.add(result)

    def branch(self, depth: int) -> None:
        a, b = self.pick(self.scope.scalars), self.pick(self.scope.scalars)
        kind = self.pick(("lt", "eq", "ge"))
        condition = self.emit(scalar.Compare(lhs=a, rhs=b, kind=kind))
        branch = self.body.branch(condition)
        outer = self.scope
        types = [t.type for t in outer.tiles]
        wanted = [self.pick(types) for _ in range(self.number(0, 2)) if types]
        for block in (branch.then, branch.orelse):
            with branch.inside(block):
                self.scope = outer.inner()
                self.statements(1, 4, depth - 1)
                self.body.build.add(_yield(self, wanted))
        self.scope = outer
        for result in branch.done():
            self.add(result)

    # ---- the whole -------------------------------------------------------------------------------

    def case(self) -> Case:
        for _ in range(self.number(1, 3)):
            self.load()
        self.statements(6, 20, 2)
        for value in self.scope.tiles[-3:]:
            self.put(value)
        if not self.outputs:
            self.store()
        self.body.params = tuple(self.params)
        return Case(self.body.kernel("fuzz"), self.grid, self.args)


def _yield(generator: Generator, wanted: list[Any]) -> Any:
    return Yield(
        values=tuple(
            generator.pick([t for t in generator.scope.tiles if t.type == type]) for type in wanted
        )
    )


def case_of(seed: int) -> Case:
    """The random kernel of a number: evenly drawn, so larger than what hypothesis draws."""
    rng = np.random.default_rng(seed)
    return Generator(lambda low, high: int(rng.integers(low, high + 1))).case()

"""Kernels of the tile stage under construction, without the front end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from warploom.ir.builder import Builder
from warploom.ir.kernel import Kernel, walk
from warploom.ir.op import Block, Loc, Op, Value
from warploom.ir.ops import scalar, tile
from warploom.ir.ops import tensor as tensors
from warploom.ir.ops.control import For, If, Yield
from warploom.ir.types import Scalar
from warploom.ir.verifier import verify_kernel


class Body:
    """A kernel under construction."""

    def __init__(self, *params: Value, warps: int = 4) -> None:
        self.params = params
        self.warps = warps
        self.block = Block()
        self.build = Builder(self.block, Loc("kernel.py", 1, 1))

    def load(self, x: Value, *window: int | Value | tuple[Value | int, int]) -> Value:
        """Load a window: (start, size) pairs, or plain indices; numbers become constants."""
        starts, sizes = self._window(window)
        return self.build.emit(tile.Load(tensor=x, starts=starts, sizes=sizes, other=None), "t")

    def store(self, x: Value, value: Value, *window: int | Value | tuple[Value | int, int]) -> None:
        """Store to a window."""
        starts, sizes = self._window(window)
        self.build.add(tile.Store(tensor=x, value=value, starts=starts, sizes=sizes))

    def _window(
        self, window: Sequence[int | Value | tuple[Value | int, int]]
    ) -> tuple[tuple[Value, ...], tuple[int | None, ...]]:
        starts: list[Value] = []
        sizes: list[int | None] = []
        for entry in window:
            start, size = entry if isinstance(entry, tuple) else (entry, None)
            starts.append(start if isinstance(start, Value) else self.build.const(start))
            sizes.append(size)
        return tuple(starts), tuple(sizes)

    def emit(self, op: Op, name: str = "") -> Value:
        """Append an operation with one result."""
        return self.build.emit(op, name)

    def binary(self, kind: str, lhs: Value, rhs: Value) -> Value:
        """Tile or scalar arithmetic."""
        cls = scalar.Binary if isinstance(lhs.type, Scalar) else tile.Binary
        return self.emit(cls(lhs=lhs, rhs=rhs, kind=kind))

    def loop(self, lo: Value, hi: Value, step: Value, *inits: Value) -> Loop:
        """A loop to be entered by `with`."""
        return Loop(self, lo, hi, step, inits)

    def branch(self, condition: Value) -> Branch:
        """A branch; fill `then` and `orelse` by `with`."""
        return Branch(self, condition)

    def inside_branch(self, block: Block) -> AbstractContextManager[Block]:
        """Append to a block of a branch."""
        return self.build.inside(block)

    def give(self, *values: Value) -> None:
        """End the block with these values."""
        self.build.add(Yield(values=values))

    def kernel(self, name: str = "k") -> Kernel:
        """The finished, verified kernel."""
        made = self.kernel_unverified(name)
        verify_kernel(made)
        return made

    def kernel_unverified(self, name: str = "k") -> Kernel:
        """The finished kernel, right or wrong."""
        self.build.add(Yield(values=()))
        stores = [op for op in walk(self.block) if isinstance(op, tile.Store)]
        written = sorted({self.params.index(_root(op.tensor)) for op in stores})
        return Kernel(name, self.params, self.block, warps=self.warps, written=tuple(written))


def _root(view: Value) -> Value:
    while isinstance(view.owner, tensors.Rows):
        view = view.owner.tensor
    return view


class Loop:
    """A `for` under construction; `results` are there after the `with`."""

    def __init__(
        self, body: Body, lo: Value, hi: Value, step: Value, inits: tuple[Value, ...]
    ) -> None:
        self.body = body
        self.bounds = lo, hi, step
        self.inits = inits
        self.index = Value(lo.type, "i")
        self.carried = tuple(Value(v.type, v.name or f"c{n}") for n, v in enumerate(inits))
        self.block = Block((self.index, *self.carried))
        self.results: tuple[Value, ...] = ()

    def __enter__(self) -> Loop:
        self.entered = self.body.build.inside(self.block)
        self.entered.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.entered.__exit__(None, None, None)
        if exception[0] is not None:
            return
        if not self.block.ops or not isinstance(self.block.ops[-1], Yield):
            self.block.ops.append(Yield(values=()))
        lo, hi, step = self.bounds
        op = For(lo=lo, hi=hi, step=step, inits=self.inits, body=self.block)
        self.results = self.body.build.add(op).results
        for result, arg in zip(self.results, self.carried, strict=True):
            result.name = arg.name

    def give(self, *values: Value) -> None:
        """The next carried values."""
        self.body.build.add(Yield(values=values))


class Branch:
    """An `if` under construction."""

    def __init__(self, body: Body, condition: Value) -> None:
        self.body = body
        self.condition = condition
        self.then, self.orelse = Block(), Block()

    def inside(self, block: Block) -> AbstractContextManager[Block]:
        """Append to one of the blocks."""
        return self.body.build.inside(block)

    def done(self) -> tuple[Value, ...]:
        """Close the branch; gives its results."""
        for block in (self.then, self.orelse):
            if not block.ops or not isinstance(block.ops[-1], Yield):
                block.ops.append(Yield(values=()))
        op = If(condition=self.condition, then=self.then, orelse=self.orelse)
        return self.body.build.add(op).results

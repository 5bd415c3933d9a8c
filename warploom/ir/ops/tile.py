"""Level-1 tile operations: logical arrays of a role, legal until layouts are lowered to
registers."""

from __future__ import annotations

from warploom.base.dtypes import DType, bf16, boolean, f8e4m3, f8e5m2, f16, f32, i32, i64
from warploom.ir.op import (
    Actor,
    Complaint,
    Effect,
    Op,
    Stage,
    Value,
    attribute,
    check,
    op,
    operand,
    operands,
    optional,
)
from warploom.ir.ops.arithmetic import ARG_FOLD, FOLD, binary_dtype, compare_dtype, unary_dtype
from warploom.ir.ops.global_memory import ATOMIC_DTYPES, check_atomic
from warploom.ir.ops.scalar import scalar_of, tensor_of
from warploom.ir.types import Scalar, Tile, Type, Uniformity

_TILE = Stage.TILE | Stage.ROLES
_ALL = (f32, f16, bf16, i32, i64, boolean)
_DATA = (*_ALL, f8e4m3, f8e5m2)  # what is moved and converted
_NUMBERS = (f32, f16, bf16, i32, i64)


def tile_of(value: Value) -> Tile:
    """The type of a value that must be a tile that can be read."""
    t = any_tile_of(value)
    if t.pending:
        raise Complaint(f"{value} is still being written by the matrix unit")
    return t


def any_tile_of(value: Value) -> Tile:
    """The type of a value that must be a tile, pending or not."""
    # The message is made only where it is needed: this runs for every operand of every operation.
    if not isinstance(value.type, Tile):
        raise Complaint(f"{value} is not a tile")
    return value.type


def _same_shape(*values: Value) -> tuple[int, ...]:
    shapes = {tile_of(v).shape for v in values}
    check(len(shapes) == 1, f"tiles of shapes {', '.join(str(s) for s in sorted(shapes))}")
    return tile_of(values[0]).shape


@op("tile.load", stages=_TILE, effects=(Effect.READ_GLOBAL,), executes=Actor.ROLE, dtypes=_DATA)
class Load(Op):
    """A window of a tensor. `sizes` has one entry an axis; None means that `starts` holds a plain
    index there and the axis is dropped. Elements outside the tensor are `other` (scalar) or
    zero."""

    tensor: Value = operand()
    starts: tuple[Value, ...] = operands()
    other: Value | None = optional()
    sizes: tuple[int | None, ...] = attribute()
    cache: str = attribute(default="")

    def infer(self) -> tuple[Type, ...]:
        t = tensor_of(self.tensor)
        check(
            len(self.sizes) == t.rank == len(self.starts),
            f"window of {len(self.sizes)} axes, rank {t.rank}",
        )
        if self.other is not None:
            check(
                scalar_of(self.other).dtype == t.dtype, "`other` has another dtype than the tensor"
            )
        return (Tile(t.dtype, tuple(n for n in self.sizes if n is not None)),)


@op("tile.store", stages=_TILE, effects=(Effect.WRITE_GLOBAL,), executes=Actor.ROLE, dtypes=_DATA)
class Store(Op):
    """Write a tile to a window (as in `tile.load`); elements outside the tensor are dropped."""

    tensor: Value = operand()
    value: Value = operand()
    starts: tuple[Value, ...] = operands()
    sizes: tuple[int | None, ...] = attribute()
    cache: str = attribute(default="")

    def verify(self) -> None:
        t, v = tensor_of(self.tensor), tile_of(self.value)
        check(
            len(self.sizes) == t.rank == len(self.starts),
            f"window of {len(self.sizes)} axes, rank {t.rank}",
        )
        window = tuple(n for n in self.sizes if n is not None)
        check(v.shape == window, f"tile {v.shape} stored to window {window}")
        check(v.dtype == t.dtype, f"{v.dtype} stored to a tensor of {t.dtype}")


@op(
    "tile.atomic",
    stages=_TILE,
    effects=(Effect.READ_GLOBAL, Effect.WRITE_GLOBAL, Effect.SYNC),
    executes=Actor.ROLE,
    dtypes=ATOMIC_DTYPES,
)
class Atomic(Op):
    """Change the elements of a window (as in `tile.load`), each in one step, and give what was
    there; elements outside the tensor are left alone and give zero. `global_memory.atomic` says
    what the kinds and orders are."""

    tensor: Value = operand()
    value: Value = operand()
    starts: tuple[Value, ...] = operands()
    expected: Value | None = optional()
    sizes: tuple[int | None, ...] = attribute()
    kind: str = attribute()
    order: str = attribute(default="relaxed")
    scope: str = attribute(default="gpu")

    def infer(self) -> tuple[Type, ...]:
        return (Tile(tile_of(self.value).dtype, tile_of(self.value).shape),)

    def verify(self) -> None:
        t = tensor_of(self.tensor)
        check_atomic(self.kind, t.dtype, self.order, self.scope, self.expected is not None)
        check(len(self.sizes) == t.rank == len(self.starts), f"{len(self.sizes)} axes")
        window = tuple(n for n in self.sizes if n is not None)
        for given in (self.value, *([] if self.expected is None else [self.expected])):
            v = tile_of(given)
            check(v.shape == window and v.dtype == t.dtype, f"{given} for a window {window}")


@op("tile.prefetch", stages=_TILE, effects=(Effect.OUTSIDE,), executes=Actor.ROLE)
class Prefetch(Op):
    """Have a window read into the cache of `level` ("L1" or "L2"), where the bool tile `mask` holds
    if `masked` (else it only has the window's shape). Nothing outside the tensor is touched."""

    tensor: Value = operand()
    mask: Value = operand()
    starts: tuple[Value, ...] = operands()
    sizes: tuple[int | None, ...] = attribute()
    level: str = attribute()
    masked: bool = attribute()

    def verify(self) -> None:
        t, m = tensor_of(self.tensor), tile_of(self.mask)
        check(len(self.sizes) == t.rank == len(self.starts), f"window of {len(self.sizes)} axes")
        window = tuple(n for n in self.sizes if n is not None)
        check(m.shape == window and m.dtype == boolean, f"mask {m} of window {window}")
        check(self.level in ("L1", "L2"), f"cache {self.level!r}")


@op("tile.gather", stages=_TILE, effects=(Effect.READ_GLOBAL,), executes=Actor.ROLE, dtypes=_DATA)
class Gather(Op):
    """tensor[indices[0], indices[1], …]: one integer scalar or tile an axis, tiles of one shape.
    Outside the tensor or where `mask` is false: `other` (scalar) or zero. `run`: how many elements
    from the last index on the last axis of the result is, 0 without such an axis."""

    tensor: Value = operand()
    indices: tuple[Value, ...] = operands()
    mask: Value | None = optional()
    other: Value | None = optional()
    run: int = attribute(default=0)

    def infer(self) -> tuple[Type, ...]:
        t = tensor_of(self.tensor)
        check(len(self.indices) == t.rank, f"{len(self.indices)} indices for rank {t.rank}")
        tiles = [v for v in self.indices if isinstance(v.type, Tile)]
        check(bool(tiles), "a gather needs an index tile")
        check(
            all(v.type.dtype.is_int for v in self.indices if isinstance(v.type, Tile | Scalar)),
            "indices are integers",
        )
        shape = _same_shape(*tiles, *([self.mask] if self.mask is not None else []))
        lengths = (0, *shape[-1:])  # a tile without axes has no runs
        check(self.run in lengths, f"runs of {self.run} in a tile of shape {shape}")
        return (Tile(t.dtype, shape),)


@op("tile.splat", stages=_TILE, executes=Actor.THREAD, dtypes=_DATA)
class Splat(Op):
    """A scalar repeated over a shape."""

    value: Value = operand()
    shape: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Tile(scalar_of(self.value).dtype, self.shape),)


@op("tile.arange", stages=_TILE, executes=Actor.THREAD, dtypes=(i32,))
class Arange(Op):
    """0, 1, …, n−1 as i32."""

    n: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Tile(i32, (self.n,)),)


@op("tile.binary", stages=_TILE, dtypes=_ALL)
class Binary(Op):
    """Elementwise arithmetic of two tiles of one shape and dtype."""

    lhs: Value = operand()
    rhs: Value = operand()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        shape = _same_shape(self.lhs, self.rhs)
        return (
            Tile(binary_dtype(self.kind, tile_of(self.lhs).dtype, tile_of(self.rhs).dtype), shape),
        )


@op("tile.unary", stages=_TILE, dtypes=_NUMBERS)
class Unary(Op):
    """Elementwise arithmetic of one tile."""

    value: Value = operand()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        t = tile_of(self.value)
        return (Tile(unary_dtype(self.kind, t.dtype), t.shape),)


@op("tile.fma", stages=_TILE, dtypes=(f32,))
class Fma(Op):
    """a × b + c with one rounding."""

    a: Value = operand()
    b: Value = operand()
    c: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        shape = _same_shape(self.a, self.b, self.c)
        check(all(tile_of(v).dtype == f32 for v in (self.a, self.b, self.c)), "fma takes f32")
        return (Tile(f32, shape),)


@op("tile.compare", stages=_TILE, dtypes=_ALL)
class Compare(Op):
    """Elementwise comparison; gives bool."""

    lhs: Value = operand()
    rhs: Value = operand()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        shape = _same_shape(self.lhs, self.rhs)
        return (
            Tile(compare_dtype(self.kind, tile_of(self.lhs).dtype, tile_of(self.rhs).dtype), shape),
        )


@op("tile.select", stages=_TILE, dtypes=_DATA)
class Select(Op):
    """`yes` where the condition tile holds, else `no`."""

    condition: Value = operand()
    yes: Value = operand()
    no: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        shape = _same_shape(self.condition, self.yes, self.no)
        check(tile_of(self.condition).dtype == boolean, "condition is not bool")
        check(tile_of(self.yes).dtype == tile_of(self.no).dtype, "select between two dtypes")
        return (Tile(tile_of(self.yes).dtype, shape),)


@op("tile.cast", stages=_TILE, dtypes=_DATA)
class Cast(Op):
    """Conversion: to floats rounds to nearest even, float to integer truncates and saturates (NaN
    gives 0), to bool tests for non-zero."""

    value: Value = operand()
    dtype: DType = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (Tile(self.dtype, tile_of(self.value).shape),)


@op("tile.broadcast", stages=_TILE, dtypes=_DATA)
class Broadcast(Op):
    """Repeat along axes of extent 1 to a shape of the same rank."""

    value: Value = operand()
    shape: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        t = tile_of(self.value)
        fits = len(t.shape) == len(self.shape) and all(
            a in (1, b) for a, b in zip(t.shape, self.shape, strict=True)
        )
        check(fits, f"{t.shape} does not broadcast to {self.shape}")
        return (Tile(t.dtype, self.shape),)


@op("tile.insert_axis", stages=_TILE, dtypes=_DATA)
class InsertAxis(Op):
    """A new axis of extent 1 before `axis` (t[None, :], t[:, None])."""

    value: Value = operand()
    axis: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        t = tile_of(self.value)
        check(0 <= self.axis <= len(t.shape), f"axis {self.axis}")
        return (Tile(t.dtype, t.shape[: self.axis] + (1,) + t.shape[self.axis :]),)


@op("tile.drop_axis", stages=_TILE, dtypes=_DATA)
class DropAxis(Op):
    """Remove an axis of extent 1."""

    value: Value = operand()
    axis: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        t = tile_of(self.value)
        check(
            0 <= self.axis < len(t.shape) and t.shape[self.axis] == 1,
            f"axis {self.axis} of {t.shape}",
        )
        return (Tile(t.dtype, t.shape[: self.axis] + t.shape[self.axis + 1 :]),)


@op("tile.permute", stages=_TILE, dtypes=_DATA)
class Permute(Op):
    """Axis i of the result is axis order[i] of the operand."""

    value: Value = operand()
    order: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        t = tile_of(self.value)
        check(sorted(self.order) == list(range(len(t.shape))), f"order {self.order} for {t.shape}")
        return (Tile(t.dtype, tuple(t.shape[a] for a in self.order)),)


@op("tile.slice", stages=_TILE, executes=Actor.ROLE, dtypes=_DATA)
class Slice(Op):
    """The sub-tile that starts at `starts` with extents `sizes`, all constant."""

    value: Value = operand()
    starts: tuple[int, ...] = attribute()
    sizes: tuple[int, ...] = attribute()

    def infer(self) -> tuple[Type, ...]:
        t = tile_of(self.value)
        inside = len(self.starts) == len(self.sizes) == len(t.shape) and all(
            a >= 0 and n >= 1 and a + n <= e
            for a, n, e in zip(self.starts, self.sizes, t.shape, strict=True)
        )
        check(inside, f"sub-tile at {self.starts} of {self.sizes} in {t.shape}")
        return (Tile(t.dtype, self.sizes),)


@op("tile.cat", stages=_TILE, executes=Actor.ROLE, dtypes=_DATA)
class Cat(Op):
    """Tiles joined along an axis."""

    values: tuple[Value, ...] = operands()
    axis: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        first = tile_of(self.values[0])
        total = 0
        for v in self.values:
            t = tile_of(v)
            rest = t.shape[: self.axis] + t.shape[self.axis + 1 :]
            check(t.dtype == first.dtype, f"cat of {first.dtype} and {t.dtype}")
            check(
                rest == first.shape[: self.axis] + first.shape[self.axis + 1 :],
                f"cat of {first.shape} and {t.shape}",
            )
            total += t.shape[self.axis]
        return (
            Tile(first.dtype, first.shape[: self.axis] + (total,) + first.shape[self.axis + 1 :]),
        )


@op("tile.reduce", stages=_TILE, executes=Actor.ROLE, dtypes=_NUMBERS)
class Reduce(Op):
    """Fold along an axis, which is dropped: `add`, `max`, `min` of numbers, `and`, `or` of bool.

    Order: registers in index order, then lanes xor 1, 2, 4, 8, 16, then warps ascending.
    """

    value: Value = operand()
    axis: int = attribute()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        t = tile_of(self.value)
        check(self.kind in FOLD, f"unknown reduction {self.kind}")
        check(0 <= self.axis < len(t.shape), f"axis {self.axis} of {t.shape}")
        fits = t.dtype.is_bool == (self.kind in ("and", "or")) and not t.dtype.is_f8
        check(fits, f"{self.kind} of {t.dtype}")
        return (Tile(t.dtype, t.shape[: self.axis] + t.shape[self.axis + 1 :]),)


@op("tile.arg_reduce", stages=_TILE, executes=Actor.ROLE, dtypes=(f32, f16, bf16, i32))
class ArgReduce(Op):
    """Index (i32) of the largest or smallest element along an axis; NaN wins, ties take the
    lowest."""

    value: Value = operand()
    axis: int = attribute()
    kind: str = attribute()

    def infer(self) -> tuple[Type, ...]:
        t = tile_of(self.value)
        check(self.kind in ARG_FOLD and not t.dtype.is_f8, f"{self.kind} of {t.dtype}")
        check(0 <= self.axis < len(t.shape), f"axis {self.axis} of {t.shape}")
        return (Tile(i32, t.shape[: self.axis] + t.shape[self.axis + 1 :]),)


@op("tile.convert", stages=_TILE, executes=Actor.ROLE, dtypes=_DATA)
class Convert(Op):
    """The same elements in another layout (that of the result), through shared memory. Put in by
    assign_layouts; its cost is what `explain` shows."""

    value: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        return (tile_of(self.value),)


@op("tile.to_scalar", stages=_TILE, executes=Actor.WARP, dtypes=_DATA)
class ToScalar(Op):
    """The one element of a tile of shape () as a scalar (uniform over the block)."""

    value: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        from_tile = tile_of(self.value)
        check(from_tile.shape == (), f"a tile of shape {from_tile.shape} is not one value")
        return (Scalar(from_tile.dtype, Uniformity.BLOCK),)


@op("tile.print", stages=_TILE, effects=(Effect.OUTSIDE,), executes=Actor.ROLE)
class Print(Op):
    """Print a text and values (scalars or tiles) once a block, in block order on the simulator."""

    values: tuple[Value, ...] = operands()
    text: str = attribute()


@op("tile.assert", stages=_TILE, effects=(Effect.OUTSIDE,), executes=Actor.ROLE)
class Assert(Op):
    """Stop the launch with `text` where the condition (bool scalar or tile) is false anywhere."""

    condition: Value = operand()
    text: str = attribute()

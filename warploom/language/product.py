"""Products of the matrix unit that run while the role goes on."""

from __future__ import annotations

from typing import Any

from warploom.base.target import PRODUCTS, Product, product_of
from warploom.ir.layout.fragments import WARPGROUP
from warploom.ir.op import Value
from warploom.ir.ops import tile as tiles
from warploom.ir.ops import wgmma
from warploom.language.context import Handle, Refused, builder, current, need_count, vocabulary
from warploom.language.shared import Shared
from warploom.language.values import Tile, kind_of


class Pending(Handle):
    """A tile that the matrix unit may still be writing: add products, or `wait()` for it."""

    attributes = ("shape", "wait")
    hint = "wait for it: `t = acc.wait()`"

    def __init__(self, value: Value) -> None:
        self.value = value
        self.block = builder().block  # where the value is known
        self.tile: Value | None = None  # that was waited for

    def __repr__(self) -> str:
        kind = tiles.any_tile_of(self.value).dtype
        return f"a pending {kind} tile of shape {self.shape}"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tile."""
        return tiles.any_tile_of(self.value).shape

    def wait(self, in_flight: int = 0) -> Tile:
        """The tile, once at most `in_flight` later groups of products are in flight.

        Executes: the role.
        Since: sm_90a.
        PTX: wgmma.wait_group.
        """
        need_count("in_flight", in_flight, 0)
        made = builder().emit(wgmma.Wait(acc=self.value, pending=in_flight))
        if self.block is builder().block:
            self.tile = made  # and further products go on from there
        return Tile(made)

    def settle(self, in_flight: int) -> wgmma.Settle:
        """Wait until at most `in_flight` groups are in flight and go on adding to this tile."""
        made = builder().add(wgmma.Settle(acc=self.value, pending=in_flight))
        self.value = made.result
        return made


def begun(acc: Any) -> Value:
    """An accumulator as a pending value."""
    if isinstance(acc, Pending) and acc.tile is not None:
        return builder().emit(wgmma.Begin(acc=acc.tile))
    if isinstance(acc, Pending):
        return acc.value
    if isinstance(acc, Tile):
        return builder().emit(wgmma.Begin(acc=acc.value))
    raise Refused(
        "T015",
        f"an accumulator is a tile, not {kind_of(acc)}",
        argument="acc",
        hint="start with `wl.zeros((M, N), wl.f32)`",
    )


@vocabulary
def dot_async(a: Shared | Tile, b: Shared, acc: Tile | Pending) -> Pending:
    """Begin acc + a·b; the result is pending until `.wait()`.

    Shapes: a (M, K) in shared memory or registers, b (K, N) in shared memory, acc (M, N). M is a
    multiple of 64. `.T` of a shared tile costs nothing.

    | a and b | acc | N | K, a multiple of | contiguous along |
    |---|---|---|---|---|
    | f16, f16; bf16, bf16 | f32 | 8 to 256 in steps of 8 | 16 | any axis |
    | f32, f32 | f32 | 8 to 256 in steps of 8 | 8 | K |
    | f8e4m3 or f8e5m2, each | f32 | 8 to 256 in steps of 8 | 32 | K |
    | i8 or u8, each | i32 | 8, 24 and multiples of 16 to 256 | 32 | K |

    f32 operands are read as tf32: the last 13 bits of each are ignored. Sums of 8-bit floats keep
    about 14 bits of the largest addend while the unit adds up one product (docs/numerics.md, N23):
    add short products to a tile for more. Integers are exact and wrap.
    A tile in registers is brought to the layout that the unit reads, through shared memory where
    it has another one; the sum of an earlier product, cast to 16 bits, has it already.
    Executes: a role of 4 warps.
    Since: sm_90a.
    PTX: wgmma.mma_async.
    """
    for name, given in (("a", a), ("b", b)):
        if isinstance(given, Tile) and name == "a":
            continue
        if not isinstance(given, Shared):
            places = "registers or shared memory" if name == "a" else "shared memory"
            raise Refused(
                "T015",
                f"operand {name} of a product lies in {places}; this is {kind_of(given)}",
                argument=name,
            )
        given.check_single()
    role = current().role
    if role is not None and role.warps != WARPGROUP:
        raise Refused(
            "L014",
            f"a product runs in a role of {WARPGROUP} warps, and this one has {role.warps}",
            hint="use replicas: `wl.role(…, warps=4, replicas=2)`",
        )
    value = begun(acc)
    shape = tiles.any_tile_of(value).shape
    _check_axes(a, b, shape)
    can = _check_dtypes(a, b, value)
    _check_extents(can, a, b)
    for item in {id(t.item): t.item for t in (a, b) if isinstance(t, Shared)}.values():
        if item is not None:
            item.note_product()
    return Pending(builder().emit(wgmma.Dot(a=a.value, b=b.value, acc=value)))


def _check_dtypes(a: Shared | Tile, b: Shared, acc: Value) -> Product:
    """What the unit does with the operands, whose element types and order of axes it takes."""
    can = product_of(a.dtype, b.dtype)
    if can is None:
        one = a.dtype == b.dtype
        known = any(a.dtype in pair for p in PRODUCTS for pair in p.pairs)
        raise Refused(
            "L013",
            f"the matrix unit cannot multiply {a.dtype}" + ("" if one else f" by {b.dtype}"),
            argument="a" if not known else "b",
            notes=("it multiplies " + "; ".join(_pairs_text(p) for p in PRODUCTS),),
        )
    dtype = tiles.any_tile_of(acc).dtype
    if dtype != can.sums:
        raise Refused(
            "T002",
            f"an accumulator of {dtype}",
            argument="acc",
            hint=f"products of {a.dtype} are added up in {can.sums}: `wl.zeros(shape, "
            f"wl.{can.sums})`",
        )
    for name, given, axis in (("a", a, 1), ("b", b, 0)):
        if isinstance(given, Shared) and not can.turned and given.type.order[axis] != 1:
            stored = "(M, K)" if name == "a" else "(N, K)"
            raise Refused(
                "L013",
                f"the matrix unit reads {given.dtype} along K only, and operand {name} lies in "
                f"shared memory along {'M' if name == 'a' else 'N'}",
                argument=name,
                notes=("operands of 16 bits may lie along either axis",),
                hint=f"store it as {stored}" + ("" if name == "a" else " and pass `.T` of it"),
            )
    return can


def _pairs_text(can: Product) -> str:
    """The element types of a row of the table."""
    kinds = sorted({str(a) for a, _ in can.pairs})
    if len(can.pairs) > len(kinds):
        return " and ".join(kinds) + " in any combination"
    return ", ".join(f"{kind} by {kind}" for kind in kinds)


def _check_axes(a: Shared | Tile, b: Shared, shape: tuple[int, ...]) -> None:
    if len(a.shape) != 2 or len(b.shape) != 2 or len(shape) != 2:
        raise Refused("T006", f"a product of shapes {a.shape} and {b.shape} into {shape}")
    (m, k), (k2, n) = a.shape, b.shape
    if k != k2 or shape != (m, n):
        raise Refused(
            "T005",
            f"a of shape {a.shape} times b of shape {b.shape} into an accumulator of {shape}",
            hint="b has shape (K, N): use `.T` of a tile stored as (N, K)",
        )


def _check_extents(can: Product, a: Shared | Tile, b: Shared) -> None:
    extents = {"M": a.shape[0], "N": b.shape[1], "K": a.shape[1]}
    rules = {
        "M": f"a multiple of {can.rows}",
        "N": _columns_text(can.columns),
        "K": f"a multiple of {can.depth}",
    }
    for axis, extent in extents.items():
        if not can.takes(axis, extent):
            near = " and ".join(str(n) for n in can.near(axis, extent))
            raise Refused(
                "L013",
                f"the matrix unit cannot do {axis} = {extent} with {a.dtype}",
                argument="b" if axis == "N" else "a",
                notes=(f"{axis} is {rules[axis]}",),
                hint=f"the nearest that it can do: {near}",
            )


def _columns_text(columns: tuple[int, ...]) -> str:
    """A list of N in words."""
    if columns == tuple(range(columns[0], columns[-1] + 1, columns[0])):
        return f"a multiple of {columns[0]} up to {columns[-1]}"
    return f"one of {', '.join(map(str, columns))}"

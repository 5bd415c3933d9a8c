"""Products of the matrix unit that run while the role goes on."""

from __future__ import annotations

from typing import Any

from warploom.base.dtypes import bf16, f16, f32
from warploom.ir.layout.fragments import WARPGROUP
from warploom.ir.op import Value
from warploom.ir.ops import tile as tiles
from warploom.ir.ops import wgmma
from warploom.language.context import Handle, Refused, builder, current, vocabulary
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
        return f"a pending f32 tile of shape {self.shape}"

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
        if isinstance(in_flight, bool) or not isinstance(in_flight, int) or in_flight < 0:
            raise Refused("F027", "`in_flight` is a constant from 0 up", argument="in_flight")
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
    raise Refused("T015", f"an accumulator is a tile, not {kind_of(acc)}", argument="acc")


@vocabulary
def dot_async(a: Shared, b: Shared, acc: Tile | Pending) -> Pending:
    """Begin acc + a·b; the result is pending until `.wait()`.

    Shapes: a (M, K) and b (K, N) in shared memory (f16 or bf16), acc (M, N) in f32. M is a multiple
    of 64, N of 8 up to 256, K of 16. `.T` of a shared tile costs nothing.
    Executes: a role of 4 warps.
    Since: sm_90a.
    PTX: wgmma.mma_async.
    """
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, Shared):
            raise Refused(
                "T015",
                f"operand {name} of a product lies in shared memory; this is {kind_of(given)}",
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
    _check_shapes(a, b, shape)
    _check_dtypes(a, b, value)
    for item in {id(t.item): t.item for t in (a, b)}.values():
        if item is not None:
            item.note_product()
    return Pending(builder().emit(wgmma.Dot(a=a.value, b=b.value, acc=value)))


def _check_dtypes(a: Shared, b: Shared, acc: Value) -> None:
    if a.dtype != b.dtype:
        raise Refused("T002", f"a product of {a.dtype} and {b.dtype}")
    if a.dtype not in (f16, bf16):
        raise Refused(
            "L013",
            f"the matrix unit cannot multiply {a.dtype}",
            notes=("operands are f16 or bf16",),
        )
    dtype = tiles.any_tile_of(acc).dtype
    if dtype != f32:
        raise Refused(
            "T002",
            f"an accumulator of {dtype}",
            argument="acc",
            hint="products are added up in f32: `wl.zeros(shape, wl.f32)`",
        )


def _check_shapes(a: Shared, b: Shared, shape: tuple[int, ...]) -> None:
    if len(a.shape) != 2 or len(b.shape) != 2 or len(shape) != 2:
        raise Refused("T006", f"a product of shapes {a.shape} and {b.shape} into {shape}")
    (m, k), (k2, n) = a.shape, b.shape
    if k != k2 or shape != (m, n):
        raise Refused(
            "T005",
            f"a of shape {a.shape} times b of shape {b.shape} into an accumulator of {shape}",
            hint="b has shape (K, N): use `.T` of a tile stored as (N, K)",
        )
    for name, extent, step, most in (("M", m, 64, 0), ("N", n, 8, 256), ("K", k, 16, 0)):
        if extent % step or (most and extent > most):
            near = max(step, extent // step * step)
            near = min(near, most) if most else near
            raise Refused(
                "L013",
                f"the matrix unit cannot do {name} = {extent}",
                notes=(f"{name} is a multiple of {step}" + (f" up to {most}" if most else ""),),
                hint=f"the nearest that it can do: {near}"
                + ("" if most and near + step > most else f" and {near + step}"),
            )

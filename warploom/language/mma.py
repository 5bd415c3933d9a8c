"""Products that each warp makes for itself, on fragments of matrices in registers."""

from __future__ import annotations

from warploom.base.target import WARP_PRODUCTS, warp_product_of
from warploom.ir.ops import mma as ops
from warploom.language import core
from warploom.language.context import (
    Refused,
    acting_warps,
    builder,
    need_all_threads,
    vocabulary,
)
from warploom.language.values import Tile, need_tile


@vocabulary
def mma(a: Tile, b: Tile, acc: Tile) -> Tile:
    """acc + A·B for A of 16 rows and B of 8 columns, each warp for itself and at once.

    The operands are fragments: a row of a tile is what one thread holds of a step of 16 along K.
    Lane l = 4·i + j holds of A[row, k] (bf16 or f16): row i and k = 2j, 2j+1, then row i+8 and the
    same k, then both again with k+8; of B[k, column] (as A): column i and k = 2j, 2j+1, then
    k+8; of the sums[row, column] (f32): row i and columns 2j, 2j+1, then row i+8.

    Whoever numbers k in another way, alike in A and B, gets the same sum: weights are best stored
    as they are read, 16 bytes a thread. Sums are rounded as docs/numerics.md, N23, says; a column
    depends on no other one.

    Shapes: a (S·T, 8), b (S·T, 4), acc (T, 4) for T threads of the role and S steps of K.
    Executes: every warp.
    Since: sm_80.
    PTX: mma.sync.aligned.m16n8k16.
    """
    need_all_threads("a product is made by whole warps")
    left, right, sums = need_tile(a, "a"), need_tile(b, "b"), need_tile(acc, "acc")
    threads = 32 * acting_warps()
    _check_shape("acc", sums, (threads, ops.SUMS))
    rows = left.shape[0] if left.shape else 0
    steps = max(1, rows // threads)
    _check_shape("a", left, (steps * threads, ops.LEFT))
    _check_shape("b", right, (steps * threads, ops.RIGHT))
    can = warp_product_of(left.dtype, right.dtype)
    if can is None:
        pairs = ", ".join(f"{p} by {q}" for row in WARP_PRODUCTS for p, q in row.pairs)
        raise Refused(
            "L013",
            f"a warp cannot multiply {left.dtype} by {right.dtype}",
            argument="a",
            notes=(f"it multiplies {pairs}",),
        )
    if sums.dtype != can.sums:
        raise Refused(
            "L013",
            f"sums of {sums.dtype}",
            argument="acc",
            hint=f"products of {left.dtype} are added up in {can.sums}",
        )
    return Tile(builder().emit(ops.Dot(a=left.value, b=right.value, acc=sums.value)))


def _check_shape(name: str, tile: Tile, shape: tuple[int, int]) -> None:
    """Refuse a tile that is no fragment of the acting threads."""
    if tile.shape != shape:
        raise Refused(
            "T022",
            f"{core.describe(tile.value)}, where {shape[0]} × {shape[1]} elements are needed",
            argument=name,
            notes=(f"{32 * acting_warps()} threads act, each with a row of every step of K",),
            hint="load it from a tile that holds fragments: rows of 8 elements of A, 4 of B",
        )

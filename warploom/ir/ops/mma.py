"""The matrix unit of a warp: D = A·B + C at once, all in registers. PTX mma.sync. What it can do is
listed in `base/target.py`.

Operands are *fragments*, written down as tiles with a row for each thread: row 32·w + l of a tile
is what lane l of warp w holds, and a tile of several steps of K has them one below the other.
`left_place`, `right_place` and `sum_place` say which element of the matrix each is. Source: PTX
ISA, "Matrix Fragments for mma.m16n8k16".
"""

from __future__ import annotations

from warploom.base.dtypes import DType, bf16, f16
from warploom.base.target import Product, warp_product_of
from warploom.ir.op import Actor, Op, Stage, Value, attribute, check, op, operand
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.tile import tile_of
from warploom.ir.types import Type

_TILE = Stage.TILE | Stage.ROLES
# Elements a thread of one step: of A (16 x 16), of B (16 x 8), of the sums (16 x 8).
LEFT, RIGHT, SUMS = 8, 4, 4
_LANES = 32


def left_place(lane: int, element: int) -> tuple[int, int]:
    """Row and column of A that an element of a lane is."""
    half, low, side = element // 2 % 2, element % 2, element // 4
    return lane // 4 + 8 * half, 2 * (lane % 4) + low + 8 * side


def right_place(lane: int, element: int) -> tuple[int, int]:
    """Row (along K) and column of B that an element of a lane is."""
    return 2 * (lane % 4) + element % 2 + 8 * (element // 2), lane // 4


def sum_place(lane: int, element: int) -> tuple[int, int]:
    """Row and column of the sums that an element of a lane is."""
    return lane // 4 + 8 * (element // 2), 2 * (lane % 4) + element % 2


def _product(a: DType, b: DType) -> Product:
    found = warp_product_of(a, b)
    check(found is not None, f"{a} times {b}")
    assert found is not None
    return found


@op("mma.dot", stages=_TILE, executes=Actor.WARP, dtypes=(f16, bf16))
class Dot(Op):
    """acc + a·b, each warp for itself: a of shape (S·T, 8), b of (S·T, 4), acc of (T, 4) for S
    steps of K and T threads, one step after the other."""

    a: Value = operand()
    b: Value = operand()
    acc: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        return (tile_of(self.acc),)

    def verify(self) -> None:
        a, b, acc = tile_of(self.a), tile_of(self.b), tile_of(self.acc)
        check(all(len(t.shape) == 2 for t in (a, b, acc)), "fragments have two axes")
        threads = acc.shape[0]
        check(threads % _LANES == 0 and acc.shape[1] == SUMS, f"sums of shape {acc.shape}")
        check(a.shape[0] % threads == 0, f"{a.shape[0]} rows for {threads} threads")
        check(a.shape == (a.shape[0], LEFT), f"a of shape {a.shape}")
        check(b.shape == (a.shape[0], RIGHT), f"b of shape {b.shape}")
        check(acc.dtype == _product(a.dtype, b.dtype).sums, f"sums of {acc.dtype}")


@op("mma.multiply", stages=Stage.MACHINE, executes=Actor.WARP)
class Multiply(Op):
    """One instruction: acc + a·b of step `step`, from registers [S, 8] of `a`, [S, 4] of `b` and
    [1, 4] of `acc`; all 32 lanes take part."""

    a: Value = operand()
    b: Value = operand()
    acc: Value = operand()
    step: int = attribute()

    def infer(self) -> tuple[Type, ...]:
        return (regs_of(self.acc),)

    def verify(self) -> None:
        a, b, acc = regs_of(self.a), regs_of(self.b), regs_of(self.acc)
        check(acc.dtype == _product(a.dtype, b.dtype).sums, f"sums of {acc.dtype}")
        check(acc.extents == (1, SUMS), f"sums in registers {acc.extents}")
        check(0 <= self.step < a.extents[0], f"{a} has no step {self.step}")
        check(a.extents[1:] == (LEFT,), f"a in registers {a.extents}")
        check(b.extents == (a.extents[0], RIGHT), f"b in registers {b.extents}")

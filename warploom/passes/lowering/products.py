"""Products of the matrix unit: one instruction a 64-row block and 32 bytes of K, with the
numbers that matrix descriptors take. Source: PTX ISA, "Asynchronous warpgroup-level matrix
instructions"."""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign
from typing import Any

from warploom.base.errors import error
from warploom.ir.cluster import ALONE
from warploom.ir.op import Value
from warploom.ir.ops import scalar, tile, wgmma
from warploom.ir.ops.shared_memory import MATRIX_BITS
from warploom.ir.types import SharedTile, Tile
from warploom.passes.lowering.context import Lowering, lowers
from warploom.passes.lowering.shared import address_of, type_of

_STEP_BYTES = 32  # of K in one instruction
_ATOM_ROWS = 8
_BLOCK = 64  # rows of A an instruction


@dataclass(frozen=True, slots=True)
class _Operand:
    """How one operand is described: swizzle, offsets between atoms, whether K is the slow axis."""

    kind: SharedTile
    k_axis: int

    @property
    def transposed(self) -> bool:
        return self.kind.order[self.k_axis] == 0

    @property
    def lead(self) -> int:
        """Bytes between atoms along the contiguous axis; of no meaning within one panel along K."""
        return self.kind.layout.panel_bytes if self.transposed else 16

    @property
    def stride(self) -> int:
        """Bytes between groups of eight rows."""
        return _ATOM_ROWS * self.kind.layout.swizzle

    def form(self, name: str) -> dict[str, Any]:
        """The attributes of a product that describe operand `name`."""
        numbers = {
            "dtype": self.kind.dtype,
            "swizzle": self.kind.layout.swizzle,
            "lead": self.lead,
            "stride": self.stride,
            "transposed": self.transposed,
        }
        return {f"{name}_{key}": number for key, number in numbers.items()}

    def byte_of(self, outer: int, k: int) -> int:
        """Bytes from the tile's start to (outer, k), as descriptors count: before the swizzle."""
        layout = self.kind.layout
        row, column = (k, outer) if self.transposed else (outer, k)
        panel, inside = divmod(column * layout.itemsize, layout.swizzle)
        return panel * layout.panel_bytes + row * layout.swizzle + inside


def _operand(op: wgmma.Dot, value: Value, k_axis: int, name: str) -> _Operand:
    kind = type_of(value)
    if kind.layout.swizzle == 0:
        raise error(
            "L011",
            f"operand {name} of the product lies in shared memory without a swizzle",
            op.loc,
            label="this product",
            hint="make the buffer with swizzle=128 (64 or 32 where a row has fewer bytes)",
        )
    return _Operand(kind, k_axis)


@lowers(wgmma.Dot)
def dot(lower: Lowering, op: wgmma.Dot) -> None:
    in_registers = isinstance(op.a.type, Tile)
    a = None if in_registers else _operand(op, op.a, 1, "a")
    b = _operand(op, op.b, 0, "b")
    k, n = b.kind.shape
    rows = tile.any_tile_of(op.acc).shape[0]
    fragment = lower.whole(op.a) if in_registers else None
    acc = lower.whole(op.acc)
    lower.build.add(wgmma.Fence())
    step = _STEP_BYTES // b.kind.dtype.bytes
    right_form, at_zero = b.form("b"), _begins_at_zero(op.acc)
    for number, at in enumerate(range(0, k, step)):
        right = _described(lower, op.b, b.byte_of(0, at))
        for block in range(rows // _BLOCK):
            where: dict[str, Any] = {"acc": acc, "b": right, "block": block, "n": n, **right_form}
            where["fresh"] = number == 0 and at_zero
            if a is None:
                assert fragment is not None
                made = wgmma.MmaRegisters(a=fragment, step=number, **where)
            else:
                left = _described(lower, op.a, a.byte_of(block * _BLOCK, at))
                made = wgmma.Mma(a=left, **where, **a.form("a"))
            acc = lower.build.emit(made, op.result.name)
    lower.build.add(wgmma.Commit())
    lower.put(op.result, acc)


def _described(lower: Lowering, view: Value, shift: int) -> Value:
    """The place of an operand as a descriptor takes it: without the block's rank in a cluster."""
    if lower.kernel.cluster == ALONE:
        return address_of(lower, view, lower.build.const(shift))
    own = lower.build.const((1 << MATRIX_BITS) - 1)
    place = lower.arith("and", address_of(lower, view), own)
    return lower.arith("add", place, lower.build.const(shift)) if shift else place


def _begins_at_zero(acc: Value) -> bool:
    """Whether an accumulator is known to hold zeros, which the unit then need not read."""
    begun = acc.owner
    if not isinstance(begun, wgmma.Begin):
        return False
    made = begun.acc.owner
    if not isinstance(made, tile.Splat) or not isinstance(made.value.owner, scalar.Const):
        return False
    number = made.value.owner.number
    return number == 0 and copysign(1, number) > 0


@lowers(wgmma.Begin)
def begin(lower: Lowering, op: wgmma.Begin) -> None:
    lower.put(op.result, lower.whole(op.acc))


@lowers(wgmma.Wait, wgmma.Settle)
def wait(lower: Lowering, op: wgmma.Wait | wgmma.Settle) -> None:
    made = wgmma.WaitGroup(acc=lower.get(op.acc), pending=op.pending)
    lower.put(op.result, lower.build.emit(made))

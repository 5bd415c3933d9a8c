"""Buffers in the block's shared memory and accesses to them (conventions of `global_memory`)."""

from __future__ import annotations

from warploom.base.dtypes import DType, i32
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
    optional,
)
from warploom.ir.ops.global_memory import check_access
from warploom.ir.ops.registers import regs_of
from warploom.ir.types import Buffer, Regs, Scalar, Type

# Of an address within a block; those above are the rank in a cluster, 0 where there is none. The
# descriptors of matrices have fewer bits: a place in 256 KB.
ADDRESS_BITS, MATRIX_BITS = 24, 18


def buffer_of(value: Value) -> Buffer:
    """The type of a value that must be a shared buffer."""
    if not isinstance(value.type, Buffer):
        raise Complaint(f"{value} is not a shared buffer")
    return value.type


@op("shared_memory.buffer", stages=Stage.MACHINE, effects=(Effect.ALLOCATE,), executes=Actor.BLOCK)
class BufferOp(Op):
    """A buffer of `elements` elements at byte `at` of the block's shared memory (−1 until planned).

    `copies`: one for each replica of the role that makes it, `pitch` bytes apart: what a replica
    exchanges among its warps is its own. `slots`: equal parts that the source asks for, such as the
    stages of a ring.

    Buffers of one `region` (from 0) share bytes by the kernel's wish: they are placed together,
    each `within` bytes from where the region begins. Of these, buffers of one `content` are views
    of each other; what is written as another content is written over.
    """

    dtype: DType = attribute()
    elements: int = attribute()
    at: int = attribute(default=-1)
    align: int = attribute(default=16)
    copies: int = attribute(default=1)
    region: int = attribute(default=-1)
    within: int = attribute(default=0)
    content: int = attribute(default=0)
    slots: int = attribute(default=1)

    @property
    def pitch(self) -> int:
        """Bytes of one copy, a multiple of the alignment where there are several."""
        size = self.elements * self.dtype.bytes
        return size if self.copies == 1 else -(-size // self.align) * self.align

    @property
    def size(self) -> int:
        """Bytes of all copies."""
        return self.pitch * self.copies

    def verify(self) -> None:
        check(self.copies >= 1, f"{self.copies} copies of a buffer")
        check(self.region < 0 or self.copies == 1, "copies of a buffer that shares its bytes")

    def infer(self) -> tuple[Type, ...]:
        return (Buffer(self.dtype, self.elements),)


@op("shared_memory.address", stages=Stage.MACHINE, executes=Actor.WARP)
class Address(Op):
    """Byte address of a buffer in the block's shared memory, as copies and barriers take it (i32).
    In a cluster the block's rank stands above its `ADDRESS_BITS` bits."""

    buffer: Value = operand()

    def infer(self) -> tuple[Type, ...]:
        buffer_of(self.buffer)
        return (Scalar(i32),)


@op("shared_memory.load", stages=Stage.MACHINE, effects=(Effect.READ_SHARED,))
class Load(Op):
    """Load a register tile from `buffer[offset]`; zero where the predicate is false. `gathered`:
    the offsets come from an index tile, not from the layout."""

    buffer: Value = operand()
    offset: Value = operand()
    predicate: Value | None = optional()
    axis: int = attribute(default=0)
    vec: int = attribute(default=1)
    gathered: bool = attribute(default=False)

    def infer(self) -> tuple[Type, ...]:
        groups = regs_of(self.offset).extents
        extents = tuple(n * self.vec if a == self.axis else n for a, n in enumerate(groups))
        return (Regs(buffer_of(self.buffer).dtype, extents),)

    def verify(self) -> None:
        check_access(self.offset, self.predicate, regs_of(self.result).extents, self.axis, self.vec)


@op("shared_memory.store", stages=Stage.MACHINE, effects=(Effect.WRITE_SHARED,))
class Store(Op):
    """Store a register tile to `buffer[offset]` where the predicate holds. `gathered`: as in
    `load`."""

    buffer: Value = operand()
    value: Value = operand()
    offset: Value = operand()
    predicate: Value | None = optional()
    axis: int = attribute(default=0)
    vec: int = attribute(default=1)
    gathered: bool = attribute(default=False)

    def verify(self) -> None:
        check(regs_of(self.value).dtype == buffer_of(self.buffer).dtype, "stored dtype")
        check_access(self.offset, self.predicate, regs_of(self.value).extents, self.axis, self.vec)


class _Matrices(Op):
    """What accesses by matrices of 8 x 8 share with others: rows of 8 elements, no predicate."""

    turned: bool

    @property
    def vec(self) -> int:
        """Elements of a row of a matrix: one address is given for each."""
        return 8

    @property
    def axis(self) -> int:
        """The axis that is contiguous in memory."""
        return 0 if self.turned else 1

    @property
    def predicate(self) -> Value | None:
        """All threads take part."""
        return None


@op(
    "shared_memory.store_matrices",
    stages=Stage.MACHINE,
    effects=(Effect.WRITE_SHARED,),
    executes=Actor.WARP,
    since="sm_90",
)
class StoreMatrices(_Matrices):
    """Store a register tile of 16-bit elements whose layout is that of an accumulator, four
    matrices of 8 x 8 an instruction (stmatrix). `offset` holds an element offset for each
    instruction: lane 8m + i has that of row i of matrix m, where matrices 0 and 1 are rows 0 to 7
    and 8 to 15 of a warp, 2 and 3 the same eight columns on. `turned`: rows of matrices are columns
    of the tile."""

    buffer: Value = operand()
    value: Value = operand()
    offset: Value = operand()
    turned: bool = attribute(default=False)

    def verify(self) -> None:
        value = regs_of(self.value)
        check(value.dtype == buffer_of(self.buffer).dtype, "stored dtype")
        _check_matrices(value, regs_of(self.offset))


@op(
    "shared_memory.load_matrices",
    stages=Stage.MACHINE,
    effects=(Effect.READ_SHARED,),
    executes=Actor.WARP,
)
class LoadMatrices(_Matrices):
    """The reverse of `store_matrices` (ldmatrix)."""

    buffer: Value = operand()
    offset: Value = operand()
    turned: bool = attribute(default=False)

    def infer(self) -> tuple[Type, ...]:
        rows, columns = regs_of(self.offset).extents
        return (Regs(buffer_of(self.buffer).dtype, (2 * rows, 4 * columns)),)

    def verify(self) -> None:
        _check_matrices(regs_of(self.result), regs_of(self.offset))


def _check_matrices(held: Regs, offset: Regs) -> None:
    check(held.dtype.bits == 16, f"matrices of {held.dtype}")
    check(offset.dtype == i32, "offsets are i32")
    fits = len(held.extents) == 2 and offset.extents == (held.extents[0] // 2, held.extents[1] // 4)
    whole = fits and held.extents[0] % 2 == 0 and held.extents[1] % 4 == 0
    check(whole, f"offsets {offset} for {held}")

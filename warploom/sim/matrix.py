"""The matrix unit: operands gathered as matrix descriptors say, products in order, accumulators
that are valid once their products have retired. Source: PTX ISA, "Matrix descriptor" and "Register
fragments" of wgmma. Knows no operation.

Products of floats are exact and summed in float32 in an order of the simulator's own; tf32 operands
lose their last 13 bits, as in the hardware. Integers are exact and wrap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from warploom.base.dtypes import DType, f32
from warploom.ir.op import Op
from warploom.ir.ops.shared_memory import MATRIX_BITS
from warploom.ir.ops.wgmma import WaitGroup
from warploom.sim.boxes import CHUNK, PERIOD, chunks_of, swizzled
from warploom.sim.conversions import wide
from warploom.sim.values import carrier

ROWS = 64  # of A in one instruction
_DEPTH, _IN_CHUNK = 16, 8  # elements of 16 bits: of K in one instruction, in a chunk
_HALVES = 2  # chunks of K in one instruction, where K is contiguous
_TF32 = np.uint32(0xFFFFE000)  # the bits of a float32 that tf32 has
_REACH = (
    1 << MATRIX_BITS
)  # descriptors hold 14 bits of the address and of both offsets, in units of 16


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand as its descriptor has it: `lead` and `stride` in bytes, `outer` its extent in M
    or N. `transposed`: M or N is the contiguous axis."""

    outer: int
    swizzle: int
    lead: int
    stride: int
    transposed: bool


@lru_cache(maxsize=512)
def chunk_places(operand: Operand, start: int) -> tuple[np.ndarray, int]:
    """Chunk numbers from the last multiple of 1024 bytes, `start` bytes before the operand's first
    element: [outer, 2] where K is contiguous, else [16, outer / 8]. And where the last one ends."""
    span = operand.swizzle or CHUNK
    if operand.transposed:
        k = np.arange(_DEPTH)[:, None]
        group = np.arange(operand.outer // _IN_CHUNK)[None, :]
        if operand.swizzle:
            across = span // CHUNK
            byte = group % across * CHUNK + group // across * operand.lead
            byte = byte + k % 8 * span + k // 8 * operand.stride
        else:
            byte = group * operand.stride + k % 8 * CHUNK + k // 8 * operand.lead
    else:
        row = np.arange(operand.outer)[:, None]
        half = np.arange(_HALVES)[None, :]
        step = CHUNK if operand.swizzle else operand.lead
        byte = row % 8 * span + row // 8 * operand.stride + half * step
    chunks = swizzled(byte + start, operand.swizzle) // CHUNK
    return chunks, (int(chunks.max()) + 1) * CHUNK


@lru_cache(maxsize=1024)
def places(operand: Operand, address: int) -> tuple[np.ndarray, int]:
    """Chunk numbers in shared memory of an operand at a byte address, and where the last one
    ends."""
    address = address % _REACH // CHUNK * CHUNK
    periods = address // PERIOD
    chunks, last = chunk_places(operand, address % PERIOD)
    return chunks + periods * (PERIOD // CHUNK), last + periods * PERIOD


def numbers(held: np.ndarray, dtype: DType) -> np.ndarray:
    """Elements as the unit multiplies them, in float32: every type that it takes fits there."""
    if dtype == f32:
        return (held.view(np.uint32) & _TF32).view(np.float32)
    return wide(held, dtype).astype(np.float32, copy=False)


def elements(raw: np.ndarray, operand: Operand, at: np.ndarray, dtype: DType) -> np.ndarray:
    """An operand in shared memory as float32, [outer, K of one instruction]."""
    held = numbers(chunks_of(raw).take(at).view(carrier(dtype)), dtype)
    return held.T if operand.transposed else held


def fragment(registers: np.ndarray, block: int, step: int, run: int, dtype: DType) -> np.ndarray:
    """Operand A of one instruction from a register tile, [64, K of one instruction]: registers of
    axis 1 are runs of `run` neighbouring columns, two for a step."""
    columns = registers.shape[1]
    full = np.broadcast_to(registers, (*registers.shape[:2], 1, 4, 32))
    part = full[2 * block : 2 * block + 2, 2 * run * step : 2 * run * (step + 1)]
    assert part.shape[1] == 2 * run, f"step {step} of {columns} registers"
    # (half, j, e, warp, row, quarter) to (warp, half, row, j, quarter, e)
    parts = part.reshape(2, 2, run, 4, 8, 4).transpose(3, 0, 4, 1, 5, 2)
    return numbers(np.ascontiguousarray(parts.reshape(ROWS, 8 * run)), dtype)


def added(left: np.ndarray, right: np.ndarray, sums: DType) -> np.ndarray:
    """left · rightᵀ in the type of the sums. Sums of 32 products of 8-bit integers fit float32."""
    return (left @ right.T).astype(sums.numpy, copy=False)


class Accumulator:
    """An accumulator that products are under way for. `rows` is [blocks of 64 rows, 64, n]."""

    __slots__ = ("extents", "last", "product", "rows", "waited")

    def __init__(self, array: np.ndarray, extents: tuple[int, ...]) -> None:
        blocks, eights = extents[0] // 2, extents[1] // 2
        self.extents = extents
        self.last = 0  # the number of the group that its last product is in
        self.product: Op | None = None  # that product
        self.waited: WaitGroup | None = None  # the last wait that was to make it valid, and did not
        full = np.broadcast_to(array, (*extents, 1, 4, 32))
        parts = full.reshape(blocks, 2, eights, 2, 4, 8, 4)
        # (block, half, j, e, warp, row, pair) to (block, warp, half, row, j, pair, e)
        rows = np.empty((blocks, 4, 2, 8, eights, 4, 2), array.dtype)
        rows[...] = parts.transpose(0, 4, 1, 5, 2, 6, 3)
        self.rows = rows.reshape(blocks, ROWS, 8 * eights)

    def registers(self) -> np.ndarray:
        """The register tile."""
        blocks, eights = self.extents[0] // 2, self.extents[1] // 2
        parts = self.rows.reshape(blocks, 4, 2, 8, eights, 4, 2)
        return parts.transpose(0, 2, 4, 6, 1, 3, 5).reshape(*self.extents, 1, 4, 32)


@dataclass(slots=True)
class Product:
    """One instruction: row block `block` of `acc` gets a·b when `run` is called, added to what is
    there or, `fresh`, to 0."""

    op: Op
    acc: Accumulator
    block: int
    run: Callable[[], np.ndarray]
    fresh: bool = False

    def retire(self) -> None:
        """Read the operands and add their product."""
        if self.fresh:
            self.acc.rows[self.block] = 0
        self.acc.rows[self.block] += self.run()


class MatrixUnit:
    """The matrix unit of one warpgroup: groups of products, oldest first.

    Products retire at any time; what the warpgroup may rely on is what it has waited for."""

    __slots__ = ("closed", "groups", "known", "open")

    def __init__(self) -> None:
        self.open: list[Product] = []
        self.groups: deque[list[Product]] = deque()
        self.closed = 0  # groups so far
        self.known = 0  # of them, those that have been waited for

    def issue(self, product: Product) -> None:
        """Begin a product; it belongs to the group that is closed next."""
        product.acc.last, product.acc.product = self.closed + 1, product.op
        self.open.append(product)

    def commit(self) -> None:
        """Close the current group."""
        self.groups.append(self.open)
        self.open = []
        self.closed += 1

    def wait(self, pending: int) -> None:
        """Retire groups until at most `pending` are left."""
        while len(self.groups) > pending:
            for product in self.groups.popleft():
                product.retire()
        self.known = max(self.known, self.closed - pending)

    def valid(self, acc: Accumulator) -> bool:
        """Whether all products of an accumulator have been waited for."""
        return acc.last <= self.known

    def oldest(self) -> Callable[[], None] | None:
        """What may be done next, if anything is under way."""
        for group in (*self.groups, self.open):
            if group:
                return partial(_retire_first, group)
        return None


def _retire_first(group: list[Product]) -> None:
    group.pop(0).retire()

"""Facts of the GPU architectures that kernels are compiled for. Knows no machine (clock, memory
speed: base/hw/) and no driver."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warploom.base.dtypes import DType, bf16, f8e4m3, f8e5m2, f16, f32, i8, i32, u8

WARP = 32
F8_SINCE = "sm_89"  # conversions of 8-bit floats


@dataclass(frozen=True, slots=True)
class Product:
    """What one instruction of a matrix unit does: D[M, N] += A[M, K] · B[K, N].

    `pairs` are the element types of A and B. `rows` is M, `depth` K; `columns` every N. `turned`:
    an operand in shared memory may be contiguous along M or N, else it is along K only. A lies in
    shared memory or in registers, B in shared memory, D in registers. `since` is the architecture.
    """

    unit: str
    pairs: tuple[tuple[DType, DType], ...]
    sums: DType
    rows: int
    columns: tuple[int, ...]
    depth: int
    turned: bool
    since: str = "sm_90a"

    def near(self, axis: str, extent: int) -> tuple[int, ...]:
        """The extents of an axis ("M", "N" or "K" of whole tiles) that are next to one that the
        unit cannot do: one or two."""
        if axis == "N":
            below = [n for n in self.columns if n < extent][-1:]
            above = [n for n in self.columns if n > extent][:1]
            return (*below, *above)
        step = self.rows if axis == "M" else self.depth
        return tuple(n for n in (extent // step * step, extent // step * step + step) if n)

    def takes(self, axis: str, extent: int) -> bool:
        """Whether a tile may have this extent along an axis."""
        if axis == "N":
            return extent in self.columns
        return extent % (self.rows if axis == "M" else self.depth) == 0


def _wgmma(
    *pairs: tuple[DType, DType],
    depth: int,
    sums: DType = f32,
    columns: tuple[int, ...] = tuple(range(8, 257, 8)),
    turned: bool = False,
) -> Product:
    return Product("wgmma", pairs, sums, 64, columns, depth, turned)


def _all_of(*kinds: DType) -> tuple[tuple[DType, DType], ...]:
    return tuple((a, b) for a in kinds for b in kinds)


# The one list of what matrix units can do. `tests/codegen/test_legality.py` has the assembler take
# every row, and refuse what is next to it.
PRODUCTS: tuple[Product, ...] = (
    _wgmma((f16, f16), (bf16, bf16), depth=16, turned=True),
    _wgmma((f32, f32), depth=8),  # as tf32
    _wgmma(*_all_of(f8e4m3, f8e5m2), depth=32),
    _wgmma(*_all_of(i8, u8), depth=32, sums=i32, columns=(8, 16, 24, 32, *range(48, 257, 16))),
)

# The same of the unit that a warp uses by itself: A, B and D in its registers, as fragments.
WARP_PRODUCTS: tuple[Product, ...] = (
    Product("mma.sync", ((f16, f16), (bf16, bf16)), f32, 16, (8,), 16, False, "sm_80"),
)


def warp_product_of(a: DType, b: DType) -> Product | None:
    """What `mma.sync` does with operands of these types, or None."""
    return next((p for p in WARP_PRODUCTS if (a, b) in p.pairs), None)


def product_of(a: DType, b: DType) -> Product | None:
    """What the matrix unit does with operands of these types, or None."""
    return next((p for p in PRODUCTS if (a, b) in p.pairs), None)


@dataclass(frozen=True, slots=True)
class Target:
    """One architecture, in the numbers that passes, emitter and checker need.

    `arch` is the name that NVRTC takes. Bytes are bytes; `shared_per_block` is what one block may
    use with the opt-in attribute set, `shared_default` what it may use without.
    """

    arch: str
    registers_per_sm: int = 65536
    registers_per_thread: int = 255
    register_granule: int = 8
    threads_per_block: int = 1024
    warps_per_sm: int = 64
    blocks_per_sm: int = 32
    shared_default: int = 48 * 1024
    shared_per_block: int = 163 * 1024
    shared_per_sm: int = 164 * 1024
    named_barriers: int = 16
    vector_bytes: int = 16

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability: (9, 0) for sm_90a."""
        digits = re.sub(r"\D", "", self.arch)
        return int(digits[:-1]), int(digits[-1])

    def has(self, since: str) -> bool:
        """Whether operations declared `since` an architecture ("sm_90a") exist on this target.

        A name that ends in a letter means that architecture alone.
        """
        if since[-1].isalpha():
            return since == self.arch
        return self.capability >= Target(since).capability

    def has_dtype(self, dtype: DType) -> bool:
        """Whether values of an element type can be converted."""
        return not dtype.is_f8 or self.has(F8_SINCE)

    def registers_for(self, threads: int) -> int:
        """Most registers a thread can have in a block of so many threads, one block an SM."""
        fair = self.registers_per_sm // max(threads, 1) // self.register_granule
        return min(self.registers_per_thread, fair * self.register_granule)

    def __str__(self) -> str:
        return self.arch


SM_80 = Target("sm_80")
SM_89 = Target(
    "sm_89",
    warps_per_sm=48,
    blocks_per_sm=24,
    shared_per_block=99 * 1024,
    shared_per_sm=100 * 1024,
)
SM_90A = Target("sm_90a", shared_per_block=227 * 1024, shared_per_sm=228 * 1024)

TARGETS: dict[str, Target] = {t.arch: t for t in (SM_80, SM_89, SM_90A)}
DEFAULT = SM_90A


def target_of(capability: tuple[int, int]) -> Target | None:
    """The target whose code a device of this compute capability runs, or None.

    Code for sm_90a runs on 9.0 only; code without a letter runs on later minor versions of its
    major version.
    """
    if capability == (9, 0):
        return SM_90A
    fitting = [
        t for t in (SM_80, SM_89) if t.capability[0] == capability[0] and t.capability <= capability
    ]
    return max(fitting, key=lambda t: t.capability, default=None)

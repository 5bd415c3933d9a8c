"""Accesses to global memory: one operation is all accesses of one register tile.

The address of vector group g is `tensor + base + offset[g]`, in elements. `offset` has the extents
of the value with the extent of `axis` divided by `vec`; registers g·vec … g·vec + vec − 1 along
`axis` are consecutive in memory. `predicate` (bool, broadcasts to the extents of `offset`) guards
whole groups.
"""

from __future__ import annotations

from warploom.base.dtypes import DType, f32, i32, i64
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
from warploom.ir.ops.registers import regs_of
from warploom.ir.ops.scalar import least_uniform, scalar_of, tensor_of
from warploom.ir.ops.sync import SCOPES
from warploom.ir.types import Regs, Scalar, Type, Uniformity, broadcast

ATOMIC = ("add", "max", "min", "and", "or", "xor", "exchange", "cas")
ATOMIC_DTYPES = (f32, i32, i64)
ORDERS = ("relaxed", "acquire", "release", "acq_rel")
CACHE = ("", "evict_first", "evict_last", "evict_normal", "no_allocate")


def check_atomic(kind: str, dtype: DType, order: str, scope: str, has_expected: bool) -> None:
    """Rules of atomic operations at every stage; floats are added and exchanged only."""
    check(kind in ATOMIC, f"atomic {kind!r}")
    floats = dtype.is_float and kind not in ("add", "exchange")
    check(dtype in ATOMIC_DTYPES and not floats, f"no atomic {kind} of {dtype}")
    check(order in ORDERS, f"order {order!r}")
    check(scope in SCOPES, f"scope {scope!r}")
    check(has_expected == (kind == "cas"), f"atomic {kind} with an expected value or without")


def grouped(extents: tuple[int, ...], axis: int, vec: int) -> tuple[int, ...]:
    """Extents of the vector groups of a register tile."""
    return extents if vec == 1 else extents[:axis] + (extents[axis] // vec,) + extents[axis + 1 :]


def check_access(
    offset: Value, predicate: Value | None, extents: tuple[int, ...], axis: int, vec: int
) -> None:
    """Shared rules of vector accesses, global and shared."""
    check(vec in (1, 2, 4, 8, 16), f"vector of {vec}")
    check(vec == 1 or extents[axis] % vec == 0, f"vector of {vec} in {extents} along axis {axis}")
    groups = grouped(extents, axis, vec)
    o = regs_of(offset)
    if not o.dtype.is_int or o.extents != groups:
        raise Complaint(f"offsets {o} for groups {groups}")
    if predicate is not None:
        p = regs_of(predicate)
        if not p.dtype.is_bool or broadcast(p.extents, groups) != groups:
            raise Complaint(f"predicate {p} for groups {groups}")


@op("global_memory.load", stages=Stage.MACHINE, effects=(Effect.READ_GLOBAL,))
class Load(Op):
    """Load a register tile; where the predicate is false nothing is read and the registers are
    `other` (scalar) or zero. `read_only`: no block writes the tensor in this launch
    (ld.global.nc). `gathered`: the offsets come from index tiles, not from the layout."""

    tensor: Value = operand()
    base: Value = operand()
    offset: Value = operand()
    predicate: Value | None = optional()
    other: Value | None = optional()
    axis: int = attribute(default=0)
    vec: int = attribute(default=1)
    read_only: bool = attribute(default=False)
    cache: str = attribute(default="")
    gathered: bool = attribute(default=False)

    def infer(self) -> tuple[Type, ...]:
        groups = regs_of(self.offset).extents
        extents = tuple(n * self.vec if a == self.axis else n for a, n in enumerate(groups))
        return (Regs(tensor_of(self.tensor).dtype, extents),)

    def verify(self) -> None:
        check(self.cache in CACHE, f"cache policy {self.cache!r}")
        check(scalar_of(self.base).dtype.is_int, "base is not an integer")
        check_access(self.offset, self.predicate, regs_of(self.result).extents, self.axis, self.vec)


@op("global_memory.store", stages=Stage.MACHINE, effects=(Effect.WRITE_GLOBAL,))
class Store(Op):
    """Store a register tile where the predicate holds."""

    tensor: Value = operand()
    value: Value = operand()
    base: Value = operand()
    offset: Value = operand()
    predicate: Value | None = optional()
    axis: int = attribute(default=0)
    vec: int = attribute(default=1)
    cache: str = attribute(default="")

    def verify(self) -> None:
        check(self.cache in CACHE, f"cache policy {self.cache!r}")
        check(regs_of(self.value).dtype == tensor_of(self.tensor).dtype, "stored dtype")
        check_access(self.offset, self.predicate, regs_of(self.value).extents, self.axis, self.vec)


@op("global_memory.prefetch", stages=Stage.MACHINE, effects=(Effect.OUTSIDE,))
class Prefetch(Op):
    """Have the lines of a register tile of addresses read into the cache of `level` ("L1" or "L2")
    where the predicate holds; one address a vector group. PTX prefetch.global."""

    tensor: Value = operand()
    base: Value = operand()
    offset: Value = operand()
    predicate: Value | None = optional()
    level: str = attribute()

    def verify(self) -> None:
        check(self.level in ("L1", "L2"), f"cache {self.level!r}")
        check(scalar_of(self.base).dtype.is_int, "base is not an integer")
        check_access(self.offset, self.predicate, regs_of(self.offset).extents, 0, 1)


@op(
    "global_memory.atomic",
    stages=Stage.MACHINE,
    effects=(Effect.READ_GLOBAL, Effect.WRITE_GLOBAL, Effect.SYNC),
)
class Atomic(Op):
    """Change each element where the predicate holds in one step, and give what was there (zero
    where the predicate is false). `cas` stores `value` where the element is `expected`.

    `returns` false: nobody asks for the result. An `order` with release comes after all that the
    role did, one with acquire before all that it does (insert_role_barriers sees to it). A sum of
    f32 takes denormals for zero. PTX atom, red."""

    tensor: Value = operand()
    value: Value = operand()
    base: Value = operand()
    offset: Value = operand()
    expected: Value | None = optional()
    predicate: Value | None = optional()
    kind: str = attribute()
    order: str = attribute(default="relaxed")
    scope: str = attribute(default="gpu")
    returns: bool = attribute(default=True)
    axis: int = attribute(default=0)
    vec: int = attribute(default=1)

    @property
    def releases(self) -> bool:
        """Whether what the role did before is published by this."""
        return self.order in ("release", "acq_rel")

    @property
    def acquires(self) -> bool:
        """Whether the role sees after this what others published."""
        return self.order in ("acquire", "acq_rel")

    def infer(self) -> tuple[Type, ...]:
        held = regs_of(self.value)
        return (Regs(held.dtype, held.extents),)

    def verify(self) -> None:
        dtype = tensor_of(self.tensor).dtype
        check_atomic(self.kind, dtype, self.order, self.scope, self.expected is not None)
        for held in (self.value, *([] if self.expected is None else [self.expected])):
            check(regs_of(held).dtype == dtype, f"{held} for a tensor of {dtype}")
        check(self.vec == 1, "an atomic operation takes one element at a time")
        check_access(self.offset, self.predicate, regs_of(self.value).extents, self.axis, 1)


@op(
    "global_memory.load_scalar",
    stages=Stage.MACHINE,
    effects=(Effect.READ_GLOBAL,),
    executes=Actor.WARP,
)
class LoadScalar(Op):
    """One element at `base`, the same address for the whole warp; `other` or zero where the scalar
    predicate is false."""

    tensor: Value = operand()
    base: Value = operand()
    predicate: Value | None = optional()
    other: Value | None = optional()
    read_only: bool = attribute(default=False)

    def infer(self) -> tuple[Type, ...]:
        return (
            Scalar(tensor_of(self.tensor).dtype, max(Uniformity.BLOCK, least_uniform(self.base))),
        )

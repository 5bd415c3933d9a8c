"""Holds the integers of machine operations against the layouts that annotate the values they move.

Addresses are computed by ordinary operations, and a layout only says what they should be. Here the
operations are evaluated for every lane, warp and register, with small numbers in the place of what
is known at launch only. Gathers, whose offsets are index tiles, are not looked at. Knows no device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from warploom.ir.kernel import Kernel, walk
from warploom.ir.layout.layout import LANES, Layout
from warploom.ir.op import Complaint, Op, Value, check
from warploom.ir.ops import (
    debug,
    flagged,
    global_memory,
    index,
    registers,
    remote,
    scalar,
    shared_memory,
)
from warploom.ir.ops.control import For, While
from warploom.ir.roles import walk_roles
from warploom.ir.types import Regs, Scalar
from warploom.ir.verifier import VerifyError

_WRITES = (global_memory.Store, global_memory.Atomic, flagged.Put, shared_memory.Store)
_CHUNK = 16  # bytes that a swizzle keeps together
_EXTENT = 1 << 20  # of tensors: no window with a small start leaves them
_STRIDES = (3, 5, 7, 11, 13, 17)

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


_InBuffer: TypeAlias = (
    shared_memory.Load
    | shared_memory.Store
    | remote.LoadGroups
    | remote.StoreGroups
    | remote.SendGroups
)
_WRITES = (
    *(global_memory.Store, global_memory.Atomic, shared_memory.Store),
    *(remote.StoreGroups, remote.SendGroups),
)


def verify_accesses(kernel: Kernel) -> None:
    """Raise `VerifyError` where an address, a predicate or a printed coordinate of a kernel at the
    machine stage does not fit the layout of the value."""
    integers = Integers(kernel.warps)
    for op in walk(kernel.body):
        if isinstance(op, For):
            integers.loops[op.body.args[0]] = op.lo
        elif isinstance(op, While):
            integers.loops.update(zip(op.carried, op.inits, strict=True))
    for op, warps in walk_roles(kernel):
        integers.warps = warps
        try:
            _verify(op, integers)
        except Complaint as complaint:
            raise VerifyError(f"{op.OPCODE} at {op.loc}: {complaint}") from None


class Integers:
    """Values of integer and bool machine values as arrays [registers…, warps, lanes]; scalars have
    rank 0. Loop indices and what a `while` carries are at their first trip."""

    def __init__(self, warps: int) -> None:
        self.warps = warps
        self.loops: dict[Value, Value] = {}
        self._known: dict[Value, np.ndarray | None] = {}

    def of(self, value: Value) -> np.ndarray | None:
        """The numbers of a value, or None where they depend on data."""
        if value not in self._known:
            self._known[value] = self._evaluate(value)
        return self._known[value]

    def _evaluate(self, value: Value) -> np.ndarray | None:
        if value in self.loops:
            return self.of(self.loops[value])
        if not isinstance(value.type, Scalar | Regs) or value.type.dtype.is_float:
            return None
        op = value.owner
        if op is None:
            return np.array(1)  # a scalar argument
        if not isinstance(op, Op):
            return None
        if isinstance(op, registers.Map):
            place = op.results.index(value)
            return self.of(tuple(op.body.ops[-1].operand_values())[place])
        source = self._source(op)
        return source if source is not None else self._computed(op)

    def _source(self, op: Op) -> np.ndarray | None:
        if isinstance(op, scalar.Const):
            return np.array(int(op.number))
        if isinstance(op, scalar.Dim):
            return np.array(_EXTENT)
        if isinstance(op, scalar.Stride):
            return np.array(_STRIDES[op.axis % len(_STRIDES)])
        if isinstance(op, scalar.BlockId):
            return np.array(0)
        if isinstance(op, scalar.GridDim):
            return np.array(1)
        if isinstance(op, index.Lane):
            return np.arange(LANES).reshape((1,) * op.rank + (1, LANES))
        if isinstance(op, index.Warp):
            return np.arange(self.warps).reshape((1,) * op.rank + (self.warps, 1))
        if isinstance(op, index.Constants):
            shape = tuple(-1 if a == op.axis else 1 for a in range(op.rank))
            return np.array(op.numbers).reshape((*shape, 1, 1))
        return None

    def _computed(self, op: Op) -> np.ndarray | None:
        inputs = [self.of(v) for v in op.operand_values()]
        given = [v for v in inputs if v is not None]
        if len(given) < len(inputs):
            return None
        if isinstance(op, scalar.Binary | registers.Binary):
            return self._binary(op.kind, *given)
        if isinstance(op, scalar.Compare | registers.Compare):
            return _COMPARE[op.kind](*given)
        if isinstance(op, scalar.Select | registers.Select):
            return np.where(*given)
        if isinstance(op, scalar.Cast | registers.Cast):
            return given[0]
        return self._moved(op, *given)

    def _binary(self, kind: str, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray | None:
        if kind not in _BINARY or (kind in ("floordiv", "mod") and not rhs.all()):
            return None
        return _BINARY[kind](lhs, rhs)

    def _moved(self, op: Op, *given: np.ndarray) -> np.ndarray | None:
        if isinstance(op, registers.Splat):
            return given[0].reshape((1,) * (op.rank + 2))
        if isinstance(op, registers.Spread):
            return np.broadcast_to(given[0], op.extents + given[0].shape[-2:])
        if isinstance(op, registers.View):
            kept = [a for a in op.axes if a >= 0]
            rank = given[0].ndim - 2
            dropped = [a for a in range(rank) if a not in kept]
            moved = given[0].transpose(*kept, *dropped, rank, rank + 1)
            shape = tuple(1 if a < 0 else given[0].shape[a] for a in op.axes)
            return moved.reshape(shape + given[0].shape[-2:])
        if isinstance(op, registers.Slice):
            return given[0].take(range(op.start, op.start + op.size), axis=op.axis)
        if isinstance(op, index.Digit):
            digit = given[0] // op.divisor
            return digit % op.extent if op.extent else digit
        return None


def _verify(op: Op, integers: Integers) -> None:
    if isinstance(op, global_memory.Load | shared_memory.Load | remote.LoadGroups):
        _verify_access(op, op.result, integers, writes=False)
    elif isinstance(op, _WRITES):
        _verify_access(op, op.value, integers, writes=True)
    elif isinstance(op, debug.PrintTile):
        layout = _layout(op.value)
        for axis, value in enumerate(op.coordinates):
            found = integers.of(value)
            if layout is not None and found is not None:
                _equal(found, _coordinate(layout, axis), f"coordinates of axis {axis}")


def _layout(value: Value) -> Layout | None:
    return value.type.layout if isinstance(value.type, Regs) else None


def _coordinate(layout: Layout, axis: int) -> np.ndarray:
    """Coordinates of an axis as [registers of every axis (1 but for this one), warps, lanes]."""
    found = layout.coordinates(axis)
    shape = tuple(-1 if a == axis else 1 for a in range(len(layout.shape)))
    return found.reshape(shape + found.shape[1:])


def _equal(found: np.ndarray, wanted: np.ndarray, what: str) -> None:
    same = bool((found == wanted).all())
    check(same and np.broadcast(found, wanted).shape == wanted.shape, f"{what} do not fit")


def _verify_access(
    op: global_memory.Load | global_memory.Store | global_memory.Atomic | flagged.Put | _InBuffer,
    moved: Value,
    integers: Integers,
    *,
    writes: bool,
) -> None:
    offsets, layout = integers.of(op.offset), _layout(moved)
    if offsets is None or (isinstance(op, global_memory.Load) and op.gathered):
        return
    by_tile = isinstance(op, shared_memory.Load | shared_memory.Store) and op.gathered
    active = np.array(True) if op.predicate is None else integers.of(op.predicate)
    if isinstance(op, _InBuffer) and active is not None:
        elements = shared_memory.buffer_of(op.buffer).elements
        inside = (offsets >= 0) & (offsets + op.vec <= elements) | ~active
        check(bool(inside.all()), f"an access outside of {elements} elements")
    if layout is None or by_tile:
        return
    groups = [_coordinate(layout, a) for a in range(len(layout.shape))]
    if op.vec > 1:
        groups[op.axis] = _check_groups(groups[op.axis], op.axis, op.vec)
    if _is_swizzled(op):
        _check_apart(offsets, groups, layout)
    else:
        strides = _check_linear(offsets, groups, layout)
        varies = op.vec > 1 and len(np.unique(groups[op.axis])) > 1
        check(not varies or strides[op.axis] == 1, f"a vector along a stride of {strides}")
    if writes and active is not None:
        _check_once(active, groups, layout)


def _check_groups(coordinates: np.ndarray, axis: int, vec: int) -> np.ndarray:
    """The first coordinate of each vector; the others follow it."""
    along = np.moveaxis(coordinates, axis, 0)
    vectors = along.reshape(-1, vec, *along.shape[1:])
    steps = np.arange(vec).reshape(1, vec, *(1,) * (along.ndim - 1))
    check(bool((vectors == vectors[:, :1] + steps).all()), f"{vec} registers are no vector")
    return np.moveaxis(vectors[:, 0], 0, axis)


def _check_linear(offsets: np.ndarray, groups: list[np.ndarray], layout: Layout) -> list[int]:
    """The offset is a constant plus Σ stride · coordinate; gives the strides."""
    shape = np.broadcast_shapes(offsets.shape, *(g.shape for g in groups))
    columns = [np.broadcast_to(g, shape) for g in groups]
    wanted = np.broadcast_to(offsets, shape)
    # Digits change a coordinate one dimension at a time: these places show every stride.
    corner = (0,) * len(shape)
    rays = [(*corner[:d], slice(None), *corner[d + 1 :]) for d in range(len(shape))]
    table = np.stack([np.concatenate([c[ray] for ray in rays]) for c in columns or [wanted * 0]])
    seen = np.concatenate([wanted[ray] for ray in rays]) - wanted[corner]
    origin = [int(c[corner]) for c in columns]
    steps = table.T - np.array([origin or [0]])
    solved = np.rint(np.linalg.lstsq(steps.astype(float), seen.astype(float), rcond=None)[0])
    strides = [int(n) for n in solved[: len(groups)]]
    follows = np.array(int(wanted[corner]))
    for stride, first, group in zip(strides, origin, groups, strict=True):
        follows = follows + stride * (group - first)
    check(bool((follows == wanted).all()), f"offsets do not follow {layout}")
    return strides


def _is_swizzled(op: Op) -> bool:
    """Whether the buffer of an access mixes the chunks of its lines; it starts at a line then."""
    if not isinstance(op, _InBuffer):
        return False
    buffer = op.buffer.owner
    return isinstance(buffer, shared_memory.BufferOp) and buffer.align > _CHUNK


def _check_apart(offsets: np.ndarray, groups: list[np.ndarray], layout: Layout) -> None:
    """Offsets are equal where coordinates are, and differ where those differ; pads apart."""
    shape = np.broadcast_shapes(offsets.shape, *(g.shape for g in groups))
    element, real = np.zeros(shape, np.int64), np.ones(shape, bool)
    for axis, group in enumerate(groups):
        element = element * layout.covered(axis) + group
        real &= group < layout.shape[axis]
    pairs = np.stack([element[real], np.broadcast_to(offsets, shape)[real]], axis=1)
    distinct = len(np.unique(pairs, axis=0))
    counts = {len(np.unique(column)) for column in pairs.T}
    check(counts == {distinct}, f"two elements of {layout} share a place")


def _check_once(active: np.ndarray, groups: list[np.ndarray], layout: Layout) -> None:
    """Where bounds do not matter, an element is written by one thread and pads by none."""
    full = (*(g.shape[a] for a, g in enumerate(groups)), layout.warps, LANES)
    chosen = np.broadcast_to(active, full)
    element = np.zeros(full, np.int64)
    for axis, group in enumerate(groups):
        written = np.broadcast_to(group, full)[chosen]
        check(bool((written < layout.shape[axis]).all()), f"a pad of axis {axis} is written")
        element = element * layout.covered(axis) + group
    places = element[chosen]
    check(len(np.unique(places)) == len(places), "several threads write one element")

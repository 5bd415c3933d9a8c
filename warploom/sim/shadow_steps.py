"""Checked mode: what each operation does to written-ness, and where an unwritten value matters.

By default a result is written where all operands are. Steps of this module run before the step of
the operation itself. An unwritten value is a finding when it reaches an address, a branch or an
output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.base.dtypes import boolean
from warploom.ir.op import Op, Value
from warploom.ir.ops import control, debug, global_memory, lanes, registers, scalar, shared_memory
from warploom.ir.ops.registers import regs_of
from warploom.ir.types import Regs
from warploom.sim import faults
from warploom.sim.accesses import Place
from warploom.sim.faults import matters
from warploom.sim.loose_values import may_matter
from warploom.sim.machine import Batch, Slots, Step, sequence
from warploom.sim.registry import shadows
from warploom.sim.rules.global_memory import Global, get, put
from warploom.sim.rules.lanes import read_lanes
from warploom.sim.rules.registers import joined, slice_of_axis, view_of_axes
from warploom.sim.rules.shared_memory import Shared, as_rows, from_rows
from warploom.sim.shadow import written
from warploom.sim.shadow_values import Shadow, both
from warploom.sim.values import dense, scalar_array

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


def shadow_step(t: Translator, op: Op, step: Step) -> Step:
    """The step of an operation with what it does to written-ness before it."""
    if not may_matter(t, op):
        return step
    rule = shadows.find(type(op))
    before = rule(t, op) if rule is not None else _by_operands(t, op)
    return step if before is None else sequence((before, step))


def _by_operands(t: Translator, op: Op) -> Step | None:
    operands = [t.slot(v) for v in op.operand_values()]
    results = [t.slot(r) for r in op.results]
    if not results:
        return None

    def step(s: Slots, m: Batch) -> None:
        found = both(*(m.shadow[a] for a in operands))
        for d in results:
            m.shadow[d] = found

    return step


# ---- moves -------------------------------------------------------------------------------------


@shadows(registers.Map)
def map_registers(t: Translator, op: registers.Map) -> None:
    """The operations inside have steps of their own."""


@shadows(control.Assign)
def assign(t: Translator, op: control.Assign) -> Step:
    a, d = t.slot(op.source), t.slot(op.target)

    def step(s: Slots, m: Batch) -> None:
        m.shadow[d] = m.shadow[a]

    return step


def _moved(t: Translator, op: Any, change: Any) -> Step:
    a, d = t.slot(op.value), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        shadow = m.shadow[a]
        m.shadow[d] = None if shadow is None else shadow.map(change)

    return step


@shadows(registers.Splat)
def splat(t: Translator, op: registers.Splat) -> Step:
    return _moved(t, op, lambda flags: flags.reshape((1,) * op.rank + flags.shape))


@shadows(registers.View)
def view(t: Translator, op: registers.View) -> Step:
    return _moved(t, op, view_of_axes(op.axes, _rank(op.value)))


@shadows(registers.Slice)
def slice_registers(t: Translator, op: registers.Slice) -> Step:
    return _moved(t, op, slice_of_axis(op.axis, op.start, op.size))


@shadows(lanes.ShuffleXor)
def shuffle_xor(t: Translator, op: lanes.ShuffleXor) -> Step:
    order = np.arange(32) ^ op.mask
    return _moved(t, op, lambda f: f if f.shape[-1] == 1 else f.take(order, axis=-1))


@shadows(lanes.Shuffle)
def shuffle(t: Translator, op: lanes.Shuffle) -> Step:
    a, lane, d = t.slot(op.value), t.slot(op.lane), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        shadow = m.shadow[a]
        if shadow is not None:
            shadow = shadow.map(lambda flags: read_lanes(flags, dense(s[lane])))
        m.shadow[d] = both(shadow, m.shadow[lane])

    return step


@shadows(lanes.Ballot)
def ballot(t: Translator, op: lanes.Ballot) -> Step:
    return _moved(t, op, lambda flags: np.logical_and.reduce(flags, -1, keepdims=True))


@shadows(registers.ToScalar)
def to_scalar(t: Translator, op: registers.ToScalar) -> Step:
    first = (0,) * _rank(op.value) + (slice(None), slice(0, 1), slice(0, 1))
    return _moved(t, op, lambda flags: flags[first])


@shadows(registers.Cat)
def cat(t: Translator, op: registers.Cat) -> Step:
    parts = [(t.slot(v), v.type.extents) for v in op.values]  # type: ignore[union-attr]
    d, rank = t.slot(op.result), _rank(op.result)

    def step(s: Slots, m: Batch) -> None:
        held = [m.shadow[a] for a, _ in parts]
        origin = next((h.origin for h in held if h is not None), None)
        if origin is None:
            m.shadow[d] = None
            return
        full = np.ones((1,) * (rank + 3), bool)
        flags = [
            (full if h is None else h.flags, extents)
            for h, (_, extents) in zip(held, parts, strict=True)
        ]
        m.shadow[d] = Shadow(joined(flags, op.axis), origin)

    return step


def _rank(value: Value) -> int:
    assert isinstance(value.type, Regs)
    return len(value.type.extents)


# ---- choices and folds -------------------------------------------------------------------------


@shadows(registers.Select, scalar.Select)
def select(t: Translator, op: registers.Select | scalar.Select) -> Step:
    """An unwritten value that is not chosen does no harm."""
    c, yes, no, d = t.slot(op.condition), t.slot(op.yes), t.slot(op.no), t.slot(op.result)
    is_scalar = isinstance(op, scalar.Select)

    def step(s: Slots, m: Batch) -> None:
        chosen, one, other = m.shadow[c], m.shadow[yes], m.shadow[no]
        first = other if one is None else one
        if first is not None:
            condition = scalar_array(s[c], boolean, 0) if is_scalar else dense(s[c])
            flags = np.where(
                condition,
                True if one is None else one.flags,
                True if other is None else other.flags,
            )
            picked = Shadow(flags, first.origin)
            m.shadow[d] = both(chosen, None if flags.all() else picked)
        else:
            m.shadow[d] = chosen

    return step


@shadows(registers.Binary)
def binary(t: Translator, op: registers.Binary) -> Step | None:
    """`and` with a written False is False, `or` with a written True is True."""
    assert isinstance(op.lhs.type, Regs)
    if op.kind not in ("and", "or") or not op.lhs.type.dtype.is_bool:
        return _by_operands(t, op)
    a, b, d, decisive = t.slot(op.lhs), t.slot(op.rhs), t.slot(op.result), op.kind == "or"

    def step(s: Slots, m: Batch) -> None:
        found = both(m.shadow[a], m.shadow[b])
        if found is not None:
            flags = found.flags
            for slot in (a, b):
                shadow = m.shadow[slot]
                settled = dense(s[slot]) == decisive
                flags = flags | (settled if shadow is None else settled & shadow.flags)
            found = None if flags.all() else Shadow(flags, found.origin)
        m.shadow[d] = found

    return step


@shadows(registers.Fold)
def fold(t: Translator, op: registers.Fold) -> Step:
    return _moved(t, op, lambda flags: np.logical_and.reduce(flags, op.axis, keepdims=True))


@shadows(registers.ArgFold)
def arg_fold(t: Translator, op: registers.ArgFold) -> Step:
    a, i, results = t.slot(op.value), t.slot(op.index), [t.slot(r) for r in op.results]

    def step(s: Slots, m: Batch) -> None:
        found = both(m.shadow[a], m.shadow[i])
        if found is not None:
            found = found.map(lambda flags: np.logical_and.reduce(flags, op.axis, keepdims=True))
        for d in results:
            m.shadow[d] = found

    return step


# ---- branches ----------------------------------------------------------------------------------


@shadows(control.If)
def if_else(t: Translator, op: control.If) -> Step:
    condition = t.slot(op.condition)
    return lambda s, m: matters(m, op, "decides this branch", condition)


@shadows(control.For)
def for_loop(t: Translator, op: control.For) -> Step:
    bounds = [t.slot(v) for v in (op.lo, op.hi, op.step)]
    index = t.slot(op.body.args[0])

    def step(s: Slots, m: Batch) -> None:
        matters(m, op, "bounds this loop", *bounds)
        m.shadow[index] = None

    return step


@shadows(control.While)
def while_loop(t: Translator, op: control.While) -> None:
    """The loop itself looks at its condition before each trip."""


@shadows(debug.Breakpoint)
def stop(t: Translator, op: debug.Breakpoint) -> None:
    """Looking is no use."""


@shadows(debug.Print, debug.PrintTile, debug.Assert)
def observe(t: Translator, op: Op) -> Step:
    operands = [t.slot(v) for v in op.operand_values()]
    use = "is asserted" if isinstance(op, debug.Assert) else "is printed"
    return lambda s, m: matters(m, op, use, *operands)


# ---- memory ------------------------------------------------------------------------------------


def check_addresses(m: Batch, op: Op, at: Place, *slots: int) -> None:
    """Unwritten addresses matter where the access takes place."""
    for a in slots:
        shadow = m.shadow[a] if a >= 0 else None
        if shadow is None:
            continue
        # Offsets stand for vector groups: one unwritten offset spoils its access.
        loose = ~shadow.flags
        if at.mask is not None and loose.ndim > 3 and at.plan.vec == 1:
            loose = loose & dense(at.mask)
        if loose.any():
            faults.unwritten(m, op, "is used as an address", shadow.origin, loose)


def read_state(m: Batch, op: Op, at: Place) -> Shadow | None:
    """Written-ness of what an access reads."""
    state = at.memory.shadow
    if state is None:
        return None
    good = written(at.memory)
    found = get(at._replace(memory=state), good)
    flags = found == good
    if flags.all():
        return None
    over = bool(at.memory.others) and bool(found[~flags].any())
    if at.memory.spoilt is not None and not over:
        return Shadow(flags, at.memory.spoilt)
    places = at.plan.elements + at.span.shift
    if at.memory.pitch:
        places = places - m.rows * at.memory.pitch
    return Shadow(flags, faults.Origin(m, op, at.memory, places, ~flags, over))


def _chosen(m: Batch, at: Place, predicate: int) -> Shadow | None:
    """The shadow of what decides, element by element, whether memory or the filler is read."""
    return m.shadow[predicate] if predicate >= 0 and at.plan.vec == 1 else None


@shadows(global_memory.Load)
def load(t: Translator, op: global_memory.Load) -> Step:
    access, d, other = Global(t, op), t.slot(op.result), t.optional(op.other)

    def step(s: Slots, m: Batch) -> None:
        at = access.place(s, m)
        check_addresses(m, op, at, access.base, access.offset, access.predicate)
        found = read_state(m, op, at)
        filler = m.shadow[other] if other >= 0 else None
        m.shadow[d] = both(found, filler, _chosen(m, at, access.predicate))

    return step


@shadows(shared_memory.Load)
def load_shared(t: Translator, op: shared_memory.Load) -> Step:
    access, d = Shared(t, op), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        at = access.place(s, m)
        check_addresses(m, op, at, access.offset, access.predicate)
        m.shadow[d] = read_state(m, op, at)

    return step


@shadows(shared_memory.LoadMatrices)
def load_matrices(t: Translator, op: shared_memory.LoadMatrices) -> Step:
    access, d = Shared(t, op), t.slot(op.result)
    extents, turned = regs_of(op.result).extents, op.turned

    def step(s: Slots, m: Batch) -> None:
        at = access.place(s, m)
        check_addresses(m, op, at, access.offset)
        found = read_state(m, op, at)
        m.shadow[d] = found and found.map(lambda flags: from_rows(flags, extents, turned))

    return step


@shadows(global_memory.Store)
def store(t: Translator, op: global_memory.Store) -> Step:
    access, value = Global(t, op), t.slot(op.value)

    def step(s: Slots, m: Batch) -> None:
        at = access.place(s, m)
        check_addresses(m, op, at, access.base, access.offset, access.predicate)
        shadow = m.shadow[value]
        if shadow is None:
            return
        loose = ~shadow.flags
        if at.mask is not None:
            loose = loose & dense(at.mask)
        if loose.any():
            faults.unwritten(m, op, "is stored here", shadow.origin, loose)

    return step


@shadows(global_memory.Atomic)
def atomic(t: Translator, op: global_memory.Atomic) -> Step:
    """The operands are an output; what was there is as written as the memory."""
    access, d = Global(t, op), t.slot(op.result)
    given = [t.slot(v) for v in (op.value, op.expected) if v is not None]

    def step(s: Slots, m: Batch) -> None:
        at = access.place(s, m)
        check_addresses(m, op, at, access.base, access.offset, access.predicate)
        matters(m, op, "changes a tensor", *given)
        m.shadow[d] = read_state(m, op, at)

    return step


@shadows(shared_memory.Store)
def store_shared(t: Translator, op: shared_memory.Store) -> Step:
    return _stored(t, op, lambda flags: flags)


@shadows(shared_memory.StoreMatrices)
def store_matrices(t: Translator, op: shared_memory.StoreMatrices) -> Step:
    extents, turned = regs_of(op.value).extents, op.turned
    return _stored(t, op, lambda flags: as_rows(flags, extents, turned))


def _stored(
    t: Translator,
    op: shared_memory.Store | shared_memory.StoreMatrices,
    moved: Callable[[np.ndarray], np.ndarray],
) -> Step:
    """Storing to shared memory is no output: the memory becomes as written as the value."""
    access, value = Shared(t, op), t.slot(op.value)

    def step(s: Slots, m: Batch) -> None:
        at = access.place(s, m)
        check_addresses(m, op, at, access.offset, access.predicate)
        store_state(at, m.shadow[value], moved)

    return step


def store_state(
    at: Place, shadow: Shadow | None, moved: Callable[[np.ndarray], np.ndarray]
) -> None:
    """A place becomes as written as a value that is stored there."""
    memory = at.memory
    if memory.shadow is None:
        return
    flags = np.ones((1,) * (len(at.plan.shape[0]) + 3), bool)
    if shadow is not None:
        flags, memory.spoilt = moved(shadow.flags), shadow.origin
    state = np.where(flags, written(memory), 0).astype(memory.shadow.flat.dtype)
    put(Place(memory.shadow, at.plan, at.span, at.mask), state)


@shadows(global_memory.LoadScalar)
def load_scalar(t: Translator, op: global_memory.LoadScalar) -> Step:
    tensor, base, d = t.slot(op.tensor), t.slot(op.base), t.slot(op.result)
    predicate, other = t.optional(op.predicate), t.optional(op.other)

    def step(s: Slots, m: Batch) -> None:
        matters(m, op, "is used as an address", base, predicate)
        memory = s[tensor]
        m.shadow[d] = m.shadow[other] if other >= 0 else None
        if memory.shadow is None or memory.size == 0:
            return
        places = np.reshape(s[base], (-1, 1, 1)).astype(np.int64) + memory.origin
        allowed = True if predicate < 0 else s[predicate]
        flags = np.logical_and(allowed, (places >= 0) & (places < memory.size))
        state = memory.shadow.flat.take(np.where(flags, places, 0)) == written(memory)
        loose = flags & ~state
        if loose.any():
            m.shadow[d] = Shadow(~loose, faults.Origin(m, op, memory, places, loose))

    return step

"""Checked mode of barriers, copies and products: their addresses and numbers must have been
written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warploom.ir.op import Op
from warploom.ir.ops import bulk, cluster, cp_async, descriptor, mbarrier, remote, tma, wgmma
from warploom.ir.types import Tensor
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.registry import shadows
from warploom.sim.shadow_steps import matters

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


@shadows(mbarrier.Init, mbarrier.Arrive, mbarrier.Expect, mbarrier.Wait, cluster.Arrive)
def barrier(t: Translator, op: Op) -> Step:
    slots = [t.slot(v) for v in op.operand_values()]
    return lambda s, m: matters(m, op, "is used by this barrier", *slots)


@shadows(mbarrier.Test)
def test(t: Translator, op: mbarrier.Test) -> Step:
    slots, d = [t.slot(v) for v in op.operand_values()], t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        matters(m, op, "is used by this barrier", *slots)
        m.shadow[d] = None

    return step


@shadows(
    tma.LoadBox,
    tma.StoreBox,
    tma.PrefetchBox,
    bulk.LoadBytes,
    bulk.StoreBytes,
    bulk.PrefetchBytes,
    remote.CopyBytes,
    cp_async.CopyGroups,
    cp_async.Arrive,
    descriptor.Write,
    descriptor.Acquire,
    descriptor.Prefetch,
)
def copy(t: Translator, op: Any) -> Step:
    slots = [t.slot(v) for v in op.operand_values() if not isinstance(v.type, Tensor)]
    return lambda s, m: matters(m, op, "is used as an address", *slots)


@shadows(wgmma.Mma)
def multiply(t: Translator, op: wgmma.Mma) -> Step:
    """Operands are looked at when they are read; the accumulator hands its own state on."""
    acc, d, addresses = t.slot(op.acc), t.slot(op.result), (t.slot(op.a), t.slot(op.b))

    def step(s: Slots, m: Batch) -> None:
        matters(m, op, "is used as an address", *addresses)
        m.shadow[d] = None if op.fresh else m.shadow[acc]

    return step


@shadows(wgmma.MmaRegisters)
def multiply_registers(t: Translator, op: wgmma.MmaRegisters) -> Step:
    acc, d, a, b = t.slot(op.acc), t.slot(op.result), t.slot(op.a), t.slot(op.b)

    def step(s: Slots, m: Batch) -> None:
        matters(m, op, "is used as an address", b)
        matters(m, op, "is multiplied", a)
        m.shadow[d] = None if op.fresh else m.shadow[acc]

    return step

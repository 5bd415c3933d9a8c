"""Whether an address stays within the buffer that it was computed from: copies, operands of
products and barriers know an address only, and one slot too many is another buffer's. Checked mode
only. Knows no order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warploom.ir.op import Op, Value
from warploom.ir.ops import bulk, remote, tma, wgmma
from warploom.ir.ops.shared_memory import ADDRESS_BITS
from warploom.sim import sync_faults
from warploom.sim.boxes import CHUNK
from warploom.sim.machine import Batch, Resumable, Run, Slots, Step
from warploom.sim.matrix import Operand, places
from warploom.sim.rules.wgmma import left_operand, right_operand

if TYPE_CHECKING:
    from warploom.sim.translate import Placed, Translator

_BYTE = (1 << ADDRESS_BITS) - 1
_BARRIER = 8  # bytes

Reach = Callable[[int], tuple[int, int]]
"""The first byte and the one behind the last that an access by an address touches."""


@dataclass(frozen=True, slots=True)
class _Use:
    """One address of an operation. `what` is "" for a barrier."""

    slot: int
    room: Placed
    reach: Reach
    what: str = ""
    right: set[int] = field(default_factory=set, compare=False)

    def check(self, op: Op, s: Slots, m: Batch) -> None:
        """Tell of an access that is not in its buffer. `right`: addresses that are known to be."""
        address = s[self.slot]
        if address in self.right:
            return
        first, end = self.reach(int(address) & _BYTE)
        if self.room.at <= first and end <= self.room.end:
            self.right.add(address)
            return
        if self.what:
            sync_faults.outside(m, op, self.what, first, end - first, self.room)
        elif first in m.state.barriers:
            sync_faults.no_barrier(m, op, first, m.state, self.room)


def room_step(t: Translator, op: Op, step: Step) -> Step:
    """The step of an operation, behind a look at its addresses."""
    uses = [use for use in _uses(t, op) if use is not None]
    if not uses:
        return step

    if isinstance(step, Resumable):
        start = step.start

        def begin(s: Slots, m: Batch) -> Run:
            for use in uses:
                use.check(op, s, m)
            return start(s, m)

        return Resumable(begin)

    def checked(s: Slots, m: Batch) -> None:
        for use in uses:
            use.check(op, s, m)
        step(s, m)

    return checked


def _uses(t: Translator, op: Op) -> list[_Use | None]:
    found: list[_Use | None] = []
    barrier = getattr(op, "barrier", None)
    if isinstance(barrier, Value):
        found.append(_use(t, barrier, _bytes(_BARRIER)))
    if isinstance(op, tma.LoadBox | tma.StoreBox | bulk.LoadBytes | bulk.StoreBytes):
        found.append(_use(t, op.address, _bytes(op.bytes), "this copy"))
    elif isinstance(op, remote.CopyBytes):
        found += [_use(t, a, _bytes(op.bytes), "this copy") for a in (op.source, op.target)]
    elif isinstance(op, wgmma.Mma):
        found.append(_use(t, op.a, _chunks(left_operand(op)), "an operand"))
    if isinstance(op, wgmma.Mma | wgmma.MmaRegisters):
        found.append(_use(t, op.b, _chunks(right_operand(op)), "an operand"))
    return found


def _use(t: Translator, address: Value, reach: Reach, what: str = "") -> _Use | None:
    room = t.room_of(address)
    return None if room is None else _Use(t.slot(address), room, reach, what)


def _bytes(size: int) -> Reach:
    return lambda address: (address, address + size)


def _chunks(operand: Operand) -> Reach:
    def reach(address: int) -> tuple[int, int]:
        at, last = places(operand, address)
        return int(at.min()) * CHUNK, last

    return reach

"""Synchronisation. One operation runs for all warps before the next one starts, so that order
inside a role is the program's; a barrier is counted and moves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warploom.ir.ops import sync
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.registry import simulates

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


@simulates(sync.Barrier)
def barrier(t: Translator, op: sync.Barrier) -> Step:
    def step(s: Slots, m: Batch) -> None:
        m.barriers[0] += m.count

    return step


@simulates(sync.WarpSync)
def warp_sync(t: Translator, op: sync.WarpSync) -> None:
    """Lanes of a warp never run apart here."""

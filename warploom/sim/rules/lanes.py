"""Exchange among lanes: the last axis permuted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warploom.ir.ops import lanes
from warploom.sim.machine import Batch, Slots, Step
from warploom.sim.registry import simulates
from warploom.sim.values import dense

if TYPE_CHECKING:
    from warploom.sim.translate import Translator


@simulates(lanes.ShuffleXor)
def shuffle_xor(t: Translator, op: lanes.ShuffleXor) -> Step:
    a, d = t.slot(op.value), t.slot(op.result)
    order = np.arange(32) ^ op.mask

    def step(s: Slots, m: Batch) -> None:
        value = dense(s[a])
        s[d] = value if value.shape[-1] == 1 else value.take(order, axis=-1)

    return step

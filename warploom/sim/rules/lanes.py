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


@simulates(lanes.Shuffle)
def shuffle(t: Translator, op: lanes.Shuffle) -> Step:
    a, lane, d = t.slot(op.value), t.slot(op.lane), t.slot(op.result)

    def step(s: Slots, m: Batch) -> None:
        s[d] = read_lanes(dense(s[a]), dense(s[lane]))

    return step


def read_lanes(value: np.ndarray, lane: np.ndarray) -> np.ndarray:
    """Elements of other lanes: `value` and `lane` are register tiles, lanes last."""
    shape = np.broadcast_shapes(value.shape[:-1], lane.shape[:-1])
    held = np.broadcast_to(value, (*shape, 32))
    return np.take_along_axis(held, np.broadcast_to(lane & 31, (*shape, 32)), -1)


@simulates(lanes.Ballot)
def ballot(t: Translator, op: lanes.Ballot) -> Step:
    a, d = t.slot(op.value), t.slot(op.result)
    bits = 1 << np.arange(32, dtype=np.int64)

    def step(s: Slots, m: Batch) -> None:
        value = dense(s[a])
        held = np.broadcast_to(value, (*value.shape[:-1], 32))
        masks = (held * bits).sum(-1, keepdims=True)
        s[d] = masks.astype(np.uint32).view(np.int32)

    return step

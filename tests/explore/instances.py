"""Calls of small kernels by name, right ones and wrong ones."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.explore import kernels
from warploom.runtime.launch import Call
from warploom.runtime.variant import SimVariant
from warploom.sim.explore.explore import Explored, explore

f16, f32, i32 = np.float16, np.float32, np.int32


def ones(*shape: int, dtype: Any = f16) -> np.ndarray:
    return np.ones(shape, dtype)


def ring(steps: int, **options: Any) -> Call:
    x = ones(8 * max(steps, 1), 64)
    return kernels.ring.launch(1).call(x, np.zeros_like(x), STEPS=steps, **options)


def in_turn(steps: int, slots: int) -> Call:
    x = ones(8 * max(steps, 1), 64)
    return kernels.turns_of_readers.launch(1).call(x, np.zeros_like(x), STEPS=steps, S=slots)


def handed(rounds: int, **options: Any) -> Call:
    x, held = ones(rounds, 64, dtype=f32), np.zeros(64, f32)
    launcher = kernels.handed.launch(2, cooperative=True, warps=1)
    return launcher.call(x, held, np.zeros_like(x), np.zeros(2, i32), ROUNDS=rounds, **options)


def all_count(blocks: int, rounds: int, **options: Any) -> Call:
    x = ones(rounds, 32 * blocks, dtype=f32)
    launcher = kernels.all_count.launch(blocks, cooperative=True, warps=1)
    return launcher.call(x, np.zeros_like(x), np.zeros(1, i32), ROUNDS=rounds, **options)


def met(steps: int, **options: Any) -> Call:
    x = ones(32 * steps, 64, dtype=f32)
    return kernels.met.launch(1).call(x, np.zeros_like(x), STEPS=steps, **options)


def circle(**options: Any) -> Call:
    return kernels.circle.launch(1).call(np.zeros((3, 32), i32), **options)


def ring_gemm(steps: int, stages: int = 2, consumers: int = 2) -> Call:
    a, b = ones(64 * consumers, 64 * steps), ones(64, 64 * steps)
    c = np.zeros((64 * consumers, 64), f32)
    return kernels.ring_gemm.launch(1).call(a, b, c, STAGES=stages, CONSUMERS=consumers)


def by_hand(steps: int, **options: Any) -> Call:
    a, b = ones(128, 64 * max(steps, 1)), ones(64, 64 * max(steps, 1))
    c = np.zeros((128, 64), f32)
    return kernels.ring_gemm_by_hand.launch(1).call(a, b, c, STEPS=steps, **options)


# Small enough to visit every interleaving, with the verdict that is right.
SMALL: dict[str, tuple[Callable[[], Call], bool]] = {
    "ring 0": (lambda: ring(0), True),
    "ring 1": (lambda: ring(1), True),
    "ring 2": (lambda: ring(2), True),
    "ring 3, one slot": (lambda: ring(3, S=1), True),
    "ring 3": (lambda: ring(3), True),
    "ring 5": (lambda: ring(5), True),
    "ring 3, two readers": (lambda: ring(3, READERS=2, COUNT=2), True),
    "ring 3, two readers, one counted": (lambda: ring(3, READERS=2), False),
    "ring 2, two readers, three counted": (lambda: ring(3, S=1, READERS=2, COUNT=3), False),
    "ring 3, wrong parity": (lambda: ring(3, FLIP=0), False),
    "ring 3, no wait": (lambda: ring(3, WAIT=False), False),
    "ring 3, stops early": (lambda: ring(3, SKIP=1), False),
    "readers in turn, 4 slots": (lambda: in_turn(5, 4), True),
    "readers in turn, 3 slots": (lambda: in_turn(5, 3), False),
    "readers in turn, 1 slot": (lambda: in_turn(3, 1), False),
    "handed 2": (lambda: handed(2), True),
    "handed 3": (lambda: handed(3), True),
    "handed 2, no answer": (lambda: handed(2, ANSWER=False), False),
    "handed 2, told early": (lambda: handed(2, EARLY=True), False),
    "all count": (lambda: all_count(3, 2), True),
    "all count, low": (lambda: all_count(3, 2, LOW=1), False),
    "met 3": (lambda: met(3), True),
    "met 2, not back": (lambda: met(2, BACK=False), False),
    "circle": (lambda: circle(), True),
    "circle, nobody begins": (lambda: circle(START=False), False),
}


def explored(call: Call, **options: Any) -> Explored:
    """The exploration of a call with the states at its ends, which findings do not carry."""
    launcher = call.launcher
    arguments, variant = launcher._prepare(call.args, call.kwargs)
    assert isinstance(variant, SimVariant)
    given, together = variant.arguments(arguments), launcher.ways.cooperative
    return explore(variant.program, launcher.grid, given, together=together, **options)

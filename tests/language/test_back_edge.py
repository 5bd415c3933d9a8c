"""A tile that a loop fills again while two groups still read it: with its wait at the end it holds,
however long one of them takes. (What is said without it: `tests/hazards/race`.)"""

import numpy as np
import pytest

from tests.hazards.test_hazards import HERE, kernel_of

STEPS = 8


def operands(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers, so that sums are exact in any order."""
    draw = np.random.default_rng(9).integers
    a = draw(-3, 4, (128, 64 * steps)).astype(np.float16)
    return a, draw(-3, 4, (64, 64 * steps)).astype(np.float16)


@pytest.mark.case("C09")
@pytest.mark.parametrize("delays", [None, 0, 1], ids=["plain", "held_up_0", "held_up_1"])
@pytest.mark.parametrize("steps", [1, STEPS])
def test_a_loop_fills_a_tile_again(device, steps, delays):
    """Runs are equal bit for bit, as they are and with warps held up at random."""
    kernel = kernel_of(HERE / "race/c09_back_edge_fixed.py")
    if delays is not None:
        kernel = kernel.options(debug=True, delays=delays)
    a, b = operands(steps)
    wanted = a.astype(np.float32) @ b.astype(np.float32).T
    there = device.put(a), device.put(b)
    runs = 2 if device.name == "sim" else 1000 if delays is None else 20
    for _ in range(runs):
        c = device.put(np.full((128, 64), np.nan, np.float32))
        kernel.launch(1)(*there, c, STEPS=steps, S=1)
        assert np.array_equal(device.get(c), wanted)

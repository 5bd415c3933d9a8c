"""Gathers whose indices differ from block to block, evenly and unevenly."""

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def least(h: wl.Tensor, z: wl.Tensor, at: wl.Tensor, out: wl.Tensor):
    block = wl.program_id(0)
    index = wl.argmin(wl.load(h[block, wl.ds(0, 4)]), axis=0)
    wl.store(at[block], index)
    wl.store(out[block], wl.gather(z, (index,)))


@pytest.mark.parametrize(
    "order", [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1], [1, 0, 3]]
)
@pytest.mark.parametrize("warps", [1, 4])
def test_each_block_gathers_its_own(device, order: list[int], warps: int) -> None:
    """Whether the numbers count evenly must not matter."""
    h = np.ones((len(order), 4), np.float32)
    h[np.arange(len(order)), order] = -1
    z = np.array([10, 20, 30, 40], np.int32)
    at, out = (device.empty((len(order),), np.int32) for _ in range(2))
    least.launch(len(order), warps=warps)(device.put(h), device.put(z), at, out)
    assert device.get(at).tolist() == order
    assert device.get(out).tolist() == z[order].tolist()

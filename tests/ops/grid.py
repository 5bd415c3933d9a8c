"""What a launch says to its neighbours. Chains of launches stand in tests/runtime/test_gpu.py."""

import numpy as np

import warploom as wl
from tests.ops.trial import Case, Trial, spread


@wl.kernel
def plus_one(x: wl.Tensor, N: wl.const = 256):
    """x += 1, beginning while the launch before it ends."""
    at = wl.program_id(0) * N
    wl.launch_dependents()
    wl.wait_for_previous()
    wl.store(x[wl.ds(at, N)], wl.load(x[wl.ds(at, N)]) + 1)


@wl.kernel
def met(x: wl.Tensor, y: wl.Tensor, N: wl.const = 256):
    """y of a block is x of the next one, doubled by that one; three rounds."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    for _ in wl.range(0, 2):
        wl.grid_sync()
    wl.store(x[wl.ds(here * N, N)], wl.load(x[wl.ds(here * N, N)]) * 2)
    wl.grid_sync()
    wl.store(y[wl.ds(here * N, N)], wl.load(x[wl.ds((here + 1) % blocks * N, N)]))


def together(op: str) -> Case:
    def make(device):
        host = spread("i32", (5 * 256,)) // 4
        x, y = device.put(host), device.empty(host.shape, host.dtype)
        call = met.launch(5, cooperative=True).call(x, y)
        return Trial(call, [(x, host * 2), (y, np.roll(host * 2, -256))])

    return Case(op, "", make, "together")


def early(op: str) -> Case:
    def make(device):
        host = spread("i32", (1000,))
        x = device.put(host)
        return Trial(plus_one.launch(4, pdl=True).call(x), [(x, host + 1)])

    return Case(op, "", make, "early")


CASES = [together("roles.round")]
CASES += [early("grid.launch_dependents"), early("grid.wait_for_previous")]

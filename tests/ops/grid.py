"""What a launch says to its neighbours. Chains of launches stand in tests/runtime/test_gpu.py."""

import warploom as wl
from tests.ops.trial import Case, Trial, spread


@wl.kernel
def plus_one(x: wl.Tensor, N: wl.const = 256):
    """x += 1, beginning while the launch before it ends."""
    at = wl.program_id(0) * N
    wl.launch_dependents()
    wl.wait_for_previous()
    wl.store(x[wl.ds(at, N)], wl.load(x[wl.ds(at, N)]) + 1)


def early(op: str) -> Case:
    def make(device):
        host = spread("i32", (1000,))
        x = device.put(host)
        return Trial(plus_one.launch(4, pdl=True).call(x), [(x, host + 1)])

    return Case(op, "", make, "early")


CASES = [early("grid.launch_dependents"), early("grid.wait_for_previous")]

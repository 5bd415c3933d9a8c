"""`check_graph`: a graph sees new values, and what it would miss is found."""

import numpy as np
import pytest

import warploom as wl
from warploom.kernels.gemm.kernel import gemm
from warploom.runtime import launch
from warploom.testing.graphs import check_graph


@wl.kernel
def add(x: wl.Tensor, y: wl.Tensor, n: wl.i32, SIZE: wl.const):
    wl.store(y[wl.ds(0, SIZE)], wl.load(y[wl.ds(0, SIZE)]) + wl.load(x[wl.ds(0, SIZE)]))


def call(device, seed, size=8, n=1, dtype=np.float32, SIZE=16):
    draw = np.random.default_rng(seed)
    x, y = (device.put(draw.standard_normal(size).astype(dtype)) for _ in range(2))
    return add.launch(1).call(x, y, n, SIZE=SIZE)


def test_a_graph_sees_new_values(device):
    check_graph(call(device, 1), call(device, 2))


def test_a_product_in_a_graph(device):
    def product(seed):
        draw = np.random.default_rng(seed)
        a, b = (device.put(draw.standard_normal((72, 64)).astype(np.float16)) for _ in range(2))
        out = device.empty((72, 64), np.float32)
        b = device.put_strided(np.ascontiguousarray(device.get(b)[:64]).T)
        tiles = {"BM": 64, "BN": 64, "EN": 32, "STAGES": 2, "MATH": 1, "B_T": True}
        return gemm.launch(2).call(a, b, out, **tiles)

    check_graph(product(1), product(2))


class Forgetful(launch.Call):
    """A call whose launch takes a copy of its argument: a graph replays the old values."""

    def __init__(self, device, made):
        super().__init__(made.launcher, made.args, made.kwargs)
        held = device

        class Launcher:
            def __call__(self, x, y, *args, **kwargs):
                made.launcher(held.put(held.get(x)), y, *args, **kwargs)

        self.real, self.launcher = made.launcher, Launcher()

    @property
    def kernel(self):
        return self.real.kernel


def test_what_a_graph_misses_is_found(device):
    with pytest.raises(AssertionError, match="`y` of `add`: 8 elements of the replay differ"):
        check_graph(Forgetful(device, call(device, 1)), call(device, 2))


@pytest.mark.parametrize(
    ("other", "what"),
    [({"n": 2}, "keeps its numbers"), ({"size": 9}, "another shape"), ({"SIZE": 8}, "one kernel")],
)
def test_calls_that_cannot_be_compared(device, other, what):
    with pytest.raises(ValueError, match=what):
        check_graph(call(device, 1), call(device, 2, **other))

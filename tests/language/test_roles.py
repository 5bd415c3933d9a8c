"""What stands in a role is done by its warps: prints, assertions, reductions."""

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def spoken(x: wl.Tensor, n: wl.i32):
    print("block", n)
    with wl.roles():
        with wl.role("pair", warps=2, replicas=2) as r:
            print("pair", r)
            with wl.one_thread():
                print("one", r)
            print("sum", wl.scalar(wl.sum(wl.arange(64) + r, 0)))
        with wl.role("single", warps=1):
            print("single", n)


def test_a_role_prints_once_a_replica(device, capfd):
    spoken[1](device.put(np.zeros(1, np.float32)), 7)
    device.synchronise()
    words = sorted(capfd.readouterr().out.split("\n"))
    pair = ["one 0", "one 1", "pair 0", "pair 1", "single 7", "sum 2016", "sum 2080"]
    assert words == ["", "block 7", *pair]


@wl.kernel
def sure(x: wl.Tensor, n: wl.i32):
    with wl.roles():
        with wl.role("idle", warps=1):
            pass
        with wl.role("checks", warps=3):
            assert n < 5, "n is small"


def test_a_role_asserts():
    sure[1](np.zeros(1, np.float32), 4)
    with pytest.raises(wl.CheckError, match="n is small"):
        sure[1](np.zeros(1, np.float32), 5)

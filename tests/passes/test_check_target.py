"""A kernel for the tensor copy engine does not reach the CUDA compiler for an older target."""

from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CompileError
from warploom.base.target import SM_80, SM_89, SM_90A
from warploom.runtime.compile import machine_kernel
from warploom.testing.golden import Golden


@wl.kernel
def copied(x: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((16, 64), x.dtype)
    arrived = wl.barrier()
    with wl.one_thread():
        arrived.expect(2048)
        wl.copy_async(x[wl.ds(0, 16), wl.ds(0, 64)], tile, barrier=arrived)
    arrived.wait(0)
    wl.store(y[wl.ds(0, 16), wl.ds(0, 64)], tile.load())


def request() -> Any:
    x = np.zeros((16, 64), np.float16)
    call = copied.launch(1).call(x, x.copy())
    return copied.request(call.arguments, 4)


def test_an_operation_of_a_later_target_is_refused(golden: Golden) -> None:
    with pytest.raises(CompileError) as refused:
        machine_kernel(request(), SM_89)
    golden(str(refused.value))


@wl.kernel
def narrowed(x: wl.Tensor, y: wl.Tensor):
    wl.store(y[wl.ds(0, 16)], wl.load(x[wl.ds(0, 16)]).cast(y.dtype))


def test_a_type_of_a_later_target_is_refused(golden: Golden) -> None:
    x = np.zeros(16, np.float32)
    call = narrowed.launch(1).call(x, x.astype(wl.f8e4m3.numpy))
    asked = narrowed.request(call.arguments, 4)
    with pytest.raises(CompileError) as refused:
        machine_kernel(asked, SM_80)
    golden(str(refused.value))
    assert machine_kernel(asked, SM_89).body.ops


def test_clusters_of_a_later_target_are_refused(golden: Golden) -> None:
    x = np.zeros(16, np.float32)
    call = narrowed.launch(2, cluster=2).call(x, x.copy())
    asked = narrowed.request(call.arguments, 4, call.launcher.cluster)
    with pytest.raises(CompileError) as refused:
        machine_kernel(asked, SM_89)
    golden(str(refused.value))
    assert machine_kernel(asked, SM_90A).cluster == (2, 1, 1)


def test_the_right_target_takes_it() -> None:
    assert machine_kernel(request(), SM_90A).body.ops

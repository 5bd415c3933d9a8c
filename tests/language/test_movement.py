"""Level 3 run: named barriers between roles, votes and fences, copies by threads and in bulk, views
of shared memory, descriptors made by the kernel, inline PTX."""

import re

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def ping_pong(y: wl.Tensor, N: wl.const):
    """Two warpgroups take turns on a counter in shared memory."""
    first, second = wl.named_barrier(256), wl.named_barrier(256)
    counter = wl.shared((128,), wl.i32)
    counter.store(wl.zeros((128,), wl.i32))
    with wl.roles():
        with wl.role("a", warps=4):
            for _ in wl.range(N):
                counter.store(counter.load() * 3 + 1)
                second.arrive()
                first.sync()
            wl.store(y[wl.ds(0, 128)], counter.load())
        with wl.role("b", warps=4):
            for _ in wl.range(N):
                second.sync()
                counter.store(counter.load() * 5)
                first.arrive()


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_two_warpgroups_take_turns(device, n):
    y = device.empty(128, np.int32)
    ping_pong[1](y, n)
    expected = 0
    for _ in range(n):
        expected = (expected * 3 + 1) * 5
    assert (device.get(y) == expected).all()


def test_named_barriers_come_after_those_of_roles():
    call = ping_pong.launch(1).call(np.zeros(128, np.int32), N=2)
    found = set(re.findall(r"bar_(?:sync|arrive)<(\d+), 256>", call.text("cuda")))
    assert found == {"0", "3", "4"}  # 0 is the block's, 1 and 2 are the roles'
    assert call.check().clean


def test_a_barrier_that_one_role_forgets_is_a_deadlock_report():
    @wl.kernel
    def forgets(y: wl.Tensor, n: wl.i32):
        bar = wl.named_barrier(64)
        with wl.roles():
            with wl.role("waits", warps=1):
                bar.sync()
            with wl.role("leaves", warps=1):
                if n > 0:  # where it never comes, the kernel is refused
                    bar.sync()
                wl.store(y[wl.ds(0, 32)], wl.thread_id())

    with pytest.raises(wl.CheckError) as caught:
        forgets[1](np.zeros(32, np.int32), 0)
    assert caught.value.code == "D001"
    assert "barrier 2: 32 of 64 threads have come" in str(caught.value)


def test_fences_reach_the_ptx(device):
    @wl.kernel
    def publish(x: wl.Tensor, flag: wl.Tensor):
        wl.store(x[wl.ds(0, 128)], wl.thread_id())
        wl.fence("gpu")
        wl.store(flag[wl.ds(0, 1)], wl.full((1,), 1, wl.i32))
        wl.fence("system")

    x, flag = device.empty(128, np.int32), device.empty(1, np.int32)
    call = publish.launch(1).call(x, flag)
    call.run()
    assert device.get(flag)[0] == 1
    assert device.get(x).tolist() == list(range(128))
    ptx = call.text("ptx")
    assert ptx.count("fence.acq_rel.gpu;") == 1
    assert ptx.count("fence.acq_rel.sys;") == 1

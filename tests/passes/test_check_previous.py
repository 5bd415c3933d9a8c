"""`wl.wait_for_previous()` stands above every access to a tensor, and pdl=True asks for it."""

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CompileError, LaunchError
from warploom.testing.golden import Golden


@wl.kernel
def read_ahead(x: wl.Tensor, y: wl.Tensor):
    part = wl.load(x[wl.ds(0, 64)])
    wl.wait_for_previous()
    wl.store(y[wl.ds(0, 64)], part)


@wl.kernel
def in_a_loop(x: wl.Tensor, y: wl.Tensor):
    for i in wl.range(0, 2):
        wl.wait_for_previous()
        wl.store(y[wl.ds(i * 64, 64)], wl.load(x[wl.ds(i * 64, 64)]))


@wl.kernel
def never(x: wl.Tensor, y: wl.Tensor):
    wl.store(y[wl.ds(0, 64)], wl.load(x[wl.ds(0, 64)]))


@wl.kernel
def copied(x: wl.Tensor, y: wl.Tensor):
    tile = wl.shared((16, 64), x.dtype)
    arrived = wl.barrier()
    wl.launch_dependents()
    wl.wait_for_previous()
    with wl.one_thread():
        arrived.expect(2048)
        wl.copy_async(x[wl.ds(0, 16), wl.ds(0, 64)], tile, barrier=arrived)
    arrived.wait(0)
    wl.store(y[wl.ds(0, 16), wl.ds(0, 64)], tile.load())


@pytest.mark.parametrize("kernel", [read_ahead, in_a_loop], ids=lambda k: k.name)
def test_an_access_ahead_of_the_wait(kernel, golden: Golden) -> None:
    x = np.zeros(128, np.float32)
    with pytest.raises(CompileError) as refused:
        kernel[1](x, x.copy())
    golden(str(refused.value))


def test_a_launch_that_cannot_begin_early(golden: Golden) -> None:
    x = np.zeros(128, np.float32)
    with pytest.raises(LaunchError) as refused:
        never.launch(1, pdl=True)(x, x.copy())
    golden(str(refused.value))


def test_barriers_may_be_made_above_it() -> None:
    x = np.arange(16 * 64).reshape(16, 64).astype(np.float16)
    y = np.zeros_like(x)
    copied.launch(1, pdl=True)(x, y)
    assert np.array_equal(x, y)
    text = copied.launch(1, pdl=True).call(x, y).text("cuda")
    made, waited = text.index("mbarrier_init("), text.rindex("wait_for_previous();")
    assert made < waited < text.rindex("tma_load")


@wl.kernel
def doubled(x: wl.Tensor, y: wl.Tensor):
    wl.launch_dependents()
    wl.wait_for_previous()
    wl.store(y[wl.ds(0, 64)], wl.load(x[wl.ds(0, 64)]) * 2.0)


def test_where_launches_do_not_overlap_nothing_is_left() -> None:
    x = np.ones(64, np.float32)
    call = doubled.launch(1, pdl=True).call(x, x.copy())
    assert "griddepcontrol.wait" in call.text("ptx")
    for arch in ("sm_80", "sm_89"):
        assert "griddepcontrol" not in call.text("ptx", arch)
        assert " dependent" in call.text("machine", arch).splitlines()[0]

"""Launches that are stopped at each of their rounds in turn, and the launches behind them."""

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CheckError, CompileError
from warploom.testing.golden import Golden

BLOCKS, SHARE, ROUNDS = 3, 32, 4
N = BLOCKS * SHARE


@wl.kernel
def rounds(x: wl.Tensor, y: wl.Tensor, stop: wl.Tensor, until: wl.i32, WAY: wl.const):
    """Rounds of an exchange and a barrier; block 1 makes only `until`, and asks for a stop then."""
    wl.stop_at(stop)
    here = wl.program_id(0)
    whole = wl.shared((N,), wl.f32)
    share = wl.load(x[wl.ds(here * SHARE, SHARE)])
    for i in wl.range(0, ROUNDS):
        if here != 1:
            wl.exchange(share, whole, over=wl.grid, protocol=WAY)
            wl.grid_sync()
        else:
            if i < until:
                wl.exchange(share, whole, over=wl.grid, protocol=WAY)
                wl.grid_sync()
        share = share + 1.0
    if here == 1:
        if until < ROUNDS:
            wl.signal(stop[0], 1, scope="system", order="relaxed")
    wl.store(y[here, wl.ds(0, N)], whole.load())


def stop_on(device) -> wl.Stop:
    return wl.Stop("sim" if isinstance(device.put(np.zeros(1)), np.ndarray) else "gpu")


@pytest.mark.parametrize("way", ["counter", "flagged"])
def test_a_stop_at_each_round_and_the_launch_behind_it(device, way: str) -> None:
    stop, x = stop_on(device), np.arange(N, dtype=np.float32)
    given, y = device.put(x), device.put(np.zeros((BLOCKS, N), np.float32))
    launch = rounds.launch(BLOCKS, cooperative=True)
    for until in range(ROUNDS):
        launch(given, y, stop, until, WAY=way)
        device.get(y)  # it has come back
        assert stop.asked
        stop.clear()
        assert not stop.asked
        for _ in range(2):
            launch(given, y, stop, ROUNDS, WAY=way)
            wanted = np.broadcast_to(x + ROUNDS - 1, (BLOCKS, N))
            assert np.array_equal(device.get(y), wanted)


def test_without_a_stop_the_same_launch_never_ends() -> None:
    """On the simulator that is a report."""
    x, y = np.zeros(N, np.float32), np.zeros((BLOCKS, N), np.float32)
    with pytest.raises(CheckError, match="D001"):
        lonely.launch(2, cooperative=True)(np.zeros(1, np.int32))
    stop = wl.Stop()
    stop.ask()
    lonely.launch(2, cooperative=True)(stop)
    rounds.launch(BLOCKS, cooperative=True)(x, y, stop, ROUNDS, WAY="counter")
    assert stop.asked


@wl.kernel
def lonely(stop: wl.Tensor):
    wl.stop_at(stop)
    if wl.program_id(0) == 0:
        wl.grid_sync()


@pytest.mark.gpu
def test_the_host_stops_a_launch_that_waits_for_ever() -> None:
    stop = wl.Stop("gpu")
    for _ in range(3):
        lonely.launch(2, cooperative=True)(stop)
        stop.ask()
        stop.clear()  # waits for the launch


def test_a_checked_launch_that_is_stopped_comes_back() -> None:
    stop = wl.Stop()
    stop.ask()
    lonely.launch(2, cooperative=True).call(stop).check(seeds=2)


@wl.kernel
def of_floats(x: wl.Tensor):
    wl.stop_at(x)


def test_refused(golden: Golden) -> None:
    with pytest.raises(CompileError) as refused:
        of_floats[1](np.zeros(1, np.float32))
    golden(str(refused.value))


def test_the_text_polls_the_word() -> None:
    call = lonely.launch(2, cooperative=True).call(np.zeros(1, np.int32))
    text = call.text("ptx")
    assert "ld.relaxed.sys.global.s32" in text

"""Flags and counters among blocks: protocols of several rounds, and what is refused or reported.

The operations one by one: tests/ops/flags.py.
"""

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CheckError, CompileError, LaunchError
from warploom.testing.golden import Golden


@wl.kernel
def rounds(x: wl.Tensor, held: wl.Tensor, count: wl.Tensor, ROUNDS: wl.const, N: wl.const = 64):
    """x[b] = x[b - 1] + 1, round and round, a round a rotation; two buffers take turns."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    part = wl.load(x[here, wl.ds(0, N)])
    for i in wl.range(0, ROUNDS):
        wl.store(held[i % 2, here, wl.ds(0, N)], part)
        wl.signal(count[0], add=1)
        wl.wait(count[0], at_least=(i + 1) * blocks)
        part = wl.load(held[i % 2, (here + blocks - 1) % blocks, wl.ds(0, N)]) + 1
    wl.store(x[here, wl.ds(0, N)], part)


@pytest.mark.parametrize("blocks", [1, 2, 7, 66])
@pytest.mark.parametrize("times", [0, 1, 2, 9])
def test_rounds(device, blocks: int, times: int) -> None:
    host = np.random.default_rng(blocks).integers(-99, 99, (blocks, 64)).astype(np.int32)
    x, held = device.put(host), device.empty((2, blocks, 64), np.int32)
    count = device.put(np.zeros(1, np.int32))
    rounds.launch(blocks, cooperative=True)(x, held, count, ROUNDS=times)
    assert np.array_equal(device.get(x), np.roll(host, times, axis=0) + times)
    assert device.get(count)[0] == times * blocks


@pytest.mark.parametrize("seed", range(5))
def test_in_any_order(seed: int) -> None:
    host = np.arange(5 * 64, dtype=np.int32).reshape(5, 64)
    x, held, count = host.copy(), np.zeros((2, 5, 64), np.int32), np.zeros(1, np.int32)
    call = rounds.launch(5, cooperative=True).call(x, held, count, ROUNDS=4)
    found = call.check(seeds=seed + 1)
    assert found.clean, found.text()


@wl.kernel
def in_roles(x: wl.Tensor, out: wl.Tensor, flags: wl.Tensor, N: wl.const = 64):
    """One role publishes, the other one waits for the next block's."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    with wl.roles():
        with wl.role("write", warps=1):
            wl.store(out[0, here, wl.ds(0, N)], wl.load(x[here, wl.ds(0, N)]) * 3)
            wl.signal(flags[here], 1)
        with wl.role("read", warps=4):
            other = (here + 1) % blocks
            wl.wait(flags[other], at_least=1)
            wl.store(out[1, here, wl.ds(0, N)], wl.load(out[0, other, wl.ds(0, N)]))


def test_roles_signal_and_wait_for_themselves(device) -> None:
    host = np.arange(9 * 64, dtype=np.float32).reshape(9, 64)
    out = device.empty((2, 9, 64), np.float32)
    flags = device.put(np.zeros(9, np.int32))
    in_roles.launch(9, cooperative=True)(device.put(host), out, flags)
    assert np.array_equal(device.get(out)[1], np.roll(host * 3, -1, axis=0))


@wl.kernel
def forgotten(flags: wl.Tensor):
    if wl.program_id(0) > 0:
        wl.signal(flags[0], add=1)
    wl.wait(flags[0], at_least=wl.num_programs(0))


def test_a_signal_too_few(golden: Golden) -> None:
    with pytest.raises(CheckError) as stopped:
        forgotten.launch(3, cooperative=True)(np.zeros(1, np.int32))
    golden(str(stopped.value))


def test_many_blocks_that_wait_are_summed_up(golden: Golden) -> None:
    with pytest.raises(CheckError) as stopped:
        forgotten.launch(30, cooperative=True)(np.zeros(1, np.int32))
    golden(str(stopped.value))


def test_blocks_that_may_not_run_together(golden: Golden) -> None:
    with pytest.raises(LaunchError) as refused:
        forgotten[3](np.zeros(1, np.int32))
    golden(str(refused.value))


def test_a_block_alone_need_not_be_cooperative() -> None:
    count = np.full(1, 5, np.int32)
    forgotten[1](count)
    assert count[0] == 5


@wl.kernel
def waits_only(flag: wl.Tensor, y: wl.Tensor):
    wl.wait(flag[0], at_least=3)
    wl.store(y[wl.program_id(0)], 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_flag_that_an_earlier_launch_has_set(seed: int) -> None:
    y = np.zeros(2, np.int32)
    launcher = waits_only.launch(2, cooperative=True)
    assert launcher.call(np.full(1, 3, np.int32), y).check(first_seed=seed).clean
    assert y.tolist() == [1, 1]
    found = launcher.call(np.full(1, 2, np.int32), y).check(first_seed=seed)
    assert [f.code for f in found] == ["D001"]


def test_a_flag_outside_the_tensor_is_left_alone(device) -> None:
    flags = device.put(np.zeros(1, np.int32))
    beyond[1](flags)
    assert device.get(flags)[0] == 7


@wl.kernel
def beyond(flags: wl.Tensor):
    wl.signal(flags[1], 1)
    wl.wait(flags[wl.program_id(0) - 1], at_least=1)
    wl.signal(flags[0], 7)


@wl.kernel
def of_floats(x: wl.Tensor):
    wl.signal(x[0], 1)


@wl.kernel
def of_a_window(x: wl.Tensor):
    wl.wait(x[wl.ds(0, 4)], at_least=1)


@wl.kernel
def both_ways(x: wl.Tensor):
    wl.signal(x[0], 1, add=1)


@wl.kernel
def odd_scope(x: wl.Tensor):
    wl.wait(x[0], at_least=1, scope="grid")


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [(of_floats, "f4"), (of_a_window, "i4"), (both_ways, "i4"), (odd_scope, "i4")],
    ids=lambda given: getattr(given, "name", ""),
)
def test_refused(kernel, dtype: str, golden: Golden) -> None:
    with pytest.raises(CompileError) as refused:
        kernel[1](np.zeros(4, dtype))
    golden(str(refused.value))

"""All blocks of a launch: barriers of the grid in loops, branches and roles, from launch to launch.

The operations one by one: tests/ops/flags.py.
"""

import numpy as np
import pytest

import warploom as wl
from warploom.base.errors import CheckError, CompileError, LaunchError
from warploom.testing.golden import Golden

N = 64


@wl.kernel
def rounds(x: wl.Tensor, held: wl.Tensor, times: wl.i32):
    """x[b] = x[b - 1] + 1, round and round; two buffers take turns."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    part = wl.load(x[here, wl.ds(0, N)])
    for i in wl.range(0, times):
        wl.store(held[i % 2, here, wl.ds(0, N)], part)
        wl.grid_sync()
        part = wl.load(held[i % 2, (here + blocks - 1) % blocks, wl.ds(0, N)]) + 1
    wl.store(x[here, wl.ds(0, N)], part)


def filled(device, blocks: int):
    host = np.random.default_rng(blocks).integers(-99, 99, (blocks, N)).astype(np.int32)
    return host, device.put(host), device.empty((2, blocks, N), np.int32)


@pytest.mark.parametrize("blocks", [1, 2, 7, 66])
@pytest.mark.parametrize("times", [0, 1, 2, 9])
def test_rounds(device, blocks: int, times: int) -> None:
    host, x, held = filled(device, blocks)
    rounds.launch(blocks, cooperative=True)(x, held, times)
    assert np.array_equal(device.get(x), np.roll(host, times, axis=0) + times)


def test_launches_hand_the_counter_on(device) -> None:
    """Launches of other numbers of rounds, none among them, and of other grids in between."""
    host, x, held = filled(device, 5)
    total = 0
    for times in (3, 0, 1, 2, 0, 4):
        rounds.launch(5, cooperative=True)(x, held, times)
        other, y, room = filled(device, 3)
        rounds.launch(3, cooperative=True)(y, room, times)
        assert np.array_equal(device.get(y), np.roll(other, times, axis=0) + times)
        total += times
        assert np.array_equal(device.get(x), np.roll(host, total, axis=0) + total)


def test_in_a_graph(device) -> None:
    _, x, held = filled(device, 4)
    launcher = rounds.launch(4, cooperative=True)

    def twice() -> None:
        launcher(x, held, 3)
        launcher(x, held, 2)

    graph = wl.graph(twice)
    for _ in range(3):
        before = np.array(device.get(x))
        graph.replay()
        assert np.array_equal(device.get(x), np.roll(before, 5, axis=0) + 5)
        launcher(x, held, 1)  # beside it: the graph has a counter of its own
        assert np.array_equal(device.get(x), np.roll(before, 6, axis=0) + 6)


def test_in_any_order() -> None:
    host = np.arange(5 * N, dtype=np.int32).reshape(5, N)
    call = rounds.launch(5, cooperative=True).call(host.copy(), np.zeros((2, 5, N), np.int32), 4)
    found = call.check(seeds=6)
    assert found.clean, found.text()


@pytest.mark.parametrize("first", [2**31 - 5, 2**32 - 5])
def test_the_counter_wraps(first: int) -> None:
    """As if 2^31 and 2^32 signals had been made before."""
    host = np.arange(3 * N, dtype=np.int32).reshape(3, N)
    x, held = host.copy(), np.zeros((2, 3, N), np.int32)
    bound = rounds.launch(3, cooperative=True).bound(x, held, 4)
    words = bound._held.values[-1].host
    words[0] = words[32] = np.array(first).astype(np.uint32).astype(np.int32)
    bound()
    bound()
    assert np.array_equal(x, np.roll(host, 8, axis=0) + 8)
    assert words[0] == words[32]
    assert int(words[0]) & 0xFFFF_FFFF == (first + 24) % 2**32


@wl.kernel
def in_branches(x: wl.Tensor, held: wl.Tensor, times: wl.i32):
    """Rounds in a loop, in branches of it, and behind it."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    part = wl.load(x[here, wl.ds(0, N)])
    wl.grid_sync()
    for i in wl.range(0, times):
        wl.store(held[0, here, wl.ds(0, N)], part)
        wl.grid_sync()
        part = part + wl.load(held[0, (here + 1) % blocks, wl.ds(0, N)])
        if i % 2 == 0:
            wl.grid_sync()
        else:
            wl.grid_sync()
            wl.grid_sync()
    wl.store(held[1, here, wl.ds(0, N)], part)
    wl.grid_sync()
    wl.store(x[here, wl.ds(0, N)], wl.load(held[1, (here + 1) % blocks, wl.ds(0, N)]))


def test_branches(device) -> None:
    host, x, held = filled(device, 4)
    in_branches.launch(4, cooperative=True)(x, held, 3)
    for _ in range(3):
        host = host + np.roll(host, -1, axis=0)
    assert np.array_equal(device.get(x), np.roll(host, -1, axis=0))


def test_branches_are_clean() -> None:
    host = np.ones((4, N), np.int32)
    call = in_branches.launch(4, cooperative=True).call(host, np.zeros((2, 4, N), np.int32), 3)
    found = call.check(seeds=4)
    assert found.clean, found.text()


@wl.kernel
def in_a_role(x: wl.Tensor, held: wl.Tensor, out: wl.Tensor):
    """One role meets those of the other blocks, before it and beside it others do."""
    here, blocks = wl.program_id(0), wl.num_programs(0)
    wl.store(held[0, here, wl.ds(0, N)], wl.load(x[here, wl.ds(0, N)]))
    wl.grid_sync()
    with wl.roles():
        with wl.role("sums", warps=4):
            part = wl.load(held[0, (here + 1) % blocks, wl.ds(0, N)])
            wl.store(held[1, here, wl.ds(0, N)], part)
            wl.grid_sync()
            part = wl.load(held[1, (here + 1) % blocks, wl.ds(0, N)])
            wl.store(out[0, here, wl.ds(0, N)], part)
        with wl.role("copies", warps=1):
            for _ in wl.range(0, 3):
                wl.grid_sync()
            wl.store(out[1, here, wl.ds(0, N)], wl.load(held[0, here, wl.ds(0, N)]))


def test_roles_meet_for_themselves(device) -> None:
    host, x, held = filled(device, 3)
    out = device.empty((2, 3, N), np.int32)
    launcher = in_a_role.launch(3, cooperative=True)
    for _ in range(2):
        launcher(x, held, out)
    assert np.array_equal(device.get(out)[0], np.roll(host, -2, axis=0))
    assert np.array_equal(device.get(out)[1], host)


def test_roles_are_clean() -> None:
    x = np.zeros((3, N), np.int32)
    held, out = (np.zeros((2, 3, N), np.int32) for _ in range(2))
    found = in_a_role.launch(3, cooperative=True).call(x, held, out).check(seeds=4)
    assert found.clean, found.text()


@wl.kernel
def some(x: wl.Tensor):
    if wl.program_id(0) > 0:
        wl.grid_sync()


def test_a_block_that_stays_away(golden: Golden) -> None:
    """The failed launch leaves nothing behind."""
    x = np.zeros(1, np.int32)
    with pytest.raises(CheckError) as stopped:
        some.launch(2, cooperative=True)(x)
    golden(str(stopped.value))
    with pytest.raises(CheckError):
        some.launch(2, cooperative=True)(x)


def test_blocks_that_may_not_run_together(golden: Golden) -> None:
    with pytest.raises(LaunchError) as refused:
        rounds[3](np.zeros((3, N), np.int32), np.zeros((2, 3, N), np.int32), 1)
    golden(str(refused.value))


@wl.kernel
def by_one(x: wl.Tensor):
    with wl.one_thread():
        wl.grid_sync()


@wl.kernel
def by_replicas(x: wl.Tensor):
    with wl.roles(), wl.role("math", warps=1, replicas=2):
        wl.grid_sync()


@pytest.mark.parametrize("kernel", [by_one, by_replicas], ids=lambda kernel: kernel.name)
def test_refused(kernel, golden: Golden) -> None:
    with pytest.raises(CompileError) as refused:
        kernel[1](np.zeros(1, np.int32))
    golden(str(refused.value))

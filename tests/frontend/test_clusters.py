"""What kernels may not do with clusters, as users see it."""

from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.kernels.schedule import Grid


@wl.kernel
def clustered(x: wl.Tensor, n: wl.i32, BODY: wl.const):
    tile = wl.shared((16, 64), x.dtype)
    spare = wl.shared((16, 64), x.dtype)
    done = wl.barrier(2)
    BODY(x, n, tile, spare, done)


@wl.function
def no_such_rank(x, n, tile, spare, done):
    done[0].on(2).arrive()


@wl.function
def waits_on_a_peer(x, n, tile, spare, done):
    done[0].on(1).wait(0)


@wl.function
def several_barriers(x, n, tile, spare, done):
    done.on(1).arrive()


@wl.function
def no_such_mask(x, n, tile, spare, done):
    with wl.one_thread():
        wl.copy_async(x[wl.ds(0, 16), wl.ds(0, 64)], tile, barrier=done[0], multicast=0b110)


@wl.function
def many_to_one_tensor(x, n, tile, spare, done):
    with wl.one_thread():
        wl.copy_async(tile, x[wl.ds(0, 16), wl.ds(0, 64)], multicast=3)


@wl.function
def negative_axis(x, n, tile, spare, done):
    wl.cluster_size(-1)


@wl.function
def one_thread_waits(x, n, tile, spare, done):
    with wl.one_thread():
        wl.cluster_sync()


@wl.function
def uneven_branch(x, n, tile, spare, done):
    if wl.cluster_rank() == 0:
        wl.cluster_sync()


@wl.function
def uneven_memory(x, n, tile, spare, done):
    wl.store(x[wl.ds(0, 1), wl.ds(0, 1)], wl.zeros((1, 1), wl.i32))
    for _ in wl.range(wl.load(x[0, 0])):
        wl.cluster_sync()


@wl.function
def uneven_sum(x, n, tile, spare, done):
    total = n * 0
    for _ in wl.range(n):
        total = total + wl.program_id(0)
    if total > 3:
        wl.cluster_sync()


@wl.kernel
def piped(x: wl.Tensor, n: wl.i32, COPY: wl.const, STEPS: wl.const, CLUSTER: wl.const = True):
    """A pipe that one role fills and another empties."""
    ring = wl.pipe(2, wl.shared((16, 64), x.dtype), cluster=CLUSTER)
    with wl.roles():
        with wl.role("load", warps=1):
            for _ in wl.range(STEPS(n)):
                with ring.put() as item:
                    COPY(x, item)
        with wl.role("read", warps=1):
            for _ in wl.range(STEPS(n)):
                with ring.get() as item:
                    item.load()


@wl.function
def n_steps(n):
    return n


@wl.function
def rank_steps(n):
    return n + wl.program_id(0)


@wl.function
def own(x, item):
    wl.copy_async(x[wl.ds(0, 16), wl.ds(0, 64)], item)


@wl.function
def whole(x, item):
    wl.copy_async(x[wl.ds(0, 16), wl.ds(0, 64)], item, multicast=wl.cluster_mask(0))


@wl.function
def by_number(x, item):
    wl.copy_async(x[wl.ds(0, 16), wl.ds(0, 64)], item, multicast=3)


@wl.function
def half(x, item):
    wl.copy_async(x[wl.ds(0, 8), wl.ds(0, 64)], item[wl.ds(0, 8), :])


@wl.kernel
def skipping(x: wl.Tensor, n: wl.i32):
    """A pipe whose items a role passes by, as many as its block's number."""
    ring = wl.pipe(2, wl.shared((16, 64), x.dtype), deliver="one", cluster=True)
    with wl.roles():
        with wl.role("load", warps=1):
            for _ in wl.range(n):
                with ring.put() as item:
                    own(x, item)
        with wl.role("read", warps=1):
            ring.skip(wl.program_id(0))
            for _ in wl.range(n - 1):
                with ring.get() as item:
                    item.load()


@wl.kernel
def met(n: wl.i32, ONE: wl.const, OTHER: wl.const):
    with wl.roles():
        with wl.role("one", warps=1):
            ONE(n)
        with wl.role("other", warps=2):
            OTHER(n)


@wl.function
def once(n):
    wl.cluster_sync()


@wl.function
def never(n):
    pass


@wl.function
def each(n):
    for _ in wl.range(n):
        wl.cluster_sync()


@wl.function
def each_and_more(n):
    for _ in wl.range(n + 1):
        wl.cluster_sync()


REFUSED: dict[str, Any] = {
    "P034 rank": no_such_rank,
    "P034 mask": no_such_mask,
    "F025 wait": waits_on_a_peer,
    "P005": several_barriers,
    "T015 target": many_to_one_tensor,
    "T012": negative_axis,
    "P021": one_thread_waits,
    "P037 branch": uneven_branch,
    "P037 memory": uneven_memory,
    "P037 sum": uneven_sum,
}
PIPES: dict[str, Any] = {
    "P035 pipe": (whole, n_steps, False),
    "P035 mask": (by_number, n_steps),
    "P036 twice": (whole, n_steps),
    "P036 part": (half, n_steps),
    "P037 loop": (own, rank_steps),
}
ROLES: dict[str, Any] = {"P038": (never, once), "P038 loops": (each, each_and_more)}
X = np.zeros((16, 64), np.int32)


def refused(name, golden, run):
    with pytest.raises(wl.Error) as caught:
        run()
    assert caught.value.code == name.split()[0]
    golden(str(caught.value))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, golden):
    refused(name, golden, lambda: clustered.launch(2, cluster=2).check(X, 3, REFUSED[name]))


@pytest.mark.parametrize("name", PIPES)
def test_refused_pipes(name, golden):
    refused(name, golden, lambda: piped.launch(2, cluster=2).check(X, 3, *PIPES[name]))


def test_a_count_of_items_that_differs(golden):
    refused("P037", golden, lambda: skipping.launch(2, cluster=2).check(X, 3))


@wl.kernel
def replicas_meet(n: wl.i32):
    with wl.roles():
        with wl.role("idle", warps=1):
            never(n)
        with wl.role("both", warps=1, replicas=2) as r:
            for _ in wl.range(n + r):
                wl.cluster_sync()


def test_replicas_that_meet_unequally_often(golden):
    refused("P038", golden, lambda: replicas_meet.launch(2, cluster=2).check(3))


@pytest.mark.parametrize("name", ROLES)
def test_refused_roles(name, golden):
    refused(name, golden, lambda: met.launch(2, cluster=2).check(3, *ROLES[name]))


@wl.kernel
def even(x: wl.Tensor, y: wl.Tensor):
    """Loops over the numbers of clusters, conditions on what they load: the same for all blocks."""
    ring = wl.pipe(2, wl.shared((16, 64), x.dtype), cluster=True)
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(wl.program_id(0) // 2, 5, wl.num_programs(0) // 2):
                if wl.load(x[k, 0]) > 0:
                    with ring.put() as item:
                        wl.copy_async(x[wl.ds(k, 16), wl.ds(0, 64)], item)
        with wl.role("read", warps=1):
            total = wl.zeros((16, 64), wl.i32)
            for k in wl.range(wl.program_id(0) // 2, 5, wl.num_programs(0) // 2):
                if wl.load(x[k, 0]) > 0:
                    with ring.get() as item:
                        total = total + item.load()
            wl.store(y[wl.program_id(0), wl.ds(0, 16), wl.ds(0, 64)], total)


def test_what_depends_on_the_cluster_is_even():
    x = np.random.default_rng(0).integers(-5, 6, (21, 64)).astype(np.int32)
    x[:5, 0] = [1, 0, -1, 1, 1]
    y = np.zeros((4, 16, 64), np.int32)
    assert even.launch(4, cluster=2).check(x, y).clean
    first, second = x[0:16] + x[4:20], x[3:19]
    assert np.array_equal(y, np.stack([first, first, second, second]))


@wl.function
def by_schedule(n):
    """Tiles of a schedule whose loop carries a sum besides."""
    total = n * 0
    for t in wl.tiles(Grid(n, n)):
        total = total + t
        wl.cluster_sync()


@wl.function
def by_schedule_alone(n):
    for _ in wl.tiles(Grid(n, n)):
        wl.cluster_sync()


@wl.function
def by_other_schedule(n):
    for _ in wl.tiles(Grid(n, n + 1)):
        wl.cluster_sync()


@wl.function
def halves(n):
    for _ in wl.range(n // 2):
        wl.cluster_sync()


def test_roles_that_meet_in_equal_loops():
    """Bounds and schedules are compared by what they are computed from."""
    for one, other in ((each, each), (halves, halves), (by_schedule, by_schedule_alone)):
        assert met.launch(2, cluster=2).check(3, one, other).clean
    for other in (by_other_schedule, each, once):
        with pytest.raises(wl.CompileError) as caught:
            met.launch(2, cluster=2).check(3, by_schedule, other)
        assert caught.value.code == "P038"


def test_without_a_cluster_everything_is_even():
    for body in (uneven_branch, uneven_memory, uneven_sum):
        assert clustered.launch(1).check(X.copy(), 1, body).clean
    for options in ((whole, n_steps), (own, rank_steps), (whole, n_steps, False)):
        assert piped.launch(1).check(X, 1, *options).clean

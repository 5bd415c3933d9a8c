"""Behaviours of the checklist that no other test shows: programs as one would port them."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import warploom as wl


@wl.function
def doubled(tile):
    """Twice what a shared tile holds."""
    return tile.load() * 2.0


@wl.kernel
def through_a_function(x: wl.Tensor, y: wl.Tensor):
    tiles = wl.shared((8, 32), wl.f32, slots=3)
    for i in wl.unroll(3):
        tiles[i].store(wl.load(x[i, wl.ds(0, 8), wl.ds(0, 32)]))
    for i in wl.range(3):
        wl.store(y[i, wl.ds(0, 8), wl.ds(0, 32)], doubled(tiles[i]))


def test_a_slot_goes_into_a_function(device):
    x = np.random.default_rng(0).standard_normal((3, 8, 32)).astype(np.float32)
    y = device.put(np.zeros_like(x))
    through_a_function[1](device.put(x), y)
    assert np.array_equal(device.get(y), x * 2)


def test_a_call_keeps_no_array_alive():
    x, y = np.ones((3, 8, 32), np.float32), np.ones((3, 8, 32), np.float32)
    gone = weakref.ref(x)
    through_a_function[1](x, y)
    del x
    gc.collect()
    assert gone() is None


@wl.kernel
def branches(y: wl.Tensor, N: wl.const):
    """A role of one warp meets a warpgroup in either branch, N times."""
    bar = wl.named_barrier(32 + 128)
    cell = wl.shared((32,), wl.i32)
    cell.store(wl.zeros((32,), wl.i32))
    with wl.roles():
        with wl.role("one", warps=1):
            for k in wl.range(N):
                if k % 3 == 1:
                    cell.store(cell.load() + k)
                    bar.sync()
                else:
                    bar.sync()
                bar.sync()
        with wl.role("group", warps=4):
            for k in wl.range(N):
                bar.sync()
                wl.store(y[k, wl.ds(0, 32)], cell.load())
                bar.sync()


def test_branches_around_a_named_barrier(device):
    y = device.put(np.zeros((7, 32), np.int32))
    branches[1](y, 7)
    expected = np.cumsum([k if k % 3 == 1 else 0 for k in range(7)])
    assert np.array_equal(device.get(y)[:, 0], expected)


@wl.kernel
def divides(y: wl.Tensor, ZERO: wl.const):
    with wl.roles(), wl.role("a", warps=1):
        n = 1 // ZERO
        wl.store(y[wl.ds(0, 32)], wl.full((32,), n, wl.i32))


def test_an_error_of_python_in_a_role_is_told_and_spoils_nothing():
    y = np.zeros(32, np.int32)
    with pytest.raises(wl.CompileError) as caught:
        divides[1](y, 0)
    assert "division" in str(caught.value) and "by zero" in str(caught.value)
    divides[1](y, 1)
    assert (y == 1).all()


@wl.kernel
def changes(x: wl.Tensor, y: wl.Tensor):
    t = wl.load(x[wl.ds(0, 32)])
    for _ in wl.range(x.shape[0]):
        t = t.cast(wl.bf16)
    wl.store(y[wl.ds(0, 32)], t)


def test_a_carried_value_keeps_its_type():
    with pytest.raises(wl.CompileError) as caught:
        changes[1](np.ones(32, np.float32), np.ones(32, np.float32))
    assert "f32" in str(caught.value) and "bf16" in str(caught.value)
    assert "`t`" in str(caught.value)


@wl.kernel
def sizes(y: wl.Tensor):
    both = wl.f32.bytes * 100 + wl.bf16.bytes * 10 + y.dtype.bytes
    wl.store(y[wl.ds(0, 32)], wl.full((32,), both, wl.i64))


def test_bytes_of_a_dtype_are_constants():
    y = np.zeros(32, np.int64)
    sizes[1](y)
    assert (y == 428).all()


@wl.kernel
def quantised(x: wl.Tensor, y: wl.Tensor):
    wl.store(y[wl.ds(0, 32)], wl.load(x[wl.ds(0, 32)]).cast(y.dtype))


@pytest.mark.parametrize("name", ["f8e4m3", "f8e5m2"])
def test_names_of_eight_bit_floats(name):
    dtype = getattr(wl, name)
    assert str(dtype) == name
    x, y = np.full(32, 1.0625, np.float32), np.zeros(32, dtype.numpy)
    assert f": tensor<{name}" in quantised.launch(1).call(x, y).text("tile")
    with pytest.raises(wl.LaunchError) as caught:
        quantised[1](x, np.zeros(32, "S1"))
    assert name in str(caught.value)


def test_threads_compile_unlike_kernels_at_once():
    """Each thread reads kernels of its own, with roles and without, and switches in between."""
    counts = range(8, 14)
    together = threading.Barrier(len(counts))
    found: dict[int, list[int]] = {}

    def work(n: int) -> None:
        y = np.zeros((n, 32), np.int32)
        together.wait()
        branches[1](y, n)
        plain = np.zeros(32, np.int32)
        divides[1](plain, -n)
        found[n] = [*y[:, 0].tolist(), int(plain[0])]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(n,)) for n in counts]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(before)
    for n in counts:
        sums = np.cumsum([k if k % 3 == 1 else 0 for k in range(n)])
        assert found[n] == [*sums.tolist(), -1]


@wl.kernel
def padded_rows(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, n: wl.i32):
    """A tile whose rows lie 72 elements apart, in slots, in a loop and through a function."""
    wide = wl.shared((64, 72), wl.f16, slots=2, swizzle=0)
    for i in wl.range(n):
        tile = wide[i % 2][:, wl.ds(0, 64)]
        tile.store(wl.load(x[i, wl.ds(0, 64), wl.ds(0, 64)]))
        wl.store(y[i, wl.ds(0, 64), wl.ds(0, 64)], tile.T.load())
        wl.store(z[i, wl.ds(0, 64), wl.ds(0, 64)], doubled(tile).cast(wl.f16))


def test_rows_apart_stay_apart(device):
    x = np.random.default_rng(0).integers(-9, 9, (3, 64, 64)).astype(np.float16)
    y, z = (device.put(np.zeros_like(x)) for _ in range(2))
    call = padded_rows.launch(1).call(device.put(x), y, z, 3)
    text = call.text("machine")
    assert "elements=9216" in text and text.count("number=72,") >= 1
    call.run()
    assert np.array_equal(device.get(y), x.transpose(0, 2, 1))
    assert np.array_equal(device.get(z), 2 * x)


@wl.kernel
def meets_in_every_role(y: wl.Tensor):
    """Each role of each block writes to the peer, and all of the cluster meet before it is read."""
    mine = wl.shared((2, 32), wl.i32, swizzle=0)
    rank = wl.cluster_rank()
    with wl.roles():
        with wl.role("one", warps=1):
            mine[wl.ds(0, 1), :].on(1 - rank).store(wl.full((1, 32), rank + 10, wl.i32))
            wl.cluster_sync()
            wl.store(y[rank, 0, wl.ds(0, 32)], mine[1, 0] + wl.zeros((32,), wl.i32))
        with wl.role("two", warps=4):
            mine[wl.ds(1, 1), :].on(1 - rank).store(wl.full((1, 32), rank + 20, wl.i32))
            wl.cluster_sync()
            wl.store(y[rank, 1, wl.ds(0, 32)], mine[0, 31] + wl.zeros((32,), wl.i32))


def test_the_cluster_meets_as_often_as_roles_say(device):
    """Once before anybody reaches a peer, and once in each role. None is added at the end: behind
    their meeting no role reaches a peer."""
    y = device.put(np.zeros((2, 2, 32), np.int32))
    call = meets_in_every_role.launch(2, cluster=2).call(y)
    assert call.text("machine").count("cluster.sync(") == 1 + 2
    call.run()
    expected = [[[20 + 1] * 32, [10 + 1] * 32], [[20] * 32, [10] * 32]]
    assert np.array_equal(device.get(y), expected)

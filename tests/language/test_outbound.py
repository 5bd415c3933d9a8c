"""Pipes towards the copy engine: a role stores, the engine writes, and slots are filled anew."""

import itertools

import numpy as np
import pytest

import warploom as wl


@wl.kernel
def written(
    x: wl.Tensor,
    y: wl.Tensor,
    n: wl.i32,
    STAGES: wl.const,
    WARPS: wl.const,
    REPLICAS: wl.const,
    TWO: wl.const,
):
    """y = 3 · x, replica r writes the pieces r, r + REPLICAS, …; with TWO the second half of the
    work is done by another role through the same pipe."""
    out = wl.pipe(STAGES, slots=[wl.shared((16, 32), wl.f32)], to=wl.copy_engine)
    half = n // 2 if TWO else n
    with wl.roles():
        with wl.role("first", warps=WARPS, replicas=REPLICAS) as r:
            for k in wl.range(r, half, REPLICAS):
                sent(out, x, y, k)
        if TWO:
            with wl.role("second", warps=2):
                for k in wl.range(half, n):
                    sent(out, x, y, k)


@wl.function
def sent(out, x, y, k):
    t = wl.load(x[k, wl.ds(0, 16), wl.ds(0, 32)])
    with out.put() as tile:
        tile.store(t * 3.0)
        wl.copy_async(tile, y[k, wl.ds(0, 16), wl.ds(0, 32)])


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize(("warps", "replicas"), [(1, 1), (4, 1), (4, 2), (2, 3)])
def test_slots_are_filled_anew_when_they_were_read(device, stages, warps, replicas):
    for n, two in itertools.product((0, 1, stages, stages + 1, 9), (False, True)):
        x = np.random.default_rng(n).standard_normal((n, 16, 32)).astype(np.float32)
        y = device.put(np.full(x.shape, np.nan, np.float32))
        written[1](device.put(x), y, n, stages, warps, replicas, two)
        assert np.array_equal(device.get(y), 3 * x), (n, two)


@pytest.mark.parametrize("stages", [1, 2])
def test_every_schedule_is_clean(stages):
    x, y = np.ones((7, 16, 32), np.float32), np.zeros((7, 16, 32), np.float32)
    findings = written.launch(1).check(x, y, 7, stages, 4, 2, True, seeds=10)
    assert findings.clean, findings.text()
    assert (y == 3).all()


@wl.kernel
def pairs(x: wl.Tensor, y: wl.Tensor, z: wl.Tensor, STAGES: wl.const):
    """Two tiles a slot, to two tensors, the first turned; behind a ring that feeds the role."""
    ring = wl.pipe(2, slots=[wl.shared((32, 32), wl.f16)])
    slots = [wl.shared((32, 32), wl.f16), wl.shared((32, 32), wl.f16, swizzle=0)]
    out = wl.pipe(STAGES, slots=slots, to=wl.copy_engine)
    n = x.shape[0] // 32
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(n):
                with ring.put() as tile:
                    wl.copy_async(x[wl.ds(k * 32, 32), wl.ds(0, 32)], tile)
        with wl.role("turn", warps=4):
            for k in wl.range(n):
                with ring.get() as tile:
                    t = tile.load()
                if k % 3 != 1:
                    with out.put() as (a, b):
                        a.T.store(t)
                        wl.copy_async(a, y[wl.ds(k * 32, 32), wl.ds(0, 32)])
                        b.store(t + t)
                        wl.copy_async(b, z[wl.ds(k * 32, 32), wl.ds(0, 32)])


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_two_tiles_a_slot_some_left_out(device, stages):
    x = np.random.default_rng(1).integers(-99, 99, (7, 32, 32)).astype(np.float16)
    y, z = (device.put(np.zeros((7 * 32, 32), np.float16)) for _ in range(2))
    pairs[1](device.put(x.reshape(-1, 32)), y, z, stages)
    there = (np.arange(7) % 3 != 1)[:, None, None]
    assert np.array_equal(device.get(y).reshape(x.shape), np.where(there, x.swapaxes(1, 2), 0))
    assert np.array_equal(device.get(z).reshape(x.shape), np.where(there, x + x, 0))


def test_fences_waits_and_commits():
    """What stands around a slot, in the order in which it must."""
    x, y = np.ones((3, 16, 32), np.float32), np.zeros((3, 16, 32), np.float32)
    text = written.launch(1).call(x, y, 3, 2, 4, 1, False).text("machine")
    loop = text[text.index("control.for") :]
    order = [
        *("tma.wait() [pending=1, reads=True]", "sync.barrier", "shared_memory.store"),
        *("sync.fence_async", "sync.barrier", "tma.store_box", "tma.commit"),
        "tma.wait() [pending=0, reads=True]",  # what it writes is there when the launch ends
    ]
    places = []
    for word in order:
        places.append(loop.index(word, places[-1] if places else 0))
    assert loop.count("sync.barrier") == 2 and loop.count("tma.wait") == 2


@wl.kernel
def asks_for_more(x: wl.Tensor, CLUSTER: wl.const, DELIVER: wl.const):
    wl.pipe(
        2, slots=[wl.shared((16, 32), wl.f32)], to=wl.copy_engine, cluster=CLUSTER, deliver=DELIVER
    )


@pytest.mark.parametrize(("cluster", "deliver"), [(True, "all"), (False, "one")])
def test_what_the_engine_has_no_use_for_is_refused(cluster, deliver, golden):
    with pytest.raises(wl.CompileError) as refused:
        asks_for_more[1](np.zeros(4, np.float32), cluster, deliver)
    golden(str(refused.value).splitlines()[0])

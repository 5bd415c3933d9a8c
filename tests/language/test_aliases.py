"""Shared tiles that lie on the same bytes: where the slots of a tree of them are, on both devices,
through pipes, and what the checker says of two that are in use at once."""

import ml_dtypes
import numpy as np
import pytest

import warploom as wl

bf16 = ml_dtypes.bfloat16


@wl.kernel
def mapped(y: wl.Tensor, SLOTS: wl.const, MORE: wl.const, LARGE: wl.const, SWAP: wl.const):
    """Number the slots of rings that share bytes; y is what then lies in memory, in units of 128
    bytes: the numbers 100 + slot of `first`, 200 + slot of `second` behind it, else 1."""
    base = wl.shared((LARGE, 32), wl.f32, slots=SLOTS, swizzle=0)
    first = wl.shared((1, 64), wl.f16, slots=SLOTS * MORE, swizzle=0, alias=base)
    second = wl.shared((2, 32), wl.i32, slots=SLOTS, swizzle=0, alias=wl.behind(first))
    seen = base.reinterpret(wl.i32)
    for slot in wl.unroll(SLOTS):
        seen[slot].store(wl.full((LARGE, 32), 1, wl.i32))
    if SWAP:
        fill(second, 200, SLOTS)
    fill(first.reinterpret(wl.i32), 100, SLOTS * MORE)
    if not SWAP:
        fill(second, 200, SLOTS)
    for slot in wl.unroll(SLOTS):
        wl.store(y[wl.ds(slot * LARGE, LARGE), wl.ds(0, 32)], seen[slot].load())


@wl.function
def fill(ring, NUMBER, SLOTS):
    for slot in wl.range(SLOTS):
        ring[slot].store(wl.zeros(ring.shape, wl.i32) + (NUMBER + slot))


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(("slots", "more"), [(1, 1), (2, 1), (3, 1), (2, 2), (1, 3)])
@pytest.mark.parametrize("large", [5, 8])
def test_slots_lie_slot_by_slot(device, slots: int, more: int, large: int, swap: bool):
    y = device.put(np.zeros((slots * large, 32), np.int32))
    mapped[1](y, slots, more, large, swap)
    expected = np.ones((slots, large, 32), np.int32)
    for slot in range(slots):
        for part in range(more):
            expected[slot, part] = 100 + slot * more + part
        expected[slot, more : more + 2] = 200 + slot
    assert np.array_equal(device.get(y), expected.reshape(-1, 32))


@wl.kernel
def staged(x: wl.Tensor, y: wl.Tensor, STEPS: wl.const):
    """y = Σ of pieces of x, out of a ring of pieces; the sum goes out over the ring's bytes."""
    piece = wl.shared((64, 64), wl.bf16)
    out = wl.shared((64, 64), wl.f32, alias=piece)
    ring = wl.pipe(2, slots=[piece])
    with wl.roles():
        with wl.role("load", warps=1):
            for k in wl.range(STEPS):
                with ring.put() as tile:
                    wl.copy_async(x[wl.ds(k * 64, 64), wl.ds(0, 64)], tile)
        with wl.role("add", warps=4):
            total = wl.zeros((64, 64), wl.f32)
            for _ in wl.range(STEPS):
                with ring.get() as tile:
                    total = total + tile.load().cast(wl.f32)
            out.store(total)
            with wl.one_thread():
                wl.copy_async(out, y[wl.ds(0, 64), wl.ds(0, 64)])
                wl.copy_commit()
                wl.copy_wait()


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5])
def test_a_sum_leaves_over_the_bytes_of_a_ring(device, steps: int):
    x = np.random.default_rng(steps).integers(-9, 9, (max(steps, 1) * 64, 64)).astype(bf16)
    y = device.put(np.full((64, 64), 7, np.float32))
    call = staged.launch(1).call(device.put(x), y, STEPS=steps)
    call.run()
    expected = x[: steps * 64].astype(np.float32).reshape(steps, 64, 64).sum(0)
    assert np.array_equal(device.get(y), expected)
    if device.name == "sim":
        assert call.check(seeds=5).clean


def test_bytes_are_counted_once():
    x, y = np.zeros((64, 64), bf16), np.zeros((64, 64), np.float32)
    kernel = staged.launch(1).call(x, y, STEPS=1).text("machine")
    (total,) = (int(w[7:]) for w in kernel.split("\n")[0].split() if w.startswith("shared="))
    assert 16384 <= total < 16384 + 256


@wl.kernel
def bits_by_replicas(y: wl.Tensor):
    """Each replica sees the bits of its quarter of a tile that all have."""
    tile = wl.shared((4, 32), wl.f32, swizzle=0)
    with wl.roles():
        with wl.role("see", warps=1, replicas=4) as r:
            tile[wl.ds(r, 1), :].store(wl.full((1, 32), 1.0, wl.f32))
            bits = tile.reinterpret(wl.i32)
            wl.store(y[wl.ds(r, 1), wl.ds(0, 32)], bits[wl.ds(r, 1), :].load())
        with wl.role("other", warps=2, replicas=2) as r:
            wl.store(y[wl.ds(4 + r, 1), wl.ds(0, 32)], wl.full((1, 32), 2, wl.i32))


def test_replicas_see_the_bytes_that_all_have(device):
    y = device.put(np.zeros((6, 32), np.int32))
    bits_by_replicas[1](y)
    found = device.get(y)
    assert (found[:4] == np.float32(1.0).view(np.int32)).all() and (found[4:] == 2).all()

"""Schedules of users and of the library, on both devices."""

import numpy as np

import warploom as wl


@wl.struct
class Strided:
    """Every so many items, and a count of them."""

    count: wl.i32

    def first(self):
        return wl.program_id(0)

    def valid(self, t):
        return t < self.count

    def next(self, t):
        return t + wl.num_programs(0)


@wl.kernel
def marked(x: wl.Tensor, n: wl.i32):
    for t in wl.tiles(Strided(n)):
        wl.store(x[t], wl.load(x[t]) + 1.0)


def test_every_item_once(device):
    for count in (0, 1, 2, 3, 7):
        x = device.put(np.zeros(8, np.float32))
        marked[3](x, count)
        expected = (np.arange(8) < count).astype(np.float32)
        assert np.array_equal(device.get(x), expected), count


@wl.kernel
def rebound(x: wl.Tensor, n: wl.i32):
    for t in wl.tiles(Strided(n)):
        t = n - 1 - t
        wl.store(x[t], (t + 1).cast(wl.f32))


def test_rebinding_the_name_does_not_move_the_schedule(device):
    x = device.put(np.zeros(8, np.float32))
    rebound[3](x, 8)
    assert np.array_equal(device.get(x), np.arange(1, 9, dtype=np.float32))


@wl.kernel
def copied(x: wl.Tensor, y: wl.Tensor, n: wl.i32, STAGES: wl.const, SIZE: wl.const):
    """A pipe whose positions go on through the trips of two schedules."""
    ring = wl.pipe(STAGES, slots=[wl.shared((8, SIZE), wl.f32)])
    with wl.roles():
        with wl.role("load", warps=1):
            for t in wl.tiles(Strided(n)):
                for k in wl.range(0, x.shape[1], SIZE):
                    with ring.put() as s:
                        wl.copy_async(x[wl.ds(t * 8, 8), wl.ds(k, SIZE)], s)
        with wl.role("store", warps=4):
            for t in wl.tiles(Strided(n)):
                for k in wl.range(0, x.shape[1], SIZE):
                    with ring.get() as s:
                        wl.store(y[wl.ds(t * 8, 8), wl.ds(k, SIZE)], s.load() * 2.0)


def test_pipes_go_on_through_schedules(device):
    x = np.random.default_rng(0).standard_normal((40, 96)).astype(np.float32)
    for stages in (1, 2, 3):
        y = device.put(np.zeros_like(x))
        copied[2](device.put(x), y, 5, STAGES=stages, SIZE=32)
        assert np.array_equal(device.get(y), 2 * x)

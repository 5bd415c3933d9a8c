"""Tiles are drawn from a counter of the launch by one role, which tells two others the number; the
number behind the last tile ends them."""

import warploom as wl


@wl.kernel
def drawn(x: wl.Tensor, counter: wl.Tensor, y: wl.Tensor):
    numbers = wl.shared((1,), wl.i32, slots=2, swizzle=0)
    told, free = wl.barrier(2), wl.barrier(2, arrivals=2)
    ring = wl.pipe(2, slots=wl.shared((16, 64), x.dtype))
    tiles = x.shape[0]
    with wl.roles():
        with wl.role("draw", warps=1):
            t, i = 0, 0
            while t < tiles:
                free[i % 2].wait(i // 2 % 2 ^ 1)
                t = wl.atomic_add(counter[0], 1)
                numbers[i % 2].store(wl.full((1,), t, wl.i32))
                told[i % 2].arrive()
                i = i + 1
        with wl.role("load", warps=1):
            t, i = 0, 0
            while t < tiles:
                told[i % 2].wait(i // 2 % 2)
                t = wl.scalar(wl.sum(numbers[i % 2].load(), 0))
                free[i % 2].arrive()  # of the loader
                if t < tiles:
                    with ring.put() as tile:
                        wl.copy_async(x[t, wl.ds(0, 16), wl.ds(0, 64)], tile)
                i = i + 1
        with wl.role("halve", warps=4):
            t, i = 0, 0
            while t < tiles:
                told[i % 2].wait(i // 2 % 2)  # halve
                t = wl.scalar(wl.sum(numbers[i % 2].load(), 0))  # halve
                free[i % 2].arrive()
                if t < tiles:
                    with ring.get() as tile:
                        wl.store(y[t, wl.ds(0, 16), wl.ds(0, 64)], tile.load() * 0.5)
                i = i + 1


@drawn.example
def small(make):
    x, y = make.randn((9, 16, 64)), make.zeros((9, 16, 64))
    return drawn.launch(2).call(x, make.zeros((1,), wl.i32), y)


def expected(x, counter, y):
    return {"y": x * 0.5}
